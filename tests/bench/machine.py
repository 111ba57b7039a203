"""Processes on their own cores, and what they use: CPU seconds and memory, from /proc.

One core is the server's that is being measured; everything that asks, changes or watches it shares
the other, so that it does not pay for them.  Servers and load go before everything else on their
cores, where that is allowed: what is measured is not their waiting for a core.
"""

import os
import platform
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final, Self

ROOT: Final = Path(__file__).parents[2]
SERVER_CORE: Final = frozenset({0})
OTHER_CORE: Final = frozenset({1})
ANY_CORE: Final = SERVER_CORE | OTHER_CORE
WITH_PRIORITY: Final = ("nice", "-n", "-10") if os.geteuid() == 0 else ()
"""Stands before the command of a program that goes before others."""
_START_WITHIN: Final = 30.0
_STOP_WITHIN: Final = 5.0


class BenchError(Exception):
    """The measurement cannot go on; the text says why."""


@dataclass(frozen=True, slots=True)
class Memory:
    """Resident memory now and at its highest, in MiB."""

    now: float
    peak: float


class Program:
    """A program that runs on given cores, with all children that it starts, until the end of the context.

    Its output goes to `log`.  Its session is its own, by which its children are found.
    """

    def __init__(
        self,
        command: Sequence[str],
        cores: frozenset[int],
        log: Path,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._command = list(command)
        self._cores = cores
        self.log = log
        self._environment = {**os.environ, **(environment or {})}
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        with self.log.open("wb") as output, pinned(self._cores):
            try:
                self._process = subprocess.Popen(
                    self._command,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    cwd=ROOT,
                    env=self._environment,
                    start_new_session=True,
                )
            except OSError as error:
                raise BenchError(f"cannot run {self._command[0]}: {error.strerror}") from error
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._process is None:
            return
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            if self._process.poll() is None:
                self._process.send_signal(number)
                try:
                    self._process.wait(_STOP_WITHIN)
                except subprocess.TimeoutExpired:
                    continue
        for pid in self._members():
            os.kill(pid, signal.SIGKILL)

    @property
    def pid(self) -> int:
        """Process id of the program itself."""
        if self._process is None:
            raise BenchError(f"{self._command[0]} does not run")
        return self._process.pid

    def wait_until(self, ready: Callable[[], bool], what: str) -> None:
        """Wait until a condition holds; raises BenchError with the log when the program ends or time is up."""
        deadline = time.monotonic() + _START_WITHIN
        while not ready():
            ended = self._process is None or self._process.poll() is not None
            if ended or time.monotonic() > deadline:
                fate = "ended" if ended else f"took longer than {_START_WITHIN:.0f} s"
                tail = self.log.read_text(errors="replace")[-2000:]
                raise BenchError(f"{self._command[0]}: {fate} before {what}\n{tail}")
            time.sleep(0.01)

    def cpu_seconds(self) -> float:
        """Return user and system time of the program and its children so far, ended ones included."""
        return sum(_task_seconds(pid) + _waited_seconds(pid) for pid in (self.pid, *self._members()))

    def memory(self) -> Memory:
        """Return the memory of the program itself."""
        fields = dict(
            line.split(":", 1) for line in Path(f"/proc/{self.pid}/status").read_text().splitlines()
        )
        now, peak = (int(fields[name].split()[0]) / 1024 for name in ("VmRSS", "VmHWM"))
        return Memory(now, peak)

    def _members(self) -> list[int]:
        """Return the children that are left, however deep."""
        pids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
        return [pid for pid in pids if pid != self.pid and _session(pid) == self.pid]


def _session(pid: int) -> int:
    try:
        # After the name, which may hold anything: state, parent, group, session (proc(5)).
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[3])
    except (FileNotFoundError, ProcessLookupError):
        return 0


def _task_seconds(pid: int) -> float:
    """Return the time that the threads of a process ran, in nanosecond steps."""
    total = 0
    for path in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        try:
            total += int(path.read_text().split()[0])
        except (FileNotFoundError, ProcessLookupError):
            continue
    return total / 1e9


def _waited_seconds(pid: int) -> float:
    """Return the time of the children that a process has waited for, as dnsmasq's for TCP clients."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    # Behind the name: cutime and cstime, in ticks (proc(5)).
    return (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def pinned(cores: frozenset[int]):
    """Have this process, and what it starts meanwhile, run on some cores only."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def answers(port: int, name: str = "svc-0.ns-0.svc.cluster.local", timeout: float = 0.2) -> bool:
    """Whether a DNS server at a port of 127.0.0.1 answers a question at all."""
    labels = b"".join(bytes((len(label),)) + label for label in name.encode().split(b"."))
    with socket.socket(type=socket.SOCK_DGRAM) as client:
        client.settimeout(timeout)
        try:
            client.connect(("127.0.0.1", port))
            client.send(b"\x17\x17\1\0\0\1\0\0\0\0\0\0" + labels + b"\0\0\1\0\1")
            return client.recv(512)[3] & 0xF != 5  # REFUSED: not synced yet
        except OSError:
            return False


def describe() -> str:
    """Return the machine in one line."""
    model = next(
        (
            line.partition(":")[2].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        platform.machine(),
    )
    cores = len(os.sched_getaffinity(0))
    return f"{model}, {cores} cores, Linux {platform.release()}, Python {sys.version.split()[0]}"


def leave_server_core() -> None:
    """Have this process run on the other core from now on; raises BenchError unless both are ours."""
    if not os.sched_getaffinity(0) >= ANY_CORE:
        raise BenchError("needs two cores, one for the server and one for what asks it")
    os.sched_setaffinity(0, OTHER_CORE)
