"""kube-dns with a stop-watch on every step of its event loop: the stalls of a server, seen from inside.

`python -m tests.bench.steps FLAGS`, the flags being those of kube-dns.  Each step of more than
LONG seconds is a line in the log: when it ended (monotonic), the CPU time it took, what it was.  It is CPU
time so that what else the machine does is not taken for a stall; `prober` sees that too.
"""

import asyncio
import re
import sys
import time
from pathlib import Path
from typing import Final

from kubedns.app import main as kube_dns

LONG: Final = 0.003
_LINE = re.compile(r"^step (\d+\.\d+) (\d+\.\d+) ms (.*)$", re.MULTILINE)
_run_handle = asyncio.Handle._run


def _timed(handle: asyncio.Handle) -> None:
    begun = time.thread_time()
    _run_handle(handle)
    took = time.thread_time() - begun
    if took >= LONG:
        what = " ".join(repr(handle).split())[:300]
        sys.stderr.write(f"step {time.monotonic():.6f} {took * 1000:.3f} ms {what}\n")


def long_steps(log: Path, since: float = 0.0, until: float = float("inf")) -> list[tuple[float, str]]:
    """Return the milliseconds of each long step that ended in an interval, and what it was, longest first."""
    found = _LINE.findall(log.read_text(errors="replace"))
    return sorted(
        ((float(took), what) for ended, took, what in found if since <= float(ended) <= until), reverse=True
    )


def main() -> int:
    """Run kube-dns with timed steps; return its exit status."""
    asyncio.Handle._run = _timed  # type: ignore[method-assign,assignment]
    return kube_dns()


if __name__ == "__main__":
    sys.exit(main())
