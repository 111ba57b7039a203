"""Carries out what the supervisor decides, and tells it what happens.

In: wanted arguments, what the child says and how it ends, timers.  Out: the child's life; `over`
when nothing is left to do.  Reads dnsmasq's log lines: `started, version` means that it answers,
`Address already in use` that its port is not free yet.
"""

import asyncio
import logging
import re
import signal
from typing import Final

from nanny.arguments import Arguments
from nanny.child import Child, ExitStatus, PreparedChild
from nanny.metrics import Metrics
from nanny.reaper import Reaper
from nanny.supervisor import (
    Action,
    ClearCache,
    End,
    Event,
    Exited,
    GraceOver,
    Kill,
    LogStatistics,
    Ready,
    Reason,
    RetryAfter,
    RetryDue,
    Spawn,
    State,
    Supervisor,
    Terminate,
)
from nanny.trial import refusal

_log = logging.getLogger(__name__)

_GRACE: Final = 1.0
"""Seconds from SIGTERM to SIGKILL; dnsmasq needs a few milliseconds."""

_SETTLED: Final = 1.0
"""Seconds after which a child that logs elsewhere counts as up."""

_PREPARED_WITHIN: Final = 1.0
"""Seconds to wait at most for a prepared child; a restart without one only takes longer."""

_LONGEST_COMMAND_SHOWN = 2000
_STARTED = re.compile(r"dnsmasq\[\d+\]: started, version (\S+)")
_CEILING = re.compile(r"dnsmasq(\[\d+\])?: Maximum number of concurrent")
_PORT_BUSY = "Address already in use"
_NO_REASON = "FAILED to start up"
"""In dnsmasq's very last line, behind the one that has the reason."""


