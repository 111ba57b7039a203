"""The life of the dnsmasq child, as a state machine.

In: events, one at a time.  Out: the actions to carry out, in order.  Pure: no process, no clock.
Invariants: at most one child; a child is only spawned when there is none; after End nothing
follows.

    STARTING  no child yet, or one that does not answer yet, or the pause before another try
    RUNNING   the child is up
    STOPPING  the child was told to end: for other arguments, or for good
    EXITED    nothing is left

Differs: the original starts the next dnsmasq while the last one still holds the port, and ends when
dnsmasq dies, which kubelet's back-off makes an outage of up to five minutes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from nanny.arguments import Arguments

FIRST_RETRY: Final = 0.01
LONGEST_RETRY: Final = 1.0
"""Seconds between tries on a busy port: doubled from the first to the longest."""

STEADY: Final = 2.0
"""Seconds up after which a death is a new story, not one more of a child that keeps dying."""

RESTARTS: Final = (0.0, 0.1, 0.2, 0.4, 0.8)
"""Seconds before each start after a quick death; one more in a row, and a new container may help."""


class State(Enum):
    """Where the child stands."""

    STARTING = auto()
    RUNNING = auto()
    STOPPING = auto()
    EXITED = auto()


class Reason(Enum):
    """Why a child is spawned; the value is the label of the metric."""

    START = "start"
    CONFIG = "config"
    PORT_BUSY = "port_busy"
    FALLBACK = "fallback"
    DIED = "died"


@dataclass(frozen=True, slots=True)
class Wanted:
    """The child shall run with these arguments, and with its files, which may have changed, as they are."""

    arguments: Arguments
    files_changed: bool = False


@dataclass(frozen=True, slots=True)
class Ready:
    """The child answers."""


@dataclass(frozen=True, slots=True)
class Exited:
    """The child and its whole process group are gone; `how` is for a person.

    `up` is for how many seconds it was up.
    """

    how: str
    port_busy: bool = False
    up: float = 0.0


@dataclass(frozen=True, slots=True)
class RetryDue:
    """The pause before another try is over."""


@dataclass(frozen=True, slots=True)
class GraceOver:
    """The child was told to end and has not."""


@dataclass(frozen=True, slots=True)
class Stop:
    """End the child and then everything."""


@dataclass(frozen=True, slots=True)
class FilesChanged:
    """A file that it reads was written."""


@dataclass(frozen=True, slots=True)
class StatisticsDue:
    """The child shall log its statistics."""


Event = Wanted | Ready | Exited | RetryDue | GraceOver | Stop | FilesChanged | StatisticsDue


@dataclass(frozen=True, slots=True)
class Spawn:
    """Start a child."""

    arguments: Arguments
    reason: Reason


@dataclass(frozen=True, slots=True)
class Terminate:
    """Tell the child to end, and report GraceOver when it has not after the grace time."""


@dataclass(frozen=True, slots=True)
class Kill:
    """Kill the child's process group."""


@dataclass(frozen=True, slots=True)
class RetryAfter:
    """Report RetryDue after some seconds; `died` says how the child died, None: its port is busy."""

    seconds: float
    died: str | None = None


@dataclass(frozen=True, slots=True)
class ClearCache:
    """Make the child forget cached answers and read its files again."""


@dataclass(frozen=True, slots=True)
class LogStatistics:
    """Make the child log its statistics."""


@dataclass(frozen=True, slots=True)
class End:
    """All is over; `failure` says why when it was not asked for."""

    failure: str | None


Action = Spawn | Terminate | Kill | RetryAfter | ClearCache | LogStatistics | End


class Supervisor:
    """Owns the state of the one child."""

    def __init__(self) -> None:
        self.state = State.STARTING
        self._wanted: Arguments | None = None
        self._current: Arguments | None = None
        self._good: Arguments | None = None
        self._alive = False
        self._final = False
        self._files_missed = False
        self._pause = FIRST_RETRY
        self._deaths = 0
        self._retry_reason = Reason.PORT_BUSY

    def handle(self, event: Event) -> Sequence[Action]:
        """Take an event in and return what is to do now."""
        actions: Sequence[Action] = ()
        match event:
            case Wanted(arguments, files_changed):
                actions = self._want(arguments, files_changed)
            case Ready():
                actions = self._ready()
            case Exited():
                actions = self._exited(event)
            case RetryDue() if self._pausing:
                actions = self._spawn(self._retry_reason)
            case GraceOver() if self.state is State.STOPPING:
                actions = [Kill()]
            case Stop():
                actions = self._stop()
            case FilesChanged():
                actions = self._files_changed()
            case StatisticsDue() if self.state is State.RUNNING:
                # Sooner, before its handlers are set, the signal would end dnsmasq.
                actions = [LogStatistics()]
            case _:
                pass
        return actions

    @property
    def _pausing(self) -> bool:
        return self.state is State.STARTING and not self._alive and self._current is not None

    def _want(self, arguments: Arguments, files_changed: bool) -> Sequence[Action]:
        if self._final or self.state is State.EXITED:
            return []
        self._wanted = arguments
        if self._current is None:
            return self._spawn(Reason.START)
        if self._alive and self.state is not State.STOPPING and arguments != self._current:
            self.state = State.STOPPING
            return [Terminate()]
        return self._files_changed() if files_changed else []

    def _ready(self) -> Sequence[Action]:
        if self.state is not State.STARTING or not self._alive:
            return []
        self.state = State.RUNNING
        self._good = self._current
        self._pause = FIRST_RETRY
        missed, self._files_missed = self._files_missed, False
        return [ClearCache()] if missed else []

    def _files_changed(self) -> Sequence[Action]:
        """Tell a child that is up; one that starts may have read them already, and is told later."""
        if self.state is State.RUNNING:
            return [ClearCache()]
        self._files_missed = True
        return []

    def _exited(self, event: Exited) -> Sequence[Action]:
        self._alive = False
        if self.state is State.STOPPING and not self._final:
            return self._spawn(Reason.CONFIG)
        if self.state is State.STARTING and event.port_busy:
            pause, self._pause = self._pause, min(2 * self._pause, LONGEST_RETRY)
            self._retry_reason = Reason.PORT_BUSY
            return [RetryAfter(pause)]
        if self.state is State.STARTING and self._good not in (None, self._current):
            # dnsmasq took these arguments when it tested them, and failed with them.
            self._wanted = self._good
            return self._spawn(Reason.FALLBACK)
        if not self._final and self._good is not None:
            return self._died(event)
        return self._end(event)

    def _died(self, event: Exited) -> Sequence[Action]:
        """Start a child again that was up with these arguments, unless it keeps dying."""
        if event.up >= STEADY:
            self._deaths = 0
        if self._deaths == len(RESTARTS):
            return self._end(event)
        pause = RESTARTS[self._deaths]
        self._deaths += 1
        self.state, self._retry_reason = State.STARTING, Reason.DIED
        return [RetryAfter(pause, event.how)]

    def _end(self, event: Exited) -> Sequence[Action]:
        self.state = State.EXITED
        return [End(None if self._final else event.how)]

    def _stop(self) -> Sequence[Action]:
        if self._final or self.state is State.EXITED:
            return []
        self._final = True
        if not self._alive:
            self.state = State.EXITED
            return [End(None)]
        terminated, self.state = self.state is State.STOPPING, State.STOPPING
        return [] if terminated else [Terminate()]

    def _spawn(self, reason: Reason) -> Sequence[Action]:
        assert self._wanted is not None
        self.state, self._current, self._alive = State.STARTING, self._wanted, True
        self._files_missed = False
        return [Spawn(self._wanted, reason)]
