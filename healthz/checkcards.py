"""Checks and dnsmasq's cache -> cards of the page."""

from datetime import datetime, timedelta
from typing import Final

from healthz.counters import CacheStatistics
from healthz.dnsmasqstats import DnsmasqStatistics
from healthz.markup import ago, card, figures, paragraph, percent, preformatted, span
from healthz.results import Check, Outcome, State
from healthz.sparkline import sparkline
from healthz.traffic import Point

_SHOWN_OUTPUT: Final = 1000


def check_card(check: Check, now: float, wall: datetime, *, linked: bool) -> str:
    """Return the card of one check; `wall` is the time of `now`, used to say since when."""
    verdict = check.verdict(now)
    parts = [paragraph("detail", check.detail), paragraph("reason", verdict.reason)]
    if check.last is not None:
        output = check.last.output[:_SHOWN_OUTPUT].decode(errors="replace").strip()
        parts += [preformatted(output), figures(_last_figures(check, check.last, now, wall))]
    parts += [sparkline(check.history), paragraph("caption", _history_caption(check))]
    return card(verdict.state, check.title, verdict.state, *parts, link=check.path if linked else "")


def _last_figures(check: Check, last: Outcome, now: float, wall: datetime) -> list[tuple[str, str]]:
    took = "no reply" if last.duration is None else span(last.duration)
    rows = [("latency", took), ("last result", f"{ago(now - last.finished)} ago")]
    if check.since is not None and check.verdict(now).state is not State.STALE:
        word = "healthy" if last.failure is None else "failing"
        begun = wall - timedelta(seconds=now - check.since)
        rows.append((f"{word} since", f"{begun:%b %d %H:%M:%S} UTC ({ago(now - check.since)})"))
    return rows


def _history_caption(check: Check) -> str:
    if not check.history:
        return "No runs yet."
    shown = len(check.history)
    failed = sum(not healthy for _, healthy in check.history)
    total = check.successes + check.failures
    return (
        f"Last {shown} runs: {failed or 'none'} failed. "
        f"In all {total:,} runs, {check.failures or 'none'} failed."
    )


def cache_card(dnsmasq: DnsmasqStatistics, recent: Point, hour: Point) -> str:
    """Return the card of dnsmasq's cache; `recent` and `hour` hold the clients' questions alone."""
    state = "not read" if dnsmasq.failure else ""
    parts = [
        paragraph("detail", f"statistics of {dnsmasq.server}"),
        paragraph("reason", dnsmasq.failure or ""),
        f'<div class="figure">{percent(hour.hit_ratio)}</div>',
        paragraph(
            "caption",
            "of the clients' questions of the last hour were answered from the cache"
            if hour.hit_ratio is not None
            else "no client has asked in the last hour",
        ),
    ]
    rows = [("now", percent(recent.hit_ratio))]
    totals = dnsmasq.cache.totals()
    if totals is not None:
        rows += _cache_figures(totals, dnsmasq.errors)
    return card("calm" if not state else "warning", "Cache of dnsmasq", state, *parts, figures(rows))


def _cache_figures(totals: CacheStatistics, errors: int) -> list[tuple[str, str]]:
    return [
        ("insertions", f"{totals.insertions:,}"),
        ("evictions", f"{totals.evictions:,}"),
        ("size", f"{totals.size:,} entries"),
        ("failed readings", f"{errors:,}"),
    ]
