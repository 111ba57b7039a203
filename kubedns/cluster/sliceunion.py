"""One set of EndpointSlices from two watches with disjoint selectors.

In: Changes of both watches, which know nothing of each other.
Out: one `Sink.apply` for each batch.
Invariant: a slice that moves from one selector to the other, seen as DELETED by one watch and as ADDED
by the other at the same resource version, in either order, is never missing in between and
never left behind.  So a removal is held: until the other watch is known to have passed its version,
or has been live for LINGER seconds meanwhile, and HELD_AT_MOST seconds at the longest.  What the
first watch, that of the label, loses is held for LINGER at the longest: controllers set the label once
and for all, so a silent second watch has nothing to say about it.  A hand that takes the label
off in such an outage hides the slice until the second watch is back.
Held, it costs nothing: the records of a deleted Service go with the Service.
"""

import asyncio
from collections.abc import Sequence
from typing import Final

from kubedns.cluster.delivery import Change, observe
from kubedns.objects import EndpointSlice, Key, Sink
from kubedns.telemetry.watches import ResourceStatistics

LINGER: Final = 0.25
HELD_AT_MOST: Final = 60.0


class Side:
    """The Delivery of one of the two watches; its removals are held for `patience` seconds at the longest."""

    def __init__(self, union: "SliceUnion", statistics: ResourceStatistics, patience: float) -> None:
        self._union = union
        self.patience = patience
        self.statistics = statistics
        self.versions: dict[Key, int] = {}
        self.reached_version = 0
        self.live_since: float | None = None

    def apply(self, changes: Sequence[Change[EndpointSlice]]) -> None:
        """Take over changes of this watch."""
        for change in changes:
            if change.object is None:
                self.versions.pop(change.key, None)
            else:
                self.versions[change.key] = change.version
        self._union.merge(self, changes)

    def reached(self, version: int) -> None:
        """Take note that this watch delivered everything up to a version."""
        self.reached_version = version
        self._union.review()

    def connected(self, live: bool) -> None:
        """Take note of the state of this watch."""
        self.live_since = asyncio.get_running_loop().time() if live else None


class SliceUnion:
    """Joins the two sides into one Sink; `first` watches the slices with the label."""

    def __init__(
        self,
        sink: Sink[EndpointSlice],
        first: ResourceStatistics,
        second: ResourceStatistics,
    ) -> None:
        self._sink = sink
        self.first = Side(self, first, LINGER)
        self.second = Side(self, second, HELD_AT_MOST)
        self._held: dict[Key, tuple[Side, Change[EndpointSlice], float]] = {}
        self._timer: asyncio.TimerHandle | None = None

    def merge(self, side: Side, changes: Sequence[Change[EndpointSlice]]) -> None:
        """Hand on what is new, and hold removals."""
        other = self.second if side is self.first else self.first
        now = asyncio.get_running_loop().time()
        news: list[Change[EndpointSlice]] = []
        for change in changes:
            key = change.key
            if change.object is None:
                self._held[key] = (side, change, now)
            elif other.versions.get(key, -1) <= change.version:
                self._held.pop(key, None)
                news.append(change)
        if news:
            self._sink.apply({change.key: change.object for change in news})
            observe(side.statistics, news)
        self.review()

    def review(self) -> None:
        """Apply the removals that need not be held any longer."""
        if not self._held:
            return
        now = asyncio.get_running_loop().time()
        gone: list[tuple[Side, Change[EndpointSlice]]] = []
        for key, (side, change, since) in list(self._held.items()):
            other = self.second if side is self.first else self.first
            if _moved(change, other.versions.get(key)):
                del self._held[key]
            elif now - since >= side.patience or _over(change, other, since, now):
                del self._held[key]
                gone.append((side, change))
        if gone:
            self._sink.apply({change.key: None for _, change in gone})
            for side, change in gone:
                observe(side.statistics, [change])
        self._arm()

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._held:
            self._timer = asyncio.get_running_loop().call_later(LINGER, self.review)

    def stop(self) -> None:
        """Let go of the timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _moved(change: Change[EndpointSlice], elsewhere: int | None) -> bool:
    """Whether the other watch holds the object newer than it was held here.

    A version that went back is that of a restored etcd, where older numbers are newer.
    """
    return elsewhere is not None and (elsewhere > change.previous or change.version < change.previous)


def _over(change: Change[EndpointSlice], other: Side, since: float, now: float) -> bool:
    if 0 < change.version <= other.reached_version:
        return True
    return other.live_since is not None and now - max(since, other.live_since) >= LINGER
