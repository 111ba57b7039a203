"""What the programs of the pod say of themselves -> cards of the page."""

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from html import escape
from typing import Any, Final

from healthz.account import Account, ClusterAccount
from healthz.chart import Value, rates
from healthz.findings import ALL_NAMES, SILENT_SECONDS
from healthz.markup import ago, card, figures, paragraph, percent, preformatted, rate, span
from healthz.programs import HOUR, Program
from healthz.traffic import History, Point, share
from kubedns.shared.report import Configuration, UpstreamReport

_MOST_LINES: Final = 40
_MIB: Final = 1 << 20


def unreadable_card(program: Program) -> str:
    """Return the card of a program that says nothing of itself, whatever the card would have held."""
    state, tone = ("can't be read", "failed") if program.failure else ("waiting", "waiting")
    reason = program.failure or "not read yet"
    return card(tone, program.name, state, paragraph("detail", program.url), paragraph("reason", reason))


def upstream_card(program: Program, account: Account) -> str:
    """Return the card of the name servers that a program asks."""
    upstreams = account.upstreams
    down = sum(upstream.up is False for upstream in upstreams)
    tone = (
        "healthy"
        if upstreams and not down
        else "failed"
        if upstreams and down == len(upstreams)
        else "warning"
    )
    state = f"{down} of {len(upstreams)} down" if down else "" if not upstreams else "all up"
    if upstreams and any(upstream.up is None for upstream in upstreams) and not down:
        tone, state = "waiting", "not asked yet"
    rows = "".join(map(_upstream_row, upstreams))
    body = f'<ul class="rows">{rows}</ul>' if rows else paragraph("reason", "none: other names fail")
    return card(tone, f"Of {program.name}", state, body)


def _upstream_row(upstream: UpstreamReport) -> str:
    state = {True: "up", False: "down", None: "not asked yet"}[upstream.up]
    tone = {True: "healthy", False: "failed", None: "waiting"}[upstream.up]
    facts = ["all other names" if upstream.domain == ALL_NAMES else f"names in {upstream.domain}"]
    if upstream.latency is not None:
        facts.append(span(upstream.latency))
    facts += [f"{count:,} {reason}" for reason, count in upstream.failures.items() if count]
    return (
        f'<li class="{tone}"><span class="pill">{state}</span> <b>{escape(upstream.server)}</b>'
        f"{paragraph('caption', ' · '.join(facts))}{paragraph('reason', upstream.reason)}</li>"
    )


def configuration_card(program: Program, configuration: Configuration) -> str:
    """Return the card of a program's configuration: what is in force, and what is refused and why."""
    refused = configuration.refused
    reasons = "".join(
        paragraph("reason", f"{refusal.key}: {refusal.reason}" if refusal.key else refusal.reason)
        for refusal in refused
    )
    in_force = "\n".join(_config_lines(configuration.in_force)) or "nothing configured: defaults"
    last = configuration.last_success
    taken = f"Last taken {datetime.fromtimestamp(last, UTC):%b %d %H:%M:%S} UTC. " if last else ""
    return card(
        "warning" if refused else "healthy",
        f"Of {program.name}",
        "refused" if refused else "in force",
        paragraph("detail", configuration.source),
        reasons,
        paragraph("caption", "Still in force instead:" if refused else "In force:"),
        preformatted(in_force),
        paragraph("caption", taken),
    )


def _config_lines(in_force: Mapping[str, Any]) -> list[str]:
    lines: list[str] = []
    for key, value in in_force.items():
        if isinstance(value, dict):
            lines += [f"{key}:", *(f"  {name}: {_short(what)}" for name, what in value.items())]
        elif isinstance(value, str) and "\n" in value:
            lines += [f"{key}:", *(f"  {line}" for line in value.splitlines())]
        else:
            lines.append(f"{key}: {_short(value)}")
    more = len(lines) - _MOST_LINES
    return lines if more <= 0 else [*lines[:_MOST_LINES], f"and {more} more lines"]


def _short(value: Any) -> str:
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return ", ".join(value)
    return value if isinstance(value, str) else json.dumps(value)


