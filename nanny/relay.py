"""A child's output, line by line.

In: the reading end of a pipe.  Out: lines of text, each a call.  Any output is survived: a line
without end is cut into pieces, octets that are no UTF-8 and control characters are escaped.
"""

import asyncio
import os
from collections.abc import Callable
from typing import Final

LONGEST_LINE: Final = 8192
_CHUNK = 65536
_LAST_READS = 64
_CONTROLS = {code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0)) if code != 0x09}


class LineRelay:
    """Reads a pipe on the running loop until its end; owns and closes the descriptor."""

    def __init__(self, descriptor: int, on_line: Callable[[str], None]) -> None:
        self._descriptor = descriptor
        self._on_line = on_line
        self._begun = b""
        self._open = True
        os.set_blocking(descriptor, False)
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(descriptor, self._read)

    def finish(self) -> None:
        """Take what is left in the pipe and close it; other writers may still hold their end."""
        for _ in range(_LAST_READS):
            if not self._open or not self._read():
                break
        self._close()

    def _read(self) -> bool:
        """Take one chunk; return whether there was one."""
        try:
            chunk = os.read(self._descriptor, _CHUNK)
        except BlockingIOError:
            return False
        except OSError:
            chunk = b""
        if not chunk:
            self._close()
            return False
        *lines, self._begun = (self._begun + chunk).split(b"\n")
        for line in lines:
            self._emit(line)
        while len(self._begun) > LONGEST_LINE:
            self._emit(self._begun[:LONGEST_LINE])
            self._begun = self._begun[LONGEST_LINE:]
        return True

    def _emit(self, line: bytes) -> None:
        for start in range(0, len(line), LONGEST_LINE):
            text = line[start : start + LONGEST_LINE].decode("utf-8", "backslashreplace").rstrip("\r")
            if text.strip():
                self._on_line(text.translate(_CONTROLS))

    def _close(self) -> None:
        if self._open:
            self._open = False
            self._loop.remove_reader(self._descriptor)
            os.close(self._descriptor)
            self._emit(self._begun)
