"""Writes outcomes into their checks, and one log line whenever a check changes its state."""

import logging
from collections.abc import Awaitable, Callable

from healthz.results import Check, Outcome

_log = logging.getLogger(__name__)


class Recorder:
    """Records and tells; with `quiet` it tells only of failures."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet

    def recorded(self, run: Callable[[], Awaitable[Outcome]], check: Check) -> Callable[[], Awaitable[None]]:
        """Return `run` with its outcome put into `check`."""

        async def run_and_record() -> None:
            self.record(check, await run())

        return run_and_record

    def record(self, check: Check, outcome: Outcome) -> None:
        """Take in the end of a run of `check`."""
        before = check.since
        changed = check.record(outcome)
        _log.debug("%s: %s", check.path, outcome.failure or "healthy")
        if not changed:
            return
        if outcome.failure is not None:
            _log.warning("%s fails (%s): %s", check.path, check.detail, outcome.failure)
        elif not self._quiet:
            after = "" if before is None else f" again, after {outcome.finished - before:.1f} s"
            _log.info("%s is healthy%s (%s)", check.path, after, check.detail)
