"""The page for people at `/`: live objects -> HTML.

Every text that comes from outside is escaped; there are no assets beside the page itself.  The
layout and the script stand in page.html.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from html import escape
from importlib.resources import files
from string import Template
from typing import Final

from healthz.chart import levels
from healthz.checkcards import cache_card, check_card
from healthz.findings import Finding, Level, Watched, findings, summary, worst
from healthz.programcards import (
    cluster_card,
    configuration_card,
    dnsmasq_traffic_card,
    kubedns_traffic_card,
    own_process_card,
    process_card,
    unreadable_card,
    upstream_card,
)
from healthz.schedule import Clock
from kubedns import __version__
from kubedns.shared.durations import format_duration
from kubedns.shared.report import resident_octets

_TEMPLATE: Final = Template(files("healthz").joinpath("page.html").read_text(encoding="utf-8"))
_ICON_COLOUR: Final = {
    Level.HEALTHY: "%231a7f45",
    Level.WAITING: "%239a6200",
    Level.WARNING: "%239a6200",
    Level.FAILED: "%23c02626",
}


class Page:
    """Renders the page; it keeps nothing but references to what it shows.

    The wall clock is used only to say since when, never to judge.
    """

    def __init__(self, title: str, watched: Watched, metrics_path: str, *, clock: Clock) -> None:
        self._title = title
        self._watched = watched
        self._metrics_path = metrics_path
        self._clock = clock
        self._started = clock()

    def render(self, nonce: str) -> str:
        """Return the page as it is now; `nonce` lets its script run under the page's policy."""
        now, wall = self._clock(), datetime.now(UTC)
        found = findings(self._watched, now)
        level = worst(found)
        return _TEMPLATE.substitute(
            title=escape(self._title),
            icon=_icon(level),
            state=level.word,
            overall=escape(summary(found)),
            findings=_list(found),
            strip=levels(self._watched.history.points),
            body="".join(self._sections(now, wall)),
            time=f"{wall:%Y-%m-%d %H:%M:%S}",
            version=__version__,
            uptime=format_duration(round(now - self._started)),
            metrics=escape(self._metrics_path),
            nonce=escape(nonce),
        )

    def _sections(self, now: float, wall: datetime) -> Iterator[str]:
        watched = self._watched
        checks = [check_card(check, now, wall, linked=True) for check in watched.checks]
        if watched.readiness is not None:
            checks.append(check_card(watched.readiness, now, wall, linked=False))
        yield _section("Checks", checks)
        yield _section("Name servers", self._upstreams())
        yield _section("Configuration", self._configurations())
        yield _section("Cluster watch", self._clusters())
        yield _section("Traffic of clients", self._traffic())
        yield _section("Programs", self._processes(now, wall))

    def _upstreams(self) -> Iterator[str]:
        for program in self._watched.programs:
            account = program.account
            yield upstream_card(program, account) if account else unreadable_card(program)

    def _configurations(self) -> Iterator[str]:
        for program in self._watched.programs:
            if program.account is None:
                yield unreadable_card(program)
            elif program.account.configuration is not None:
                yield configuration_card(program, program.account.configuration)

    def _clusters(self) -> Iterator[str]:
        kubedns = self._watched.kubedns
        if kubedns is not None and kubedns.account is None:
            yield unreadable_card(kubedns)
        elif kubedns is not None and kubedns.account and kubedns.account.cluster:
            yield cluster_card(kubedns.account.cluster)

    def _traffic(self) -> Iterator[str]:
        history, dnsmasq = self._watched.history, self._watched.dnsmasq
        if dnsmasq is not None:
            yield dnsmasq_traffic_card(history)
            yield cache_card(dnsmasq, history.recent(), history.hour())
        if self._watched.kubedns is not None:
            yield kubedns_traffic_card(history)

    def _processes(self, now: float, wall: datetime) -> Iterator[str]:
        for program in self._watched.programs:
            account = program.account
            yield process_card(program, account, now, wall) if account else unreadable_card(program)
        started = wall.timestamp() - (now - self._started)
        yield own_process_card(started, resident_octets(), wall)


def _section(title: str, cards: "list[str] | Iterator[str]") -> str:
    content = "".join(cards)
    return f'<h2>{title}</h2><div class="grid">{content}</div>' if content else ""


def _list(found: list[Finding]) -> str:
    rows = "".join(
        f'<li class="{finding.level.word}"><b>{escape(finding.about)}</b>: {escape(finding.text)}</li>'
        for finding in found
    )
    return f'<ul class="findings">{rows}</ul>' if rows else ""


def _icon(level: Level) -> str:
    circle = f"%3Ccircle cx='8' cy='8' r='7' fill='{_ICON_COLOUR[level]}'/%3E"
    return f"data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E{circle}%3C/svg%3E"
