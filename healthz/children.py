"""Child processes, each in a process group of its own, and orphans when this is PID 1.

A group is killed before its leader is reaped: until then the kernel gives its number to nobody
else.  Source: wait(2), pidfd_open(2) (Linux 5.3), and the duty of a container's first process.
"""

import asyncio
import contextlib
import os
import signal
import subprocess


class Children:
    """Starts processes, and reaps the orphans that the kernel hands over without touching these."""

    def __init__(self) -> None:
        self._own: set[int] = set()

    def start(self, command: str, output: int) -> "ProcessGroup":
        """Run `sh -c command` with both of its outputs to a file descriptor; raises OSError."""
        process = subprocess.Popen(
            ["/bin/sh", "-c", command],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            group = ProcessGroup(self, process)
        except OSError:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise
        self._own.add(process.pid)
        return group

    def forget(self, pid: int) -> None:
        """Note that a process was reaped."""
        self._own.discard(pid)
        self.reap_orphans()

    def reap_orphans(self) -> None:
        """Reap what has ended and was not started here; to be called at each SIGCHLD."""
        with contextlib.suppress(ChildProcessError):
            while (ended := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)) is not None:
                if ended.si_pid in self._own:
                    return  # its own task reaps it, and then comes back here
                os.waitpid(ended.si_pid, os.WNOHANG)


class ProcessGroup:
    """One child and what it has started; the child leads the group."""

    def __init__(self, children: Children, process: "subprocess.Popen[bytes]") -> None:
        self._children = children
        self._process = process
        self._handle = os.pidfd_open(process.pid)

    def kill(self) -> None:
        """Send SIGKILL to the whole group; must come before `reap`."""
        # Gone altogether, or what is left runs as another user (a setuid program).
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)

    async def ended(self) -> None:
        """Wait until the child has ended, whoever still holds its files open."""
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[None] = loop.create_future()
        loop.add_reader(self._handle, _complete, ended)
        try:
            await ended
        finally:
            loop.remove_reader(self._handle)

    def reap(self) -> int:
        """Return the exit status, negative for a signal; waits, so it belongs after `ended`."""
        os.close(self._handle)
        status = self._process.wait()
        self._children.forget(self._process.pid)
        return status


def _complete(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)
