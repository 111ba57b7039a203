"""The files that dnsmasq reads at its start and again on SIGHUP, without a restart.

In: canonical lines of the `hosts` key; servers, as values of `server=`.  Out: one file for
`--addn-hosts` and one for `--servers-file`, each replaced whole.

Why not `--hostsdir`, which dnsmasq follows by inotify (all seen with 2.90): a name that was asked
for before keeps its cached NXDOMAIN for other types until SIGHUP all the same; a file that is
written under another name first is never forgotten; and in the exit of a process the kernel takes
6 to 25 ms to end an inotify watch, with port 53 still held, in each restart.
"""

import logging
import os
from contextlib import suppress
from pathlib import Path
from typing import Final

from nanny.arguments import Arguments
from nanny.scratch import ScratchDirectory, remove_left_behind

_log = logging.getLogger(__name__)

_FALLBACKS: Final = ("/tmp", "/var/tmp", "/dev/shm")


class LinesFile:
    """Owns one file, which is there from the start, without lines."""

    def __init__(self, path: Path) -> None:
        """Write the file; raises OSError."""
        self.path: Final = path
        self._lines = ""
        self._replace("")

    def write(self, lines: str) -> bool:
        """Make the file hold these lines; return whether it changed.  Raises OSError."""
        if lines == self._lines:
            return False
        self._replace(lines)
        self._lines = lines
        return True

    def _replace(self, lines: str) -> None:
        new = self.path.with_name(f"{self.path.name}.new")
        try:
            new.write_text(lines)
            new.chmod(0o644)
            new.rename(self.path)
        except OSError:
            with suppress(OSError):
                new.unlink()
            raise


class Files:
    """Owns the hosts file and the servers file of one directory."""

    def __init__(self, directory: Path, scratch: ScratchDirectory | None, *, servers: bool) -> None:
        """Write the files; `scratch`, when they are in one, goes with them.  Raises OSError."""
        self.hosts: Final = LinesFile(directory / "hosts")
        self.servers: Final = LinesFile(directory / "servers") if servers else None
        self._scratch = scratch

    @property
    def arguments(self) -> Arguments:
        """The arguments of dnsmasq that name them."""
        hosts = (f"--addn-hosts={self.hosts.path}",)
        return (*hosts, f"--servers-file={self.servers.path}") if self.servers else hosts

    def close(self) -> None:
        """Remove what was written."""
        if self._scratch is not None:
            self._scratch.close()
            return
        for file in filter(None, (self.hosts, self.servers)):
            file.path.unlink(missing_ok=True)


def open_files(directory: Path | None, *, servers: bool) -> Files | None:
    """Return the files in `directory`, or in a temporary one when that is None; `servers`: the second too.

    Returns None when no place for a temporary one can be written.  Raises OSError for a
    directory that was asked for and is not there or cannot be written.
    """
    if directory is not None:
        return Files(directory.absolute(), None, servers=servers)
    for parent in filter(None, (os.environ.get("TMPDIR"), *_FALLBACKS)):
        try:
            return _temporary(Path(parent), servers=servers)
        except OSError as error:
            _log.debug("no temporary directory in %s: %s", parent, error)
    return None


def _temporary(parent: Path, *, servers: bool) -> Files:
    for path in remove_left_behind(parent):
        _log.info("removed %s, left behind by a run that was killed", path)
    scratch = ScratchDirectory(parent)
    try:
        return Files(scratch.path, scratch, servers=servers)
    except OSError:
        scratch.close()
        raise
