"""One question a millisecond, and when each was answered: the stalls of a server, seen from outside.

Runs as a process of its own, so that nothing else of the bench delays it:
`python -m tests.bench.prober PORT`.  Ends when its standard input does, and prints, as JSON, the time
(monotonic, seconds) of each question and the milliseconds to its answer, null where none came.
An answer came when the kernel had it, by its own time stamp (SO_TIMESTAMPNS of socket(7)); with that, and
with real-time priority where it is allowed, the prober is not itself what is late.
"""

import json
import os
import select
import socket
import struct
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Self

from tests.bench.dnsperf import percentile
from tests.bench.machine import OTHER_CORE, ROOT, BenchError, pinned

PERIOD: Final = 0.001
_NAME: Final = b"\5svc-0\4ns-0\3svc\7cluster\5local\0"
_SO_TIMESTAMPNS: Final = 35
_TIMESPEC: Final = struct.Struct("@ll")
_WITHIN: Final = 2.0
_STOP_WITHIN: Final = 20.0


@dataclass(frozen=True, slots=True)
class Answered:
    """When a question was asked, and the milliseconds to its answer."""

    asked: float
    milliseconds: float


class Prober:
    """Probes a DNS port of 127.0.0.1 during a context; `results` are there after it."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._process: subprocess.Popen[bytes] | None = None
        self.results: list[Answered] = []
        self.lost = 0

    def __enter__(self) -> Self:
        command = [sys.executable, "-m", "tests.bench.prober", str(self._port)]
        with pinned(OTHER_CORE):
            self._process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._process is None:
            return
        try:
            output, _ = self._process.communicate(timeout=_STOP_WITHIN)
        except subprocess.TimeoutExpired as late:
            self._process.kill()
            self._process.communicate()
            raise BenchError("the prober did not end") from late
        found = json.loads(output)
        self.results = [Answered(*pair) for pair in found if pair[1] is not None]
        self.lost = len(found) - len(self.results)

    def percentile(self, share: float) -> float:
        """Return the milliseconds within which this percentage was answered."""
        return percentile(sorted(item.milliseconds for item in self.results), share)

    def longest(self, since: float = 0.0, until: float = float("inf")) -> float:
        """Return the longest time to an answer, in ms, of the questions asked in an interval."""
        return max((item.milliseconds for item in self.results if since <= item.asked <= until), default=0.0)


def probe(port: int) -> list[tuple[float, float | None]]:
    """Ask until standard input ends; return the time and the milliseconds to the answer of each question."""
    client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    client.connect(("127.0.0.1", port))
    client.setblocking(False)
    client.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
    asked: list[float] = []
    sent: list[int] = []
    took: dict[int, float] = {}
    due, ending = time.monotonic(), 0.0
    while not ending or (len(took) < len(asked) and time.monotonic() < ending):
        now = time.monotonic()
        if now >= due and not ending:
            due = max(due + PERIOD, now)
            number = len(asked)
            asked.append(now)
            sent.append(time.time_ns())
            try:
                client.send((number & 0xFFFF).to_bytes(2) + b"\1\0\0\1\0\0\0\0\0\0" + _NAME + b"\0\1\0\1")
            except OSError:
                continue  # nobody listens yet
            if number % 64 == 0 and select.select([sys.stdin], [], [], 0)[0]:
                ending = now + _WITHIN
        select.select([client], [], [], max(0.0, due - time.monotonic()) if not ending else 0.1)
        try:
            reply, ancillary, _, _ = client.recvmsg(512, socket.CMSG_SPACE(_TIMESPEC.size))
        except OSError:
            continue
        seconds, nanoseconds = _TIMESPEC.unpack(ancillary[0][2])
        newest = len(asked) - 1
        number = newest - (newest - int.from_bytes(reply[:2]) & 0xFFFF)
        took.setdefault(number, (seconds * 10**9 + nanoseconds - sent[number]) / 1e6)
    client.close()
    return [(moment, took.get(number)) for number, moment in enumerate(asked)]


def main() -> int:
    """Probe the port on the command line."""
    with suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    print(json.dumps(probe(int(sys.argv[1]))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