def cluster_card(cluster: ClusterAccount) -> str:
    """Return the card of how far kubedns follows the cluster."""
    silent = [w for w in cluster.watches if w.error or (w.age is not None and w.age > SILENT_SECONDS)]
    state = "not synced" if not cluster.synced else "not heard" if silent else "synced"
    errors = dict.fromkeys(watch.error for watch in cluster.watches if watch.error)
    rows = [(_plural(kind), f"{count:,}") for kind, count in cluster.objects.items()]
    rows.append(("records", f"{cluster.records:,}"))
    rows += [
        (f"{watch.name} heard", "never" if watch.age is None else f"{ago(watch.age)} ago")
        for watch in cluster.watches
    ]
    return card(
        "healthy" if state == "synced" else "failed",
        "Kubernetes API",
        state,
        *(paragraph("reason", error) for error in errors),
        figures(rows),
    )


def _plural(kind: str) -> str:
    return f"{kind}s"


def traffic_card(
    program: str, history: History, rate_of: Value, failed_of: Value, *rows: tuple[str, str]
) -> str:
    """Return the card of the questions that a program was asked by clients."""
    recent, hour = history.recent(), history.hour()
    known = [value for point in history.points if (value := rate_of(point)) is not None]
    highest = rate(max(known, default=None))
    chart = rates(
        history.points, rate_of, failed_of, f"Questions a second in the last hour, at most {highest}"
    )
    return card(
        "calm",
        f"Asked of {program}",
        "",
        f'<div class="figure">{rate(rate_of(recent))}</div>',
        paragraph("caption", "questions now"),
        figures([("over the last hour", rate(rate_of(hour))), *rows]),
        chart,
        paragraph("caption", f"The last hour; highest {highest}."),
    )


def kubedns_traffic_card(history: History) -> str:
    """Return the traffic card of kubedns, with the shares of errors."""
    recent, hour = history.recent(), history.hour()
    rows = [
        (
            f"{name} now · in the hour",
            f"{percent(share(now, recent.questions))} · {percent(share(then, hour.questions))}",
        )
        for name, now, then in (
            ("NXDOMAIN", recent.nxdomain, hour.nxdomain),
            ("SERVFAIL", recent.servfail, hour.servfail),
        )
    ]
    return traffic_card("kubedns", history, lambda point: point.kubedns_rate, _servfail_rate, *rows)


def dnsmasq_traffic_card(history: History) -> str:
    """Return the traffic card of dnsmasq; it does not tell how its answers end."""
    return traffic_card("dnsmasq", history, lambda point: point.dnsmasq_rate, lambda _: None)


def _servfail_rate(point: Point) -> float | None:
    return point.servfail / point.kubedns_seconds if point.kubedns_seconds else None


def process_card(program: Program, account: Account, now: float, wall: datetime) -> str:
    """Return the card of a process: since when it runs, how often it restarted, what memory it takes."""
    rows = list(_process_rows(account.started, account.memory, wall))
    seen = program.restarts_within(HOUR, now)
    rows.append(("restarts seen in the last hour", f"{seen}"))
    if account.dnsmasq is not None:
        since = account.dnsmasq.started
        up = "not up" if since is None else f"{ago(wall.timestamp() - since)}"
        by_reason = [f"{count:,} {reason}" for reason, count in account.dnsmasq.restarts.items() if count]
        rows += [("dnsmasq up for", up), ("dnsmasq restarted", ", ".join(by_reason) or "never")]
    return card("calm", program.name, f"up {ago(wall.timestamp() - account.started)}", figures(rows))


def own_process_card(started: float, memory: int, wall: datetime) -> str:
    """Return the card of exechealthz itself; `started` is a Unix time."""
    state = f"up {ago(wall.timestamp() - started)}"
    return card("calm", "exechealthz", state, figures(_process_rows(started, memory, wall)))


def _process_rows(started: float, memory: int, wall: datetime) -> Iterator[tuple[str, str]]:
    begun = datetime.fromtimestamp(started, UTC)
    yield "started", f"{begun:%b %d %H:%M:%S} UTC"
    yield "memory", f"{memory / _MIB:.1f} MiB"
