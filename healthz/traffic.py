"""Counters that grow -> what happened in the last hour, in points of 15 s.

Pure; times are of one monotonic clock.  In: kubedns's and dnsmasq's counts, and what exechealthz
itself asked, which is taken off them.  Out: questions a second and shares, for a span of time.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Final

from healthz.account import Traffic
from healthz.counters import CacheTotals

POINT_SECONDS: Final = 15.0
POINTS: Final = 240
"""An hour."""


@dataclass(slots=True)
class OwnQuestions:
    """How many questions of its own exechealthz put to dnsmasq, by what dnsmasq counts them as, and to kubedns."""

    hits: int = 0
    misses: int = 0
    kubedns: int = 0


@dataclass(slots=True)
class Point:
    """What happened in a span of time; `kubedns_seconds` and `dnsmasq_seconds` are what of it was seen.

    `wrong` says that something was found wrong in it, `doubtful` that something was not quite right.
    """

    kubedns_seconds: float = 0.0
    questions: int = 0
    nxdomain: int = 0
    servfail: int = 0
    dnsmasq_seconds: float = 0.0
    hits: int = 0
    misses: int = 0
    wrong: bool = False
    doubtful: bool = False

    def add(self, other: "Point") -> None:
        """Take in another span."""
        for field in fields(self):
            mine, others = getattr(self, field.name), getattr(other, field.name)
            setattr(self, field.name, mine or others if isinstance(mine, bool) else mine + others)

    @property
    def kubedns_rate(self) -> float | None:
        """Questions a second to kubedns; None when nothing was seen."""
        return self.questions / self.kubedns_seconds if self.kubedns_seconds else None

    @property
    def dnsmasq_rate(self) -> float | None:
        """Questions a second to dnsmasq; None when nothing was seen."""
        return (self.hits + self.misses) / self.dnsmasq_seconds if self.dnsmasq_seconds else None

    @property
    def hit_ratio(self) -> float | None:
        """Share of dnsmasq's questions that it answered by itself; None when there were none."""
        return share(self.hits, self.hits + self.misses)


def share(part: int, whole: int) -> float | None:
    """Return part / whole, None when there is no whole."""
    return part / whole if whole else None


class History:
    """The points of the last hour, the newest last."""

    def __init__(self) -> None:
        self.points: deque[Point] = deque([Point()], maxlen=POINTS)
        self._begun: float | None = None

    def add(self, now: float, seen: Point) -> None:
        """Add what was seen to the point of this moment."""
        if self._begun is None:
            self._begun = now
        passed = int((now - self._begun) // POINT_SECONDS)
        self._begun += passed * POINT_SECONDS
        self.points.extend(Point() for _ in range(min(passed, POINTS)))
        self.points[-1].add(seen)

    def hour(self) -> Point:
        """Return all points as one."""
        return _sum(self.points)

    def recent(self) -> Point:
        """Return the last two points as one: 15 to 30 s."""
        return _sum(list(self.points)[-2:])


def _sum(points: Iterable[Point]) -> Point:
    total = Point()
    for point in points:
        total.add(point)
    return total


class Client:
    """One counter less what exechealthz caused of it.

    What was asked may be counted later, or never when the server died: it is owed until then.
    """

    def __init__(self) -> None:
        self._count: int | None = None
        self._own = 0
        self._owed = 0

    def restarted(self, *, from_zero: bool) -> None:
        """Note that the server is a new one, which was asked nothing yet; its counter may begin again."""
        self._owed = 0
        if from_zero:
            self._count = 0

    def grown(self, count: int, own: int) -> int:
        """Return how many the clients have added since the last call; 0 at the first."""
        before, self._count = self._count, count
        self._owed += own - self._own
        self._own = own
        if before is None:
            self._owed = 0
            return 0
        grown = max(0, count - before)
        clients = max(0, grown - self._owed)
        self._owed = max(0, self._owed - grown)
        return clients


class KubednsTraffic:
    """kubedns's counts as it tells them, reading by reading."""

    def __init__(self) -> None:
        self._questions, self._nxdomain, self._servfail = Client(), Client(), Client()
        self._started: float | None = None
        self._read_at: float | None = None

    def seen(self, traffic: Traffic, started: float, own: int, read_at: float) -> Point:
        """Return what happened since the last reading; nothing for one that was seen before."""
        if read_at == self._read_at:
            return Point()
        if self._started not in {None, started}:
            for counter in (self._questions, self._nxdomain, self._servfail):
                counter.restarted(from_zero=True)
        seconds = 0.0 if self._read_at is None else read_at - self._read_at
        self._started, self._read_at = started, read_at
        return Point(
            kubedns_seconds=seconds,
            questions=self._questions.grown(traffic.questions, own),
            nxdomain=self._nxdomain.grown(traffic.nxdomain, 0),
            servfail=self._servfail.grown(traffic.servfail, 0),
        )


class DnsmasqTraffic:
    """dnsmasq's counts, added up over its restarts, reading by reading."""

    def __init__(self) -> None:
        self._hits, self._misses = Client(), Client()
        self._restarts = 0
        self._read_at: float | None = None

    def seen(self, cache: CacheTotals, own: OwnQuestions, read_at: float | None) -> Point:
        """Return what happened since the last reading; nothing for one that was seen before."""
        totals = cache.totals()
        if totals is None or read_at is None or read_at == self._read_at:
            return Point()
        seconds = 0.0 if self._read_at is None else read_at - self._read_at
        if cache.restarts != self._restarts:
            for counter in (self._hits, self._misses):
                counter.restarted(from_zero=False)
        self._read_at, self._restarts = read_at, cache.restarts
        return Point(
            dnsmasq_seconds=seconds,
            hits=self._hits.grown(totals.hits, own.hits),
            misses=self._misses.grown(totals.misses, own.misses),
        )
