"""One program of the add-on as a child process, its output prefixed.

In: a command.  Out: its lines, one by one; how it ended.  The invariant: it does not outlive
this process, however that dies: the kernel sends it SIGKILL then (PR_SET_PDEATHSIG, prctl(2)).
It leads its own session, so that Ctrl-C reaches this process alone, which stops it in order.
"""

import asyncio
import ctypes
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from kubedns.local.failure import StartError
from kubedns.shared.tasks import spawn

_PR_SET_PDEATHSIG: Final = 1
_LONGEST_LINE: Final = 64 * 1024
_STOP_SECONDS: Final = 5.0
_prctl = ctypes.CDLL(None).prctl


@dataclass(frozen=True, slots=True)
class Program:
    """What to run: `name` stands before its lines; `environment` is added to ours."""

    name: str
    command: Sequence[str]
    environment: Mapping[str, str]


class Process:
    """A running program; `ended` is done when it is gone and its last line was delivered."""

    def __init__(
        self, program: Program, process: asyncio.subprocess.Process, on_line: Callable[[str, str], None]
    ) -> None:
        self.name = program.name
        self._process = process
        self._on_line = on_line
        self.ended: asyncio.Task[int] = spawn(self._follow(), name=f"output of {program.name}")

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    @classmethod
    async def start(cls, program: Program, on_line: Callable[[str, str], None]) -> "Process":
        """Run a program; `on_line` gets its name and each line.  Raises StartError."""
        try:
            process = await asyncio.create_subprocess_exec(
                *program.command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                env={**os.environ, "PYTHONUNBUFFERED": "1", **program.environment},
                limit=_LONGEST_LINE,
                start_new_session=True,
                # Two calls into libc, looked up before the fork: no lock of another thread is waited for.
                preexec_fn=_end_with(os.getpid()),
            )
        except OSError as error:
            raise StartError(f"can't run {program.command[0]}: {error.strerror}") from error
        return cls(program, process, on_line)

    async def stop(self) -> None:
        """Ask it to end, insist after some seconds, and wait until it is gone."""
        if not self.ended.done():
            self._signal(signal.SIGTERM)
            await asyncio.wait([self.ended], timeout=_STOP_SECONDS)
        if not self.ended.done():
            self._signal(signal.SIGKILL)
            await asyncio.wait([self.ended])

    def _signal(self, number: signal.Signals) -> None:
        if self._process.returncode is None:
            self._process.send_signal(number)

    async def _follow(self) -> int:
        stream = self._process.stdout
        if stream is None:
            raise RuntimeError("the child has no output")
        while line := await _next_line(stream):
            self._on_line(self.name, line.decode("utf-8", "replace").rstrip("\r\n"))
        return await self._process.wait()


async def _next_line(stream: asyncio.StreamReader) -> bytes:
    """Return a line, or a piece of one that is too long; empty at the end."""
    try:
        return await stream.readuntil(b"\n")
    except asyncio.IncompleteReadError as error:
        return error.partial
    except asyncio.LimitOverrunError as error:
        return await stream.readexactly(error.consumed)


def ending(code: int) -> str:
    """Return how a process ended, for a person."""
    if code >= 0:
        return f"ended with exit status {code}"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"was killed by signal {-code}"


def _end_with(parent: int) -> Callable[[], None]:
    """Return what a child does before exec: ask for SIGKILL at the parent's death, unless it is too late."""

    def prepare() -> None:
        _prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)

    return prepare
