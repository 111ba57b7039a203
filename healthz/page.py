"""The page for people at `/`: live objects -> HTML.

Every text that comes from outside is escaped; there are no assets beside the page itself.  The
layout and the script stand in page.html.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from html import escape
from importlib.resources import files
from string import Template
from typing import Final

from healthz.counters import CacheStatistics
from healthz.dnsmasqstats import DnsmasqStatistics
from healthz.results import Check, Outcome, State
from healthz.schedule import Clock
from healthz.sparkline import sparkline
from kubedns import __version__
from kubedns.shared.durations import format_duration

_TEMPLATE: Final = Template(files("healthz").joinpath("page.html").read_text(encoding="utf-8"))
_SHOWN_OUTPUT: Final = 1000
_ICON_COLOUR: Final = {True: "%231a7f45", False: "%23c02626"}


class Page:
    """Renders the page; it keeps nothing but references to what it shows.

    `dnsmasq` and `readiness` are None when they are not looked at.  The wall clock is used only
    to say since when, never to judge.
    """

    def __init__(
        self,
        title: str,
        checks: Sequence[Check],
        dnsmasq: DnsmasqStatistics | None,
        readiness: Check | None,
        metrics_path: str,
        *,
        clock: Clock,
    ) -> None:
        self._title = title
        self._checks = checks
        self._dnsmasq = dnsmasq
        self._readiness = readiness
        self._metrics_path = metrics_path
        self._clock = clock
        self._started = clock()

    def render(self, nonce: str) -> str:
        """Return the page as it is now; `nonce` lets its script run under the page's policy."""
        now, wall = self._clock(), datetime.now(UTC)
        cards = "".join(_check_card(check, now, wall, linked=True) for check in self._checks)
        around = "".join(self._around(now, wall))
        state, overall = _overall(self._checks, now)
        return _TEMPLATE.substitute(
            title=escape(self._title),
            icon=_icon(healthy=state is State.HEALTHY),
            state=state,
            overall=escape(overall),
            body=f'<h2>Checks</h2><div class="grid">{cards}</div>'
            + (f'<h2>dnsmasq and kubedns</h2><div class="grid">{around}</div>' if around else ""),
            time=f"{wall:%Y-%m-%d %H:%M:%S}",
            version=__version__,
            uptime=format_duration(round(now - self._started)),
            metrics=escape(self._metrics_path),
            nonce=escape(nonce),
        )

    def _around(self, now: float, wall: datetime) -> Iterable[str]:
        if self._dnsmasq is not None:
            yield _dnsmasq_card(self._dnsmasq)
        if self._readiness is not None:
            yield _check_card(self._readiness, now, wall, linked=False)


def _overall(checks: Sequence[Check], now: float) -> tuple[State, str]:
    states = [check.verdict(now).state for check in checks]
    bad = [
        check.title
        for check, state in zip(checks, states, strict=True)
        if state in {State.FAILED, State.STALE}
    ]
    if bad:
        verb = "fails" if len(bad) == 1 else "fail"
        return State.FAILED, f"{len(bad)} of {len(checks)} checks {verb}: {', '.join(bad)}"
    if State.WAITING in states:
        return State.WAITING, "Waiting for the first results"
    return State.HEALTHY, "All is well"


def _icon(*, healthy: bool) -> str:
    circle = f"%3Ccircle cx='8' cy='8' r='7' fill='{_ICON_COLOUR[healthy]}'/%3E"
    return f"data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E{circle}%3C/svg%3E"


def _check_card(check: Check, now: float, wall: datetime, *, linked: bool) -> str:
    verdict = check.verdict(now)
    tone = verdict.state
    title = escape(check.title)
    if linked:
        title = f'<a href="{escape(check.path)}">{title}</a>'
    parts = [
        _head(title, tone),
        f'<div class="detail">{escape(check.detail)}</div>',
        f'<p class="reason">{escape(verdict.reason)}</p>' if verdict.reason else "",
    ]
    if check.last is not None:
        parts += [_output(check.last), _figures(_last_figures(check, check.last, now, wall))]
    parts += [sparkline(check.history), f'<p class="caption">{_history_caption(check)}</p>']
    return f'<section class="card {tone}">{"".join(parts)}</section>'


def _head(title: str, state: str) -> str:
    pill = f'<span class="pill">{escape(state)}</span>' if state else ""
    return f'<div class="head"><h3>{title}</h3>{pill}</div>'


def _output(outcome: Outcome) -> str:
    text = outcome.output[:_SHOWN_OUTPUT].decode(errors="replace").strip()
    return f"<pre>{escape(text)}</pre>" if text else ""


def _last_figures(check: Check, last: Outcome, now: float, wall: datetime) -> list[tuple[str, str]]:
    took = "no reply" if last.duration is None else _span(last.duration)
    rows = [("latency", took), ("last result", f"{_ago(now - last.finished)} ago")]
    if check.since is not None and check.verdict(now).state is not State.STALE:
        word = "healthy" if last.failure is None else "failing"
        begun = wall - timedelta(seconds=now - check.since)
        rows.append((f"{word} since", f"{begun:%b %d %H:%M:%S} UTC ({_ago(now - check.since)})"))
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


def _dnsmasq_card(dnsmasq: DnsmasqStatistics) -> str:
    tone = "calm" if dnsmasq.failure is None else "failed"
    totals = dnsmasq.cache.totals()
    parts = [
        _head("dnsmasq's cache", "not read" if dnsmasq.failure else ""),
        f'<div class="detail">statistics of {escape(str(dnsmasq.server))}</div>',
        f'<p class="reason">{escape(dnsmasq.failure)}</p>' if dnsmasq.failure else "",
    ]
    if totals is not None:
        parts += [_hit_ratio(dnsmasq), _figures(_cache_figures(totals, dnsmasq.errors))]
    return f'<section class="card {tone}">{"".join(parts)}</section>'


def _hit_ratio(dnsmasq: DnsmasqStatistics) -> str:
    recent, overall = dnsmasq.cache.recent_hit_ratio(), dnsmasq.cache.hit_ratio()
    return (
        f'<div class="figure">{_percent(overall if recent is None else recent)}</div>'
        f'<p class="caption">hit ratio over the last {dnsmasq.cache.recent_readings} readings; {_percent(overall)} in all</p>'
    )


def _cache_figures(totals: CacheStatistics, errors: int) -> list[tuple[str, str]]:
    return [
        ("hits", f"{totals.hits:,}"),
        ("misses", f"{totals.misses:,}"),
        ("insertions", f"{totals.insertions:,}"),
        ("evictions", f"{totals.evictions:,}"),
        ("size", f"{totals.size:,} entries"),
        ("failed readings", f"{errors:,}"),
    ]


def _figures(rows: Iterable[tuple[str, str]]) -> str:
    return (
        "<dl>" + "".join(f"<dt>{escape(term)}</dt><dd>{escape(value)}</dd>" for term, value in rows) + "</dl>"
    )


def _percent(ratio: float | None) -> str:
    return "–" if ratio is None else f"{ratio:.1%}"


def _span(seconds: float) -> str:
    return f"{seconds * 1000:.1f} ms" if seconds < 1 else f"{seconds:.1f} s"


def _ago(seconds: float) -> str:
    return format_duration(round(max(seconds, 0)))
