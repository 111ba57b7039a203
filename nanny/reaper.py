"""Collects ended processes: our own children, and orphans that are handed to us.

In: SIGCHLD.  Out: a call for each child of ours, with its wait status, when it and its whole
process group are gone.  It is the only caller of wait, so no status is lost or stolen.  As PID 1
of a container, or as a subreaper (prctl(2)), the orphans of other processes are collected too.
"""

import asyncio
import ctypes
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

OnExit = Callable[[int], None]
"""Takes a wait status as of waitpid(2)."""

_PR_SET_CHILD_SUBREAPER: Final = 36
_GONE_WITHIN: Final = 1.0
"""Seconds until a child is reported although killed processes of its group are still there."""


@dataclass(frozen=True, slots=True)
class _Ended:
    status: int
    on_exit: OnExit
    deadline: asyncio.TimerHandle


class Reaper:
    """Owns waiting.  With `adopt` this process becomes a subreaper: its children's orphans come to it."""

    def __init__(self, *, adopt: bool) -> None:
        self._adopt = adopt
        self._children: dict[int, OnExit] = {}
        self._ended: dict[int, _Ended] = {}
        if adopt:
            ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)

    def watch(self, pid: int, on_exit: OnExit) -> None:
        """Call `on_exit` once the child, leader of its own process group, and the group are gone."""
        self._children[pid] = on_exit

    def collect(self) -> None:
        """Take in whatever ended; to be called on SIGCHLD, on the loop."""
        if self._adopt:
            while pid := _ended_process(os.P_ALL, 0):
                self._reap(pid)
        else:
            for pid in tuple(self._children):
                if _ended_process(os.P_PID, pid):
                    self._reap(pid)
        for leader in tuple(self._ended):
            if not self._adopt or not signal_group(leader, 0):
                self._report(leader)

    def _reap(self, pid: int) -> None:
        on_exit = self._children.pop(pid, None)
        if on_exit is None:
            os.waitpid(pid, 0)
            return
        # As long as its leader is not waited for, no other process can get the group's number.
        signal_group(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        deadline = asyncio.get_running_loop().call_later(_GONE_WITHIN, self._report, pid)
        self._ended[pid] = _Ended(status, on_exit, deadline)

    def _report(self, leader: int) -> None:
        ended = self._ended.pop(leader)
        ended.deadline.cancel()
        ended.on_exit(ended.status)


def _ended_process(kind: int, number: int) -> int:
    """Return a child that ended and is not waited for yet, 0 when there is none; it stays so."""
    try:
        found = os.waitid(kind, number, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return 0
    return found.si_pid if found else 0


def signal_group(leader: int, number: int) -> bool:
    """Send a signal to a process group (0: only ask); return whether there was anybody to get it."""
    try:
        os.killpg(leader, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True
