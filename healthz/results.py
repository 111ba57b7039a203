"""What a run found -> what its url says; the hand-over from the probes to web, page and metrics.

A Check is written by the task that runs it and read by all others.  Pure: `now` and the times
of outcomes come from one monotonic clock, in seconds, and are passed in.
"""

from collections import deque
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from kubedns.shared.histogram import Histogram

HISTORY: Final = 60
"""How many outcomes a check remembers for the page."""


class State(StrEnum):
    """What a check says at a moment."""

    WAITING = "waiting"
    HEALTHY = "healthy"
    FAILED = "failed"
    STALE = "stale"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of one run.

    `failure` is the reason, None when all is well.  `duration` is None when there is nothing to
    measure, as for a question without a reply.  `output` is what there is to show, cut short.
    """

    finished: float
    duration: float | None
    failure: str | None = None
    output: bytes = b""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The state of a check at a moment, and the reason when it isn't healthy."""

    state: State
    reason: str = ""

    @property
    def healthy(self) -> bool:
        """Whether the url answers 200."""
        return self.state is State.HEALTHY


class Check:
    """One url: its last outcome, since when it has been so, a short history, its counts.

    `path` is the url, `title` and `detail` say to a person what is run.  A last outcome older
    than `stale_after` seconds no longer counts.
    """

    def __init__(self, path: str, title: str, detail: str, *, stale_after: float, latency: Histogram) -> None:
        self.path = path
        self.title = title
        self.detail = detail
        self.stale_after = stale_after
        self.latency = latency
        self.successes = 0
        self.failures = 0
        self.last: Outcome | None = None
        self.since: float | None = None
        self.history: deque[tuple[float | None, bool]] = deque(maxlen=HISTORY)

    def record(self, outcome: Outcome) -> bool:
        """Take in the end of a run; return whether it changed healthy to failed or back."""
        healthy = outcome.failure is None
        changed = self.last is None or (self.last.failure is None) != healthy
        if changed:
            self.since = outcome.finished
        self.last = outcome
        self.history.append((outcome.duration, healthy))
        if outcome.duration is not None:
            self.latency.observe(outcome.duration)
        if healthy:
            self.successes += 1
        else:
            self.failures += 1
        return changed

    def verdict(self, now: float) -> Verdict:
        """Return what the url says at `now`; never healthy without a recent good outcome."""
        if self.last is None:
            return Verdict(State.WAITING, "no result yet: the first run has not ended")
        age = now - self.last.finished
        if age > self.stale_after:
            found = "good" if self.last.failure is None else f"bad ({self.last.failure})"
            return Verdict(
                State.STALE,
                f"the last result, {found}, is {age:.1f} s old; after {self.stale_after:g} s it does not count",
            )
        if self.last.failure is not None:
            return Verdict(State.FAILED, self.last.failure)
        return Verdict(State.HEALTHY)
