"""The hosts that dnsmasq serves beside DNS, as a file in a directory for `--hostsdir`.

In: canonical lines of the `hosts` key.  Out: one file, replaced whole.  dnsmasq sees it by
inotify and drops what the file no longer has (seen with 2.90).  The name under which a new
version is written begins with a dot: dnsmasq reads any other name, and never forgets it again.
"""

import logging
import os
import shutil
import tempfile
from pathlib import Path
from typing import Final

_log = logging.getLogger(__name__)

_FALLBACKS: Final = ("/tmp", "/var/tmp", "/dev/shm")


class HostsFile:
    """Owns the directory's one file; `close` removes the file, and the directory when it was made here."""

    def __init__(self, directory: Path, *, temporary: bool) -> None:
        """Write an empty file; raises OSError when the directory cannot be written."""
        self.directory: Final = directory
        self._temporary = temporary
        self._file = directory / "hosts"
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
        if self._temporary:
            shutil.rmtree(self.directory, ignore_errors=True)
        else:
            self._file.unlink(missing_ok=True)

    def _replace(self, lines: str) -> None:
        new = self.directory / ".hosts.new"
        new.write_text(lines)
        new.chmod(0o644)
        new.rename(self._file)


def open_hosts(directory: Path | None) -> HostsFile | None:
    """Return the hosts file in `directory`, or in a temporary one when that is None.

    Returns None when no place for a temporary one can be written.  Raises OSError for a
    directory that was asked for and cannot be written.
    """
    if directory is not None:
        directory.mkdir(parents=True, exist_ok=True)
        return HostsFile(directory.absolute(), temporary=False)
    for parent in filter(None, (os.environ.get("TMPDIR"), *_FALLBACKS)):
        try:
            made = Path(tempfile.mkdtemp(prefix="dnsmasq-nanny-", dir=parent))
            made.chmod(0o755)
            return HostsFile(made, temporary=True)
        except OSError as error:
            _log.debug("no temporary directory in %s: %s", parent, error)
    return None
