"""From a reflector to a Sink: versioned changes in, the Sink's mapping out.

In: Changes of one reflector, at most a batch at a time, in order.
Out: one `Sink.apply` for each batch.
"""

import asyncio
from collections.abc import Sequence
from typing import Generic, NamedTuple, Protocol, TypeVar

from kubedns.objects import Key, Sink
from kubedns.telemetry.watches import ResourceStatistics

T = TypeVar("T")


class Change(NamedTuple, Generic[T]):
    """The new state of one object, None when it is gone.

    `version` is the resource version of the change; where a list did not have an object any
    more, that of the list.  `previous` is the version held before, 0 for none.  `arrival` is when
    its bytes came from a watch, None from a list.
    """

    key: Key
    version: int
    previous: int
    object: T | None
    arrival: float | None = None


class Delivery(Protocol[T]):
    """Who takes a reflector's changes."""

    def apply(self, changes: Sequence[Change[T]]) -> None:
        """Take over changes; no key comes twice."""

    def reached(self, version: int) -> None:
        """All changes up to a resource version were delivered."""

    def connected(self, live: bool) -> None:
        """The watch was established, or has ended."""


class DirectDelivery(Generic[T]):
    """Hands every change to the Sink at once."""

    def __init__(self, sink: Sink[T], statistics: ResourceStatistics) -> None:
        self._sink = sink
        self._statistics = statistics

    def apply(self, changes: Sequence[Change[T]]) -> None:
        """Hand the changes over, then note how long those of a watch took."""
        self._sink.apply({change.key: change.object for change in changes})
        observe(self._statistics, changes)

    def reached(self, version: int) -> None:
        """Do nothing: nothing waits for a version."""

    def connected(self, live: bool) -> None:
        """Do nothing: nothing waits for a connection."""


def observe(statistics: ResourceStatistics, changes: Sequence[Change[T]]) -> None:
    """Note the time from arrival to now of the changes that came from a watch."""
    now = asyncio.get_running_loop().time()
    for change in changes:
        if change.arrival is not None:
            statistics.propagation.observe(now - change.arrival)
