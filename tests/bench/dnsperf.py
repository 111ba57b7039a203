"""dnsperf, the load: questions from a file, and what came of them.

Source of its output's shape: dnsperf(1), 2.10.
"""

import re
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.bench.machine import OTHER_CORE, WITH_PRIORITY, BenchError, Program, pinned

_CLIENTS: Final = "8"
_OUTSTANDING: Final = "200"
_GRACE: Final = 10.0


@dataclass(frozen=True, slots=True)
class Load:
    """One run: queries per second, how many were answered and lost, CPU of the server per query in us."""

    qps: float
    answered: int
    lost: int
    cpu: float


def run(
    server: Program,
    port: int,
    questions: Path,
    seconds: float,
    *,
    helpers: tuple[Program, ...] = (),
    tcp_clients: int = 0,
) -> Load:
    """Ask as fast as the server answers, with at most 200 questions outstanding.

    Over UDP, or over as many TCP connections.  The CPU time is that of the server and of `helpers`,
    which answer with it.  Raises BenchError.
    """
    servers = (server, *helpers)
    before = sum(program.cpu_seconds() for program in servers)
    command = [*_command(port, questions, seconds, tcp_clients), "-q", _OUTSTANDING]
    output = _dnsperf([*WITH_PRIORITY, *command], seconds)
    used = sum(program.cpu_seconds() for program in servers) - before
    answered = int(_figure(output, r"Queries completed:\s+(\d+)"))
    if not answered:
        raise BenchError(f"port {port} answered nothing\n{output}")
    lost = int(_figure(output, r"Queries lost:\s+(\d+)"))
    return Load(_figure(output, r"Queries per second:\s+([\d.]+)"), answered, lost, used / answered * 1e6)


class Steady:
    """A load in the background; what came of it is known when its context has ended."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process
        self.output = ""

    def qps(self) -> float:
        """Return the queries that were answered each second."""
        return _figure(self.output, r"Queries per second:\s+([\d.]+)")

    def rcodes(self) -> dict[str, int]:
        """Return how many answers had each rcode."""
        line = re.search(r"Response codes:\s+(.*)", self.output)
        return {name: int(count) for name, count in re.findall(r"([A-Z]+) (\d+)", line[1] if line else "")}


@contextmanager
def steady(port: int, questions: Path, seconds: float, qps: float) -> Iterator[Steady]:
    """Have a steady load of `qps` during the context, for `seconds` at most.

    No more than 100 questions are outstanding, dnsperf's default: what it has to catch up with after it had
    to wait for its core is otherwise a burst that no client sends.
    """
    command = [*WITH_PRIORITY, *_command(port, questions, seconds), "-Q", f"{qps:.0f}"]
    with pinned(OTHER_CORE):
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    load = Steady(process)
    try:
        yield load
    finally:
        process.send_signal(signal.SIGINT)
        load.output, _ = process.communicate(timeout=_GRACE)


def percentile(values: list[float], share: float) -> float:
    """Return the value below which `share` percent of sorted values are."""
    return values[min(len(values) - 1, int(len(values) * share / 100))]


def _command(port: int, questions: Path, seconds: float, tcp_clients: int = 0) -> list[str]:
    where = ["-s", "127.0.0.1", "-p", str(port), "-d", str(questions)]
    clients = ["-m", "tcp", "-c", str(tcp_clients)] if tcp_clients else ["-c", _CLIENTS]
    return ["dnsperf", *where, *clients, "-l", f"{seconds:g}"]


def _dnsperf(command: list[str], seconds: float) -> str:
    """Run dnsperf and return what it printed, which passes through a file: a reader would take its core."""
    try:
        with pinned(OTHER_CORE), tempfile.TemporaryFile("w+") as output:
            done = subprocess.run(
                command,
                stdout=output,
                stderr=subprocess.PIPE,
                text=True,
                timeout=seconds + _GRACE,
                check=False,
            )
            output.seek(0)
            printed = output.read()
    except FileNotFoundError as error:
        raise BenchError("cannot run dnsperf (Debian: apt-get install dnsperf)") from error
    except subprocess.TimeoutExpired as error:
        raise BenchError(f"{' '.join(command)} did not end") from error
    if done.returncode:
        raise BenchError(f"{' '.join(command)}: {done.stderr.strip()}")
    return printed


def _figure(output: str, pattern: str) -> float:
    found = re.search(pattern, output)
    if found is None:
        raise BenchError(f"dnsperf did not say {pattern!r}:\n{output}")
    return float(found[1])
