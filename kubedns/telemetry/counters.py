"""What the DNS server counts, as plain integers: the hot path touches nothing else.

A scrape makes the series from them: see `collectors`.  Systems, causes and buckets
are the original's.
"""

from enum import IntEnum
from operator import mul
from typing import Final

from kubedns.shared.histogram import Histogram

SYSTEMS: Final = ("auth", "cache", "recursive", "reverse", "stub")
DURATION_BUCKETS: Final = (0.001, 0.003, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
SIZE_BUCKETS: Final = (0, 512, 1024, 1500, 2048, 4096, 8192, 16384, 32768, 65535)
LARGEST_COUNTED_SIZE: Final = 1232
"""Octets up to which replies are counted by their exact size: all that goes over UDP."""


class Outcome(IntEnum):
    """How a question ended: an index into `SystemCounters.outcomes`."""

    ANSWERED = 0
    NXDOMAIN = 1
    NODATA = 2
    TRUNCATED = 3
    REFUSED = 4
    OVERFLOW = 5
    SERVFAIL = 6


CAUSES = ("", "nxdomain", "nodata", "truncated", "refused", "overflow", "servfail")


class SystemCounters:
    """What one system (see SYSTEMS) answered.

    `outcomes` counts answers by `Outcome`, truncated ones and overflows besides their rcode;
    `sizes[n]` counts replies of n octets.
    """

    __slots__ = ("durations", "large", "outcomes", "sizes", "timed")

    def __init__(self) -> None:
        self.outcomes = [0] * len(Outcome)
        self.sizes = [0] * (LARGEST_COUNTED_SIZE + 1)
        self.large = Histogram(SIZE_BUCKETS)
        self.durations = Histogram(DURATION_BUCKETS)
        self.timed = 0

    def count(self, outcome: int, size: int) -> None:
        """Count one answer and its size in octets."""
        self.outcomes[outcome] += 1
        if size <= LARGEST_COUNTED_SIZE:
            self.sizes[size] += 1
        else:
            self.large.observe(size)

    def answered(self) -> int:
        """Return the number of answers so far."""
        outcomes = self.outcomes
        return sum(outcomes) - outcomes[Outcome.TRUNCATED] - outcomes[Outcome.OVERFLOW]

    def untimed(self) -> int:
        """Return how many answers have no duration yet."""
        return self.answered() - self.timed

    def time(self, seconds: float, count: int) -> None:
        """Record that `count` answers took some time each."""
        if count:
            self.timed += count
            self.durations.observe(seconds, count)

    def size_histogram(self) -> Histogram:
        """Return the sizes of all replies."""
        merged = Histogram(SIZE_BUCKETS)
        if not self.answered():
            return merged
        merged.counts = self.large.counts.copy()
        merged.total = self.large.total + sum(map(mul, self.sizes, range(len(self.sizes))))
        first = 0
        for index, bound in enumerate(SIZE_BUCKETS):
            merged.counts[index] += sum(self.sizes[first : bound + 1])
            first = bound + 1
        return merged


class ServerCounters:
    """The counters of the DNS server, by system."""

    def __init__(self) -> None:
        self.systems = {system: SystemCounters() for system in SYSTEMS}
        self.misses = 0
        self._quick = 0.0

    def note_batch(self, seconds: float, answers: int) -> None:
        """Note the time of one wake-up of a socket, in which so many answers were given at once.

        They share it evenly.  Where that is less than the first bound, as nearly always, it only adds up
        until somebody looks.
        """
        if seconds < DURATION_BUCKETS[0] * answers:
            self._quick += seconds
        elif answers:
            self._settle(seconds, answers)

    def settle(self) -> None:
        """Bring the durations up to date; to be called before they are read."""
        self._settle(0.0, 0)

    def _settle(self, seconds: float, answers: int) -> None:
        """Record the durations of all answers since the last time, of which the latest took `seconds` together."""
        systems = self.systems["auth"], self.systems["reverse"]
        untimed = [(system, system.untimed()) for system in systems]
        total = sum(count for _, count in untimed)
        slow = min(answers, total)
        for system, count in untimed:
            slow_ones = round(count * slow / total) if total else 0
            system.time(seconds / (slow or 1), slow_ones)
            system.time(self._quick / ((total - slow) or 1), count - slow_ones)
        self._quick = 0.0
