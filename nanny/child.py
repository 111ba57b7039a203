"""One child process: spawned, heard, signalled, and reported once it is gone.

In: a command.  Out: its output line by line, and how it ended.  It leads its own process group,
which goes with it: what dnsmasq forks for TCP clients would hold its port.
"""

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from signal import Signals
from typing import Final

from nanny import launch
from nanny.reaper import Reaper, signal_group
from nanny.relay import LineRelay

OnLine = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class ExitStatus:
    """How a process ended: its exit status, or the number of the signal negated."""

    code: int

    def __str__(self) -> str:
        if self.code >= 0:
            return f"exited with status {self.code}"
        try:
            return f"was killed by {Signals(-self.code).name}"
        except ValueError:
            return f"was killed by signal {-self.code}"


class Child:
    """A running child.

    `ended` is done when the process and its group are gone and the last line was delivered.
    """

    def __init__(
        self, command: Sequence[str], reaper: Reaper, on_line: OnLine, stdin: int = subprocess.DEVNULL
    ) -> None:
        """Spawn the command on the running loop; raises OSError when it cannot be executed."""
        self.ended: asyncio.Future[ExitStatus] = asyncio.get_running_loop().create_future()
        output, child_end = os.pipe()
        try:
            self._process = subprocess.Popen(
                command,
                stdin=stdin,
                stdout=child_end,
                stderr=child_end,
                env={**os.environ, "LC_ALL": "C"},
                process_group=0,
            )
        except BaseException:
            os.close(output)
            raise
        finally:
            os.close(child_end)
        self.pid: Final = self._process.pid
        self._relay = LineRelay(output, on_line)
        reaper.watch(self.pid, self._exited)

    def signal(self, number: Signals) -> None:
        """Send a signal to the process alone."""
        if not self.ended.done():
            os.kill(self.pid, number)

    def signal_group(self, number: Signals) -> None:
        """Send a signal to the process and all that it forked."""
        if not self.ended.done():
            signal_group(self.pid, number)

    def _exited(self, wait_status: int) -> None:
        self._relay.finish()
        self._process.returncode = os.waitstatus_to_exitcode(wait_status)
        self.ended.set_result(ExitStatus(self._process.returncode))


class PreparedChild(Child):
    """A child that waits to be released before it executes its command, as `launch` describes.

    It gets SIGTERM when this process dies, however that happens; the kernel forgets that when the
    command changes its uid or gid, or when its file has capabilities.  Must be made in the main
    thread: the death of the thread that spawns is what counts.
    """

    def __init__(self, command: Sequence[str], reaper: Reaper, on_line: OnLine) -> None:
        self.command: Final = tuple(command)
        loop = asyncio.get_running_loop()
        self.ready: asyncio.Future[None] = loop.create_future()
        """Done when it can be released without delay, or will never be."""
        self._line, end = socket.socketpair()
        words = (sys.executable, "-I", "-S", str(Path(launch.__file__)), str(os.getpid()), *command)
        try:
            super().__init__(words, reaper, on_line, stdin=end.fileno())
        except BaseException:
            self._line.close()
            raise
        finally:
            end.close()
        loop.add_reader(self._line, self._ready)

    def release(self) -> None:
        """Let it execute its command."""
        with contextlib.suppress(BrokenPipeError):  # it is gone already, which `ended` reports
            self._line.send(b"\n")
        self.discard()

    def discard(self) -> None:
        """Let it end without executing anything, unless it was released."""
        self._ready()
        self._line.close()

    def _ready(self) -> None:
        if not self.ready.done():
            asyncio.get_running_loop().remove_reader(self._line)
            self.ready.set_result(None)
