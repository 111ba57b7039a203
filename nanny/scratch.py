"""A temporary directory that a later run removes when this one could not.

In: the directory to make it in.  Out: a path that is this process's own.  While the process lives
it holds a lock (flock(2)) on a file in there, which the kernel lets go at its death, however it
dies.  Invariant: the file has its name only once it is locked, so that a directory in the making
is not taken for one left behind.
"""

import contextlib
import fcntl
import os
import shutil
import stat
import tempfile
from pathlib import Path
from typing import Final

PREFIX: Final = "dnsmasq-nanny-"
_LOCK: Final = "lock"


class ScratchDirectory:
    """Owns one directory, which others may read."""

    def __init__(self, parent: Path) -> None:
        """Make the directory; raises OSError."""
        self.path: Final = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
        with contextlib.ExitStack() as undo:
            undo.callback(shutil.rmtree, self.path, ignore_errors=True)
            self.path.chmod(0o755)
            new = self.path / f"{_LOCK}.new"
            self._lock: Final = os.open(new, os.O_RDONLY | os.O_CREAT | os.O_EXCL, 0o600)
            undo.callback(os.close, self._lock)
            fcntl.flock(self._lock, fcntl.LOCK_EX)
            new.rename(self.path / _LOCK)
            undo.pop_all()

    def close(self) -> None:
        """Remove the directory with all that is in it."""
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._lock)


def remove_left_behind(parent: Path) -> list[Path]:
    """Remove the directories of this user's runs that are dead, and return them."""
    removed = []
    for path in sorted(parent.glob(f"{PREFIX}*")):
        # What vanishes or cannot be opened meanwhile belongs to another run, or is locked.
        with contextlib.suppress(OSError):
            if _is_own_directory(path):
                _remove_unlocked(path)
                removed.append(path)
    return removed


def _is_own_directory(path: Path) -> bool:
    found = path.lstat()
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()


def _remove_unlocked(path: Path) -> None:
    """Remove a directory; raises BlockingIOError when its process lives, other OSError without a lock."""
    lock = os.open(path / _LOCK, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(path)
    finally:
        os.close(lock)
