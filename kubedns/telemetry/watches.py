"""Plain counts of what the API room does, read when metrics are scraped.

In: one call per list, watch, event. Out: attributes. Times are the event loop's, that is
`time.monotonic()`.
"""

from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, field
from typing import Final

PROPAGATION_BOUNDS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0)
"""Upper bounds in seconds of the propagation buckets; one more bucket takes the rest."""


@dataclass(slots=True)
class Propagation:
    """Histogram of the time from a change's arrival from the network to its being answered."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(PROPAGATION_BOUNDS) + 1))
    total: float = 0.0

    def observe(self, seconds: float) -> None:
        """Count one change; a bound belongs to its bucket."""
        self.counts[bisect_left(PROPAGATION_BOUNDS, seconds)] += 1
        self.total += seconds


@dataclass(slots=True)
class ResourceStatistics:
    """Counts of one list-watch; `name` is its label in metrics.

    `lists` by outcome: ok, or a Fault.  `watches` by end: timeout (the regular one), quiet (the
    client's own deadline: the peer was dead), short (accepted and closed at once), closed, or a
    Fault.  `repairs`: objects a periodic relist had to put right.  `last_activity`: time of the
    last event or bookmark, None before the first.
    """

    name: str
    lists: Counter[str] = field(default_factory=Counter)
    watches: Counter[str] = field(default_factory=Counter)
    events: Counter[str] = field(default_factory=Counter)
    repairs: int = 0
    objects: int = 0
    synced: bool = False
    last_activity: float | None = None
    propagation: Propagation = field(default_factory=Propagation)
