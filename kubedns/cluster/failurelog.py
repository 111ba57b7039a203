"""What stands in the way of the list-watches, as lines for people.

In: failures of several list-watches, each `cannot REQUEST: CAUSE`.  Out: one line for each step of
waiting, though the same cause stops all of them at about the same time.
"""

import asyncio
import logging

_log = logging.getLogger(__name__)


def cause_of(failure: str) -> str:
    """Return a failure without the request that failed: the same for all list-watches that it stops."""
    return failure.partition(": ")[2] or failure


class FailureLog:
    """Shared by the list-watches of one API server."""

    def __init__(self) -> None:
        self._quiet_until: dict[str, float] = {}

    def note(self, failure: str, delay: float) -> None:
        """Log a failure, and the seconds until the next try; not if its cause was logged within half of them."""
        now = asyncio.get_running_loop().time()
        cause = cause_of(failure)
        self._quiet_until = {known: until for known, until in self._quiet_until.items() if until > now}
        if cause in self._quiet_until:
            return
        self._quiet_until[cause] = now + delay / 2
        _log.warning("%s; next try in %.1f s", failure, delay)
