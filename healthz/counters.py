"""Figures that only grow: bounds of histograms, and dnsmasq's counters added up over its restarts.

Pure; a scrape reads them, one task each writes them.
"""

from dataclasses import dataclass
from typing import Final

PROBE_BOUNDS: Final = tuple(0.00025 * 2**power for power in range(16))
"""Upper bounds in seconds: 0.25 ms doubling, 16 of them, as in the original sidecar."""

COMMAND_BOUNDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Upper bounds in seconds for commands."""


@dataclass(frozen=True, slots=True)
class CacheStatistics:
    """What dnsmasq said at a moment: `size` in entries, the others since it began to count."""

    size: int
    insertions: int
    evictions: int
    hits: int
    misses: int


class CacheTotals:
    """dnsmasq's counters, never falling.

    A restarted dnsmasq counts from zero, and SIGHUP, which clears its cache, sets insertions and
    evictions back but not hits and misses.  A counter below its last value tells which of the
    two happened, and whoever reads the figures may know of a restart that they don't show: a
    busy dnsmasq soon passes its old values.  What was counted until then is kept and added.

    `restarts` counts the restarts that were noticed.
    """

    def __init__(self) -> None:
        self.last: CacheStatistics | None = None
        self.restarts = 0
        self._before = CacheStatistics(0, 0, 0, 0, 0)

    def update(self, now: CacheStatistics, *, restarted: bool = False) -> None:
        """Take in a new reading; `restarted` when dnsmasq is known to have restarted since the last."""
        last, before = self.last, self._before
        if last is not None:
            restarted = restarted or now.hits < last.hits or now.misses < last.misses
            self.restarts += restarted
            cleared = restarted or now.insertions < last.insertions or now.evictions < last.evictions
            self._before = CacheStatistics(
                0,
                before.insertions + last.insertions * cleared,
                before.evictions + last.evictions * cleared,
                before.hits + last.hits * restarted,
                before.misses + last.misses * restarted,
            )
        self.last = now

    def totals(self) -> CacheStatistics | None:
        """Return the size as last read and the counters added up; None before the first reading."""
        if self.last is None:
            return None
        return CacheStatistics(
            self.last.size,
            self._before.insertions + self.last.insertions,
            self._before.evictions + self.last.evictions,
            self._before.hits + self.last.hits,
            self._before.misses + self.last.misses,
        )
