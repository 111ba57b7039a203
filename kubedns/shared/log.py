"""Log lines in klog's form, on standard error.

`I1129 14:28:13.123456    4711 clusterzone.py:88] message`: severity, month and day, time,
process id, file and line.  Tools that read the original's logs read these.
"""

import logging
import os
import sys
from datetime import UTC, datetime
from typing import TextIO

_SEVERITY = {
    logging.DEBUG: "I",
    logging.INFO: "I",
    logging.WARNING: "W",
    logging.ERROR: "E",
    logging.CRITICAL: "F",
}


class KlogFormatter(logging.Formatter):
    """Formats a record as klog does; times are UTC."""

    def format(self, record: logging.LogRecord) -> str:
        """Return one line, with the traceback indented below it where there is one."""
        moment = datetime.fromtimestamp(record.created, UTC)
        severity = _SEVERITY.get(record.levelno, "I")
        head = f"{severity}{moment:%m%d %H:%M:%S.%f} {record.process:7d} {record.filename}:{record.lineno}] "
        text = head + record.getMessage().replace("\n", "\n\t")
        if record.exc_info:
            text += "\n\t" + self.formatException(record.exc_info).replace("\n", "\n\t")
        return text


class _StandardError(logging.StreamHandler[TextIO]):
    """Writes to standard error; one that is gone (a closed pipe) is no reason to fail."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - logging's own name
        error = sys.exc_info()[1]
        if not isinstance(error, OSError | ValueError):
            super().handleError(record)


def setup_logging(verbosity: int = 0) -> None:
    """Send all log records to standard error; `verbosity` is the `--v` of the command line.

    Levels: 0 states and faults; 2 and above also what is logged with `logging.DEBUG`.
    """
    handler = _StandardError(sys.stderr)
    handler.setFormatter(KlogFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.DEBUG if verbosity >= 2 else logging.INFO)
    for noisy in ("asyncio", "aiohttp.access", "watchfiles"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    logging.captureWarnings(capture=True)


def warn_ignored_flags(ignored: tuple[str, ...]) -> None:
    """Say once which flags of the original were taken without effect."""
    if ignored:
        names = ", ".join(sorted(set(ignored)))
        logging.getLogger(__name__).warning("ignored flags, which have no effect here: %s", names)


def program_line(program: str, version: str) -> str:
    """Return what `--version` prints."""
    return f"{program} {version} (python {sys.version.split()[0]}, pid {os.getpid()})"
