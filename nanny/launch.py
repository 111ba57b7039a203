"""A program of its own, which becomes the child: waits for a sign, then executes its words.

    python -I -S launch.py PARENT-PID COMMAND [ARGUMENT...]

Standard input is a socket.  Out: one octet when it is ready: what is slow about a start is over.
In: one octet, the sign; the end without one means that there is nothing to do.  Before it waits
it asks the kernel for SIGTERM at its parent's death (PR_SET_PDEATHSIG, prctl(2)), which outlives
execve(2).  It is a program because Python code between fork and exec may hang in a process with
threads.  Imports only what it needs.
"""

import contextlib
import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1
_CANNOT_EXECUTE = 126


def launch(parent: int, command: list[str]) -> int:
    """Become the command, or return an exit status."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGTERM), 0, 0, 0)
    if os.getppid() != parent:
        return 0
    with contextlib.suppress(ConnectionError):  # the sign may be here already, and its sender gone
        os.write(0, b".")
    try:
        sign = os.read(0, 1)
    except ConnectionError:
        sign = b""
    if not sign:
        return 0
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # ignored by Python, which exec would hand on
        signal.signal(number, signal.SIG_DFL)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    try:
        os.execv(command[0], command)
    except OSError as error:
        sys.stderr.write(f"cannot execute {command[0]}: {error.strerror}\n")
        return _CANNOT_EXECUTE


if __name__ == "__main__":
    sys.exit(launch(int(sys.argv[1]), sys.argv[2:]))
