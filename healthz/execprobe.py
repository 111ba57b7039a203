"""One run of a command -> an Outcome.

`sh -c` in a process group of its own; when the shell has ended, or at the limit, the whole group
is killed, so that nothing is left behind by a run.  The output is read all the time and kept up
to a cap.  Differs: the original lets a command that hangs run on.
"""

import asyncio
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from healthz.children import Children
from healthz.results import Outcome
from healthz.schedule import Clock

KEPT_OUTPUT: Final = 16 * 1024
"""Octets of a command's output that are kept, from its beginning."""

_CHUNK = 64 * 1024
_CHUNKS_AFTER_END = 32


class CommandRunner:
    """Runs commands; each is killed after `limit` seconds."""

    def __init__(self, children: Children, limit: float, clock: Clock) -> None:
        self._children = children
        self._limit = limit
        self._clock = clock

    async def run(self, command: str) -> Outcome:
        """Run a command once, to its end or the limit.

        Returns when nothing of its group is left but what the kernel can't kill.  When cancelled
        it kills the group first.
        """
        begun = self._clock()
        try:
            with _captured() as output:
                failure = await self._run(command, output)
        except OSError as error:
            failure, kept = f"the command can't be run: {error.strerror}", b""
        else:
            kept = output.kept()
        finished = self._clock()
        return Outcome(finished, finished - begun, failure, kept)

    async def _run(self, command: str, output: "_Output") -> str | None:
        try:
            group = self._children.start(command, output.write_end)
        finally:
            os.close(output.write_end)
        late = None
        try:
            async with asyncio.timeout(self._limit):
                await group.ended()
        except TimeoutError:
            late = f"killed with its process group: not done after {self._limit:g} s"
        except asyncio.CancelledError:
            group.kill()
            group.reap()
            raise
        group.kill()
        await group.ended()
        status = group.reap()
        return late or _failure(status)


def _failure(status: int) -> str | None:
    if status == 0:
        return None
    if status < 0:
        return f"killed by {_signal_name(-status)}"
    if status > 128 and (name := _signal_name(status - 128)).startswith("SIG"):
        return f"exit status {status} (128 + {name})"
    return f"exit status {status}"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


class _Output:
    """Both ends of a pipe; what comes out is kept up to a cap, the rest counted and dropped."""

    def __init__(self, read_end: int, write_end: int) -> None:
        self.read_end = read_end
        self.write_end = write_end
        self._kept = bytearray()
        self._octets = 0

    def read(self) -> bool:
        """Take one chunk; return whether there may be more."""
        try:
            chunk = os.read(self.read_end, _CHUNK)
        except BlockingIOError:
            return False
        if not chunk:
            asyncio.get_running_loop().remove_reader(self.read_end)
            return False
        self._octets += len(chunk)
        self._kept += chunk[: KEPT_OUTPUT - len(self._kept)]
        return True

    def kept(self) -> bytes:
        """Return the beginning of the output, with a note when there was more."""
        dropped = self._octets - len(self._kept)
        return bytes(self._kept) + (b"\n[and %d octets more]" % dropped if dropped else b"")


@contextmanager
def _captured() -> Iterator[_Output]:
    """Open a pipe and read it as it fills; whoever still holds it at the end is left alone."""
    loop = asyncio.get_running_loop()
    read_end, write_end = os.pipe()
    os.set_blocking(read_end, False)
    output = _Output(read_end, write_end)
    loop.add_reader(read_end, output.read)
    try:
        yield output
        for _ in range(_CHUNKS_AFTER_END):
            if not output.read():
                break
    finally:
        loop.remove_reader(read_end)
        os.close(read_end)
