"""Log lines in klog's form, on standard error.

`I1129 14:28:13.123456    4711 clusterzone.py:88] message`: severity, month and day, time,
process id, file and line.  Tools that read the original's logs read these.
"""

import logging
import os
import sys
import threading
from datetime import UTC, datetime
from types import TracebackType
from typing import Final

from kubedns.shared.logqueue import QueueingHandler

_log = logging.getLogger(__name__)
_STANDARD_ERROR: Final = 2
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


def setup_logging(verbosity: int = 0) -> None:
    """Send all log records to standard error; `verbosity` is the `--v` of the command line.

    Levels: 0 states and faults; 2 and above also what is logged with `logging.DEBUG`.  Logging
    never waits for whoever reads standard error.  Faults that nobody catches are logged too:
    Python's own report of them would wait.
    """
    handler = logging.NullHandler() if sys.__stderr__ is None else QueueingHandler(_STANDARD_ERROR)
    handler.setFormatter(KlogFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.DEBUG if verbosity >= 2 else logging.INFO)
    for noisy in ("asyncio", "aiohttp.access", "watchfiles"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    logging.captureWarnings(capture=True)
    sys.excepthook = _log_uncaught
    threading.excepthook = lambda fault: _log_uncaught(fault.exc_type, fault.exc_value, fault.exc_traceback)
    sys.unraisablehook = lambda fault: _log_uncaught(fault.exc_type, fault.exc_value, fault.exc_traceback)


def lines_dropped() -> int:
    """Return how many log lines were dropped because nobody read them in time."""
    return sum(
        handler.dropped for handler in logging.getLogger().handlers if isinstance(handler, QueueingHandler)
    )


def _log_uncaught(
    kind: type[BaseException], error: BaseException | None, traceback: TracebackType | None
) -> None:
    fault = error if error is not None else kind()
    _log.critical("uncaught: %s", kind.__name__, exc_info=(kind, fault, traceback))


def warn_ignored_flags(ignored: tuple[str, ...]) -> None:
    """Say once which flags of the original were taken without effect."""
    if ignored:
        names = ", ".join(sorted(set(ignored)))
        _log.warning("ignored flags, which have no effect here: %s", names)


def program_line(program: str, version: str) -> str:
    """Return what `--version` prints."""
    return f"{program} {version} (python {sys.version.split()[0]}, pid {os.getpid()})"
