"""A log handler that never waits: a thread writes what is logged.

In: records, from any thread.  Out: their lines in order, on a file descriptor whose reader may be
slow or gone.  At most MOST_LINES lines and MOST_OCTETS octets wait, and as many again are being
written; what does not fit is dropped and counted, and a line in its place says how many.
"""

import logging
import os
import threading
from typing import Final

MOST_LINES: Final = 2000
MOST_OCTETS: Final = 1 << 20
_LAST_SECONDS: Final = 1.0
"""How long `close` waits for the reader: the last lines say why a program ended."""


class QueueingHandler(logging.Handler):
    """Writes to `descriptor`, which stays open; `dropped` counts the lines that were never written."""

    def __init__(self, descriptor: int) -> None:
        super().__init__()
        self.dropped = 0
        self._descriptor = descriptor
        self._changed = threading.Condition()
        self._waiting: list[bytes] = []
        self._waiting_octets = 0
        self._dropped_here = 0
        self._writing = False
        self._thread = threading.Thread(target=self._write_forever, name="log writer", daemon=True)
        self._thread.start()

    def emit(self, record: logging.LogRecord) -> None:
        """Queue the record's line, or count it as dropped; never waits and never raises."""
        try:
            line = self.format(record)
        except Exception as error:  # noqa: BLE001 - a fault in a log line must not end what logs it
            line = f"cannot format {record.msg!r} from {record.filename}:{record.lineno}: {error!r}"
        octets = line.encode(errors="backslashreplace") + b"\n"
        with self._changed:
            full = len(self._waiting) >= MOST_LINES or self._waiting_octets + len(octets) > MOST_OCTETS
            if full or self._dropped_here:
                self.dropped += 1
                self._dropped_here += 1
                return
            self._waiting.append(octets)
            self._waiting_octets += len(octets)
            self._changed.notify_all()

    def close(self) -> None:
        """Give the writer a second for what is left; logging calls this when the process exits."""
        with self._changed:
            self._changed.wait_for(lambda: not self._waiting and not self._writing, _LAST_SECONDS)
        super().close()

    def _write_forever(self) -> None:
        while True:
            with self._changed:
                self._writing = False
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._waiting)
                self._writing = True
                lines, self._waiting, self._waiting_octets = self._waiting, [], 0
                dropped, self._dropped_here = self._dropped_here, 0
            if dropped:
                lines.append(self._note(dropped))
            try:
                self._write(b"".join(lines))
            except OSError:  # a closed pipe, a full disk: no reason to end
                with self._changed:
                    self.dropped += len(lines) - bool(dropped)
                    self._dropped_here += dropped + len(lines) - bool(dropped)

    def _write(self, octets: bytes) -> None:
        left = memoryview(octets)
        while left:
            left = left[os.write(self._descriptor, left) :]

    def _note(self, dropped: int) -> bytes:
        record = logging.LogRecord(
            __name__,
            logging.WARNING,
            __file__,
            0,
            "%d log lines dropped here: nobody read them, or not fast enough",
            (dropped,),
            None,
        )
        return self.format(record).encode() + b"\n"
