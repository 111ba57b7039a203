"""Plain counts of the list-watches, read at each scrape.

Times are the event loop's, that is
`time.monotonic()`.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from kubedns.shared.histogram import Histogram

PROPAGATION_BOUNDS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0)
"""Upper bounds in seconds of the propagation buckets; one more bucket takes the rest."""


@dataclass(slots=True)
class ResourceStatistics:
    """Counts of one list-watch; `name` is its label in metrics.

    `lists` by outcome: ok, or a Fault.  `watches` by end: timeout (the regular one), quiet (the
    client's own deadline: the peer was dead), short (accepted and closed at once), closed, or a
    Fault.  `repairs`: objects a periodic relist had to put right.  `last_activity`: time of the
    last event or bookmark, None before the first.  `propagation`: seconds from a change's arrival
    from the network to its being answered.
    """

    name: str
    lists: Counter[str] = field(default_factory=Counter)
    watches: Counter[str] = field(default_factory=Counter)
    repairs: int = 0
    last_activity: float | None = None
    propagation: Histogram = field(default_factory=lambda: Histogram(PROPAGATION_BOUNDS))
