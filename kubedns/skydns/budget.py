"""How much one wildcard may look at: so many names and so much time, whichever is first."""

from time import perf_counter
from typing import Final

from kubedns.backend import TooWideError

_MOST_SECONDS: Final = 0.005


class Budget:
    """The budget of one question."""

    __slots__ = ("_left", "_until")

    def __init__(self, names: int) -> None:
        self._left = names
        self._until = perf_counter() + _MOST_SECONDS

    def spend(self) -> None:
        """Take one name from it.  Raises TooWideError when nothing is left."""
        self._left -= 1
        if self._left < 0 or perf_counter() > self._until:
            raise TooWideError
