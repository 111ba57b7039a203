"""Puts what is known at a moment into the history, again and again."""

from typing import Final

from healthz.findings import Level, Watched, findings, worst
from healthz.schedule import Clock
from healthz.traffic import DnsmasqTraffic, KubednsTraffic, OwnQuestions, Point

INTERVAL: Final = 5.0


class Observer:
    """The one who writes the history of what is watched; `own` is what exechealthz asks itself."""

    def __init__(self, watched: Watched, own: OwnQuestions, clock: Clock) -> None:
        self._watched = watched
        self._own = own
        self._clock = clock
        self._kubedns = KubednsTraffic()
        self._dnsmasq = DnsmasqTraffic()

    async def observe(self) -> None:
        """Add this moment."""
        watched, now = self._watched, self._clock()
        level = worst(findings(watched, now))
        seen = Point(wrong=level is Level.FAILED, doubtful=level is Level.WARNING)
        account = watched.kubedns.account if watched.kubedns else None
        if watched.kubedns is not None and account is not None and account.traffic is not None:
            own, read_at = self._own.kubedns, watched.kubedns.read_at
            seen.add(self._kubedns.seen(account.traffic, account.started, own, read_at))
        dnsmasq = watched.dnsmasq
        if dnsmasq is not None:
            seen.add(self._dnsmasq.seen(dnsmasq.cache, dnsmasq.own_before, dnsmasq.read_at))
        watched.history.add(now, seen)
