"""How much one wildcard may look at: so many names and so much CPU time, whichever is first."""

from time import thread_time
from typing import Final

from kubedns.backend import TooWideError

_MOST_SECONDS: Final = 0.005


class Budget:
    """The budget of one question."""

    __slots__ = ("_left", "_until")

    def __init__(self, names: int) -> None:
        self._left = names
        self._until = thread_time() + _MOST_SECONDS

    def spend(self, names: int) -> None:
        """Take names from it.  Raises TooWideError when there are not as many, or no time, left."""
        self._left -= names
        if self._left < 0 or thread_time() > self._until:
            raise TooWideError
