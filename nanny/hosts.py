"""The hosts that dnsmasq serves beside DNS, as a file for `--addn-hosts`.

In: canonical lines of the `hosts` key.  Out: one file, replaced whole; dnsmasq reads it at its
start and again on SIGHUP, without a restart.

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

from nanny.scratch import ScratchDirectory, remove_left_behind

_log = logging.getLogger(__name__)

_FALLBACKS: Final = ("/tmp", "/var/tmp", "/dev/shm")


class HostsFile:
    """Owns one file, which is there from the start, without lines."""

    def __init__(self, directory: Path, scratch: ScratchDirectory | None = None) -> None:
        """Write the file; `scratch`, when it is in one, goes with it.  Raises OSError."""
        self.path: Final = directory / "hosts"
        self._scratch = scratch
        self._lines = ""
        self._replace("")

    def write(self, lines: str) -> bool:
        """Make the file hold these lines; return whether it changed.  Raises OSError."""
        if lines == self._lines:
            return False
        self._replace(lines)
        self._lines = lines
        return True

    def close(self) -> None:
        """Remove what was written."""
        if self._scratch is not None:
            self._scratch.close()
        else:
            self.path.unlink(missing_ok=True)

    def _replace(self, lines: str) -> None:
        new = self.path.with_name("hosts.new")
        try:
            new.write_text(lines)
            new.chmod(0o644)
            new.rename(self.path)
        except OSError:
            with suppress(OSError):
                new.unlink()
            raise


def open_hosts(directory: Path | None) -> HostsFile | None:
    """Return the hosts file in `directory`, or in a temporary one when that is None.

    Returns None when no place for a temporary one can be written.  Raises OSError for a
    directory that was asked for and is not there or cannot be written.
    """
    if directory is not None:
        return HostsFile(directory.absolute())
    for parent in filter(None, (os.environ.get("TMPDIR"), *_FALLBACKS)):
        try:
            return _temporary(Path(parent))
        except OSError as error:
            _log.debug("no temporary directory in %s: %s", parent, error)
    return None


def _temporary(parent: Path) -> HostsFile:
    for path in remove_left_behind(parent):
        _log.info("removed %s, left behind by a run that was killed", path)
    scratch = ScratchDirectory(parent)
    try:
        return HostsFile(scratch.path, scratch)
    except OSError:
        scratch.close()
        raise
