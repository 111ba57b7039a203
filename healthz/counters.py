"""Figures that only grow: bounds of histograms, and dnsmasq's counters added up over its restarts.

Pure; a scrape reads them, one task each writes them.
"""

from collections import deque
from dataclasses import dataclass
from typing import Final

PROBE_BOUNDS: Final = tuple(0.00025 * 2**power for power in range(16))
"""Upper bounds in seconds: 0.25 ms doubling, 16 of them, as in the original sidecar."""

COMMAND_BOUNDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Upper bounds in seconds for commands."""

RECENT: Final = 60
"""How many of the latest readings of dnsmasq the recent hit ratio is about."""


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
    two happened; what was counted until then is kept and added.
    """

    def __init__(self) -> None:
        self.last: CacheStatistics | None = None
        self._recent: deque[tuple[int, int]] = deque(maxlen=RECENT)
        self._before = CacheStatistics(0, 0, 0, 0, 0)

    def update(self, now: CacheStatistics) -> None:
        """Take in a new reading."""
        last, before = self.last, self._before
        if last is not None:
            restarted = now.hits < last.hits or now.misses < last.misses
            cleared = restarted or now.insertions < last.insertions or now.evictions < last.evictions
            self._before = CacheStatistics(
                0,
                before.insertions + last.insertions * cleared,
                before.evictions + last.evictions * cleared,
                before.hits + last.hits * restarted,
                before.misses + last.misses * restarted,
            )
        self.last = now
        self._recent.append((self._before.hits + now.hits, self._before.misses + now.misses))

    def hit_ratio(self) -> float | None:
        """Return hits / (hits + misses) over all that was counted; None when that is nothing."""
        return self._ratio((0, 0))

    def recent_hit_ratio(self) -> float | None:
        """Return the ratio over the last RECENT readings; None when nothing was asked in them."""
        return self._ratio(self._recent[0]) if self._recent else None

    @property
    def recent_readings(self) -> int:
        """How many readings the recent ratio is about; RECENT at most."""
        return len(self._recent)

    def _ratio(self, since: tuple[int, int]) -> float | None:
        if not self._recent:
            return None
        hits, misses = (now - then for now, then in zip(self._recent[-1], since, strict=True))
        return hits / (hits + misses) if hits + misses else None

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
