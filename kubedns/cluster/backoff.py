"""Waiting between tries: exponential, jittered, bounded.

In: failures and successes. Out: seconds to wait.
"""

from random import Random
from typing import Final

FIRST = 0.8
LONGEST = 30.0
DOUBLING: Final = 2.0
_JITTER = 0.3


class Backoff:
    """The delay grows with every failure in a row, from 0.8 s to 30 s, plus up to 30 % of jitter."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._delay = FIRST
        self.failures = 0

    def reset(self) -> None:
        """Begin again after a success."""
        self._delay = FIRST
        self.failures = 0

    def next(self, growth: float = DOUBLING) -> float:
        """Count a failure and return the seconds to wait after it; the next wait is `growth` times as long."""
        delay = self._delay
        self._delay = min(delay * growth, LONGEST)
        self.failures += 1
        return self._jittered(delay)

    def shortest(self) -> float:
        """Return the first delay, for a try that got somewhere; nothing is counted."""
        return self._jittered(FIRST)

    def _jittered(self, delay: float) -> float:
        return delay * (1 + _JITTER * self._random.random())
