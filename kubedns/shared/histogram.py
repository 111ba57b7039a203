"""A histogram as Prometheus defines it, for all three programs: plain integers until a scrape."""

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate


class Histogram:
    """Counts of observations by upper bound, which is inclusive, and their sum.

    `counts` are those of each bound alone, the last one of what lies above them all.
    """

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def observe(self, value: float, times: int = 1) -> None:
        """Count a value, `times` times."""
        self.counts[bisect_left(self.bounds, value)] += times
        self.total += value * times

    def cumulative(self) -> list[int]:
        """Return for each bound, and last for all, how many values were not above it."""
        return list(accumulate(self.counts))

    def buckets(self) -> list[tuple[str, float]]:
        """Return the cumulative buckets as Prometheus wants them."""
        bounds = [str(float(bound)) for bound in self.bounds]
        return list(zip([*bounds, "+Inf"], map(float, self.cumulative()), strict=True))
