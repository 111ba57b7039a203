"""A program whose standard error is a pipe that is full and that nobody reads."""

import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self

ROOT = Path(__file__).parents[1]
PATIENCE_SECONDS = 30.0


class Unread:
    """`python -m` with `argv`; leaving its context ends it."""

    def __init__(self, argv: Sequence[str], environ: Mapping[str, str] | None = None) -> None:
        self._reader, writer = os.pipe()
        os.set_blocking(self._reader, False)
        # Opened once more, so that the program's own end of the pipe stays one that blocks.
        filler = os.open(f"/proc/self/fd/{writer}", os.O_WRONLY | os.O_NONBLOCK)
        with suppress(BlockingIOError):
            while True:
                os.write(filler, b"x" * 512 + b"\n")
        os.close(filler)
        self.process = subprocess.Popen(
            [sys.executable, "-m", *argv], cwd=ROOT, env={**os.environ, **(environ or {})}, stderr=writer
        )
        os.close(writer)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(PATIENCE_SECONDS)
        os.close(self._reader)

    def until(self, what: str, condition: Callable[[], bool]) -> None:
        """Wait until a condition holds."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not condition():
            assert time.monotonic() < deadline, f"not before the deadline: {what}"
            assert self.process.poll() is None, f"ended before {what}"
            time.sleep(0.02)

    def healthy(self, url: str) -> bool:
        """Whether a GET is answered with 200."""
        try:
            with urllib.request.urlopen(url, timeout=5.0) as response:
                return bool(response.status == 200)
        except (urllib.error.URLError, TimeoutError):
            return False

    def metric(self, url: str, name: str) -> float:
        """Return the value of a metric without labels."""
        with urllib.request.urlopen(url, timeout=5.0) as response:
            found = re.search(rf"^{name} (\S+)$", response.read().decode(), re.MULTILINE)
        assert found, f"no metric {name} at {url}"
        return float(found[1])

    def read_until(self, pattern: str) -> str:
        """Read what was logged until a pattern is found; return all of it."""
        text = ""

        def found() -> bool:
            nonlocal text
            with suppress(BlockingIOError):
                text += os.read(self._reader, 1 << 20).decode()
            return re.search(pattern, text) is not None

        self.until(f"{pattern} in the log", found)
        return text

    def terminate(self) -> int:
        """Send SIGTERM; return the exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE_SECONDS)
