"""Waiting between tries: exponential, jittered, bounded.

In: failures and successes. Out: seconds to wait.
"""

from random import Random

FIRST = 0.8
LONGEST = 30.0
_JITTER = 0.3


class Backoff:
    """The delay doubles with every failure in a row, from 0.8 s to 30 s, plus up to 30 % of jitter."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self.failures = 0

    def reset(self) -> None:
        """Begin again after a success."""
        self.failures = 0

    def next(self) -> float:
        """Count a failure and return the seconds to wait after it."""
        delay = min(FIRST * (1 << min(self.failures, 10)), LONGEST)
        self.failures += 1
        return delay * (1 + _JITTER * self._random.random())

    def shortest(self) -> float:
        """Return the first delay, for a try that got somewhere; nothing is counted."""
        return FIRST * (1 + _JITTER * self._random.random())
