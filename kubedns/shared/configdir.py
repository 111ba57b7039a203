"""The configuration directory: a kubelet volume, or any directory of small files.

In: a path.  Out: file name -> content, as one consistent snapshot; an iterator of them as the
directory changes.  A kubelet volume's files are links through `..data`, a link that is swapped
for each update: it is followed once per snapshot, and a snapshot during which it was swapped is
taken again.  Files beginning with `.` and sub-directories are no keys.
"""

import asyncio
import errno
import logging
import os
import stat
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from kubedns.shared.config import LARGEST_VALUE

try:
    from watchfiles import awatch
except ImportError:  # the image of kube-dns is without it: polling alone
    WATCHES_EVENTS = False
else:
    WATCHES_EVENTS = True

_log = logging.getLogger(__name__)

_LARGEST_DIRECTORY: Final = 8 * LARGEST_VALUE
_ATTEMPTS = 5
_EVENT_STEP_MS = 20
_EVENT_DEBOUNCE_MS = 200


class ConfigDirError(Exception):
    """The directory or a file in it cannot be read; the text names the path and the reason."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ConfigDirError) and self.args == other.args

    def __hash__(self) -> int:
        return hash(self.args)


Snapshot = Mapping[str, bytes] | ConfigDirError


class _MovedError(Exception):
    """The directory changed while it was read."""


def read_directory(path: str | os.PathLike[str]) -> Mapping[str, bytes]:
    """Return the content of each file by its name; a directory that is missing is empty.

    Of a file larger than a value may be, only enough is returned to show that it is too large.
    Blocks for as long as the file system does.  Raises ConfigDirError.
    """
    directory = Path(path)
    cause: BaseException | None = None
    for _ in range(_ATTEMPTS):
        try:
            return _snapshot(directory)
        except _MovedError as error:
            cause = error.__cause__
        except OSError as error:
            raise _unreadable(error, directory) from error
    if isinstance(cause, OSError):
        raise _unreadable(cause, directory) from cause
    raise ConfigDirError(f"{directory} changes faster than it can be read")


def _unreadable(error: OSError, directory: Path) -> ConfigDirError:
    path = error.filename if isinstance(error.filename, str) else directory
    return ConfigDirError(f"cannot read {path}: {error.strerror or error}")


def _snapshot(directory: Path) -> Mapping[str, bytes]:
    source = directory / "..data"
    if not os.path.lexists(source):
        source = directory
    with _opened(source, os.O_DIRECTORY) as descriptor:
        if descriptor is None and source != directory:
            raise _MovedError from FileNotFoundError(errno.ENOENT, "it leads nowhere", str(source))
        if descriptor is None:
            return {}
        values: dict[str, bytes] = {}
        left = _LARGEST_DIRECTORY
        for name in sorted(os.listdir(descriptor)):
            value = None if name.startswith(".") else _read_file(directory / name, name, descriptor)
            if value is not None:
                values[name] = value
                left -= len(value)
            if left < 0:
                raise ConfigDirError(f"{directory} holds more than {_LARGEST_DIRECTORY >> 20} MiB")
        try:
            now, then = os.stat(source), os.fstat(descriptor)
        except FileNotFoundError as error:
            raise _MovedError from error
        if (now.st_dev, now.st_ino) != (then.st_dev, then.st_ino):
            raise _MovedError
        return values


@contextmanager
def _opened(path: Path, flags: int) -> Iterator[int | None]:
    """Open a path for reading, never waiting for a FIFO's writer; None when there is nothing."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | flags)
    except FileNotFoundError:
        yield None
        return
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _read_file(shown: Path, name: str, directory: int) -> bytes | None:
    """Return the content of a file, None for a sub-directory."""
    try:
        mode = os.stat(name, dir_fd=directory).st_mode
        if stat.S_ISDIR(mode):
            return None
        if not stat.S_ISREG(mode):
            raise ConfigDirError(f"cannot read {shown}: it is not a regular file")
        descriptor = os.open(name, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK, dir_fd=directory)
    except FileNotFoundError as error:
        raise _MovedError from FileNotFoundError(error.errno, error.strerror, str(shown))
    except OSError as error:
        raise type(error)(error.errno, error.strerror, str(shown)) from error
    with os.fdopen(descriptor, "rb") as file:
        return file.read(LARGEST_VALUE + 1)


class DirectoryWatch:
    """The snapshots of a directory: the first at once, then one whenever it differs from the last.

    A change is seen at once by inotify where `watchfiles` is installed, and after `period`
    seconds at the latest.  What cannot be read comes as a ConfigDirError in a snapshot's place,
    once for each text.  Directories made later, replaced, emptied or deleted are changes too.
    """

    def __init__(self, path: str | os.PathLike[str], period: float) -> None:
        self._directory = Path(os.path.abspath(path))
        self._period = period

    async def __aiter__(self) -> AsyncIterator[Snapshot]:
        last: Snapshot | None = None
        async for _ in self._hints():
            snapshot = await asyncio.to_thread(self._scan)
            if snapshot != last:
                last = snapshot
                yield snapshot

    def _scan(self) -> Snapshot:
        try:
            return read_directory(self._directory)
        except ConfigDirError as error:
            return error

    async def _hints(self) -> AsyncIterator[None]:
        """Yield when the directory may have changed: at first, after an event, after the period."""
        yield
        complained = False
        while True:
            if WATCHES_EVENTS:
                try:
                    async for _ in self._events():
                        yield
                    complained = False
                    continue
                except (OSError, RuntimeError) as error:
                    if not complained:
                        _log.warning("no events of %s, polling it instead: %s", self._directory, error)
                    complained = True
            await asyncio.sleep(self._period)
            yield

    async def _events(self) -> AsyncIterator[None]:
        """Yield after events and periods until other directories than now must be watched."""
        watched = self._watched()
        async for _ in awatch(
            *watched,
            watch_filter=lambda _, path: self._concerns(Path(path)),
            debounce=_EVENT_DEBOUNCE_MS,
            step=_EVENT_STEP_MS,
            rust_timeout=max(1, round(self._period * 1000)),
            yield_on_timeout=True,
            recursive=False,
        ):
            yield
            if self._watched() != watched:
                return

    def _watched(self) -> Mapping[Path, tuple[int, int]]:
        """Return what must be watched, with inodes: the directory, or what could make it another one.

        The nearest parent that exists is watched where the directory is missing or a link; else its
        own end is an event too, and a parent with busy files in it costs nothing.
        """
        watched: dict[Path, tuple[int, int]] = {}
        for path in (self._directory, *self._directory.parents):
            try:
                found = path.stat()
            except OSError:
                continue
            if stat.S_ISDIR(found.st_mode):
                watched[path] = (found.st_dev, found.st_ino)
                if not path.is_symlink() or path != self._directory:
                    break
        return watched

    def _concerns(self, path: Path) -> bool:
        return path.is_relative_to(self._directory) or self._directory.is_relative_to(path)
