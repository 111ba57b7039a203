"""One child process: spawned, heard, signalled, and reported once it is gone.

In: a command.  Out: its output line by line, and how it ended.  It leads its own process group,
which goes with it: what dnsmasq forks for TCP clients would hold its port.  It gets SIGTERM when
this process dies, however that happens (PR_SET_PDEATHSIG, prctl(2)); the kernel forgets that
when the child changes its uid or gid, or when its binary has capabilities.
"""

import asyncio
import ctypes
import os
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from signal import SIGTERM, Signals
from typing import Final

from nanny.reaper import Reaper, signal_group
from nanny.relay import LineRelay

_PR_SET_PDEATHSIG: Final = 1
_prctl = ctypes.CDLL(None).prctl


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

    def __init__(self, command: Sequence[str], reaper: Reaper, on_line: Callable[[str], None]) -> None:
        """Spawn the command; must be called on the loop, in the main thread: its end is what counts.

        Raises OSError when the command cannot be executed.
        """
        self.ended: asyncio.Future[ExitStatus] = asyncio.get_running_loop().create_future()
        output, child_end = os.pipe()
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=child_end,
                stderr=child_end,
                env={**os.environ, "LC_ALL": "C"},
                process_group=0,
                # Two calls into libc, looked up before the fork: no lock of another thread is waited for.
                preexec_fn=_end_with(os.getpid()),  # noqa: PLW1509
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


def _end_with(parent: int) -> Callable[[], None]:
    """Return what a child does before exec: ask for SIGTERM at the parent's death, unless it is too late."""

    def prepare() -> None:
        _prctl(_PR_SET_PDEATHSIG, int(SIGTERM), 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)

    return prepare