class Keeper:
    """Owns the child and the timers about it; runs on one loop."""

    def __init__(self, dnsmasq: str, reaper: Reaper, metrics: Metrics) -> None:
        self._dnsmasq = dnsmasq
        self._reaper = reaper
        self._metrics = metrics
        self._supervisor = Supervisor()
        self._child: Child | None = None
        self._running: Arguments | None = None
        self._prepared: PreparedChild | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._last_line = ""
        self._up_since: float | None = None
        self._busy_port = False
        self._waits_for_port = False
        self.fallen_back = False
        """Whether the child runs with older arguments than those wanted, with which it failed."""
        self.over: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        """Done when the child is gone for good: None when that was asked for, else why."""

    @property
    def alive(self) -> bool:
        """Whether there is a child."""
        return self._child is not None

    async def refusal(self, arguments: Arguments, servers: Arguments = ()) -> str | None:
        """Return why dnsmasq refuses the arguments with these servers, None when it takes them.

        A child with the arguments alone, when they are not those of the running one, is then
        prepared, so that its start takes less time.  Raises OSError when dnsmasq cannot be executed.
        """
        if arguments == self._running:
            return await refusal(self._dnsmasq, (*arguments, *servers), self._reaper)
        prepared = self._prepare(arguments)
        refused: str | None = "not tried"
        try:
            refused = await refusal(self._dnsmasq, (*arguments, *servers), self._reaper)
            await asyncio.wait({prepared.ready}, timeout=_PREPARED_WITHIN)
        finally:
            if refused is not None:
                self._discard()
        return refused

    def feed(self, event: Event) -> None:
        """Let the supervisor decide about an event, and carry it out."""
        before = self._supervisor.state
        for action in self._supervisor.handle(event):
            self._perform(action)
        if self._supervisor.state is State.RUNNING is not before:
            self._up()

    def _perform(self, action: Action) -> None:
        match action:
            case Spawn():
                self._spawn(action)
            case Terminate():
                self._signal_group(signal.SIGTERM)
                self._after(_GRACE, GraceOver())
            case Kill():
                _log.warning("dnsmasq did not end within %g s of SIGTERM: killing it", _GRACE)
                self._signal_group(signal.SIGKILL)
            case RetryAfter():
                self._retry(action)
            case ClearCache():
                self._signal(signal.SIGHUP)
            case LogStatistics():
                self._signal(signal.SIGUSR1)
            case End(failure):
                self._discard()
                if not self.over.done():
                    self.over.set_result(failure)

    def _spawn(self, action: Spawn) -> None:
        self._busy_port, self._last_line = False, ""
        self._running = action.arguments
        command = (self._dnsmasq, *action.arguments)
        try:
            prepared = self._prepared
            if prepared is None or prepared.command != command:
                prepared = self._prepare(action.arguments)
            prepared.release()
            self._child, self._prepared = prepared, None
        except OSError as error:
            gone = Exited(f"cannot execute {error.filename or self._dnsmasq}: {error.strerror}")
            asyncio.get_running_loop().call_soon(self.feed, gone)
            return
        self._child.ended.add_done_callback(self._exited)
        self._after(_SETTLED, Ready())
        self._metrics.spawned(action.reason)
        if action.reason not in {Reason.PORT_BUSY, Reason.DIED}:
            self.fallen_back = action.reason is Reason.FALLBACK
        if action.reason is Reason.FALLBACK:
            _log.error("dnsmasq fails with the new arguments: going back to the last that worked")
            self._metrics.not_in_effect()
        if action.reason is not Reason.PORT_BUSY:
            verb = "starting" if action.reason is Reason.START else "restarting"
            _log.info("%s %s", verb, " ".join(command)[:_LONGEST_COMMAND_SHOWN])

    def _retry(self, action: RetryAfter) -> None:
        if action.died is not None:
            pause = f" in {action.seconds:g} s" if action.seconds else ""
            _log.error("%s: starting it again%s", action.died, pause)
        else:
            if not self._waits_for_port:
                _log.warning("dnsmasq's port is in use by another process: trying again until it is free")
            self._waits_for_port = True
        self._after(action.seconds, RetryDue())

    def _prepare(self, arguments: Arguments) -> PreparedChild:
        self._discard()
        self._prepared = PreparedChild((self._dnsmasq, *arguments), self._reaper, self._take_line)
        return self._prepared

    def _discard(self) -> None:
        if self._prepared is not None:
            self._prepared.discard()
        self._prepared = None

    def _exited(self, ended: "asyncio.Future[ExitStatus]") -> None:
        self._child = None
        self._metrics.down()
        self._cancel_timer()
        status = ended.result()
        # What it said last is the reason only when it gave up by itself.
        reason = f": {self._last_line}" if self._last_line and status.code > 0 else ""
        since, self._up_since = self._up_since, None
        up = asyncio.get_running_loop().time() - since if since is not None else 0.0
        self.feed(Exited(f"dnsmasq {status}{reason}", self._busy_port, up))

    def _up(self) -> None:
        self._cancel_timer()
        self._up_since = asyncio.get_running_loop().time()
        self._metrics.up()
        if self._waits_for_port:
            _log.info("dnsmasq got its port")
        self._waits_for_port = False

    def _take_line(self, line: str) -> None:
        if _NO_REASON not in line:
            self._last_line = line
        if _PORT_BUSY in line and self._supervisor.state is State.STARTING:
            self._busy_port = True
            if self._waits_for_port:
                return
        _log.info("%s", line)
        if started := _STARTED.match(line):
            self._metrics.version(started[1])
            self.feed(Ready())
        elif _CEILING.match(line):
            self._metrics.ceiling_reached()

    def _signal(self, number: signal.Signals) -> None:
        if self._child is not None:
            self._child.signal(number)

    def _signal_group(self, number: signal.Signals) -> None:
        if self._child is not None:
            self._child.signal_group(number)

    def _after(self, seconds: float, event: Event) -> None:
        """Feed an event later, unless the next one that needs the timer, or the child's end, is sooner."""
        self._cancel_timer()
        self._timer = asyncio.get_running_loop().call_later(seconds, self.feed, event)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None
