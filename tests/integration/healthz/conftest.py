"""exechealthz as a child process, and what a test needs to look at it."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.ports import free_port
from tests.tools import tool

DEADLINE = 30.0
_ALONE = ("--dnsmasq-poll-interval-ms=0", "--kubedns-readiness=", "--kubedns-status=", "--nanny-status=")


class Program:
    """A running `python -m healthz`; its log goes to a file."""

    def __init__(self, arguments: tuple[str, ...], prefix: tuple[str, ...] = ()) -> None:
        self.log_file = tempfile.NamedTemporaryFile("w+", suffix=".log")  # noqa: SIM115 - closed by stop
        self.process = subprocess.Popen(
            [*prefix, sys.executable, "-m", "healthz", "--port=0", *arguments],
            stderr=self.log_file,
            stdout=self.log_file,
        )
        self.port = int(self.wait_for_log(r"listens on port (\d+)")[1])
        self.pid = self._child_of(self.process.pid) if prefix else self.process.pid

    @staticmethod
    def _child_of(pid: int) -> int:
        return int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])

    def log(self) -> str:
        return Path(self.log_file.name).read_text(errors="replace")

    def wait_for_log(self, pattern: str) -> re.Match[str]:
        found: re.Match[str] = wait_for(
            lambda: re.search(pattern, self.log()), f"{pattern!r} in the log", self.log
        )
        return found

    def get(self, path: str) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=DEADLINE) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def wait_for_answer(self, path: str, status: int, containing: str = "") -> str:
        def answered() -> str | None:
            code, body = self.get(path)
            return body if code == status and containing in body else None

        what = f"{status} with {containing!r} at {path}"
        return str(wait_for(answered, what, lambda: str(self.get(path))))

    def metric(self, name: str) -> float:
        found = re.search(rf"^{re.escape(name)} (\S+)$", self.get("/metrics")[1], re.MULTILINE)
        assert found, f"no metric {name}"
        return float(found[1])

    def rss_kilobytes(self) -> int:
        return int(re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{self.pid}/status").read_text())[1])  # type: ignore[index]

    def open_files(self) -> int:
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def stop(self) -> int:
        if self.process.poll() is None:
            os.kill(self.pid, signal.SIGTERM)
        try:
            return self.process.wait(DEADLINE)
        finally:
            self.process.kill()
            self.log_file.close()


def wait_for(question: Callable[[], Any], what: str, now: Callable[[], str] = lambda: "") -> Any:
    """Ask until the answer is not None; fails after DEADLINE, saying what there is instead."""
    end = time.monotonic() + DEADLINE
    while time.monotonic() < end:
        if (answer := question()) is not None:
            return answer
        time.sleep(0.02)
    pytest.fail(f"no {what} within {DEADLINE:g} s; there is: {now()}")


def processes(containing: str) -> list[tuple[int, str]]:
    """Return pid and state of each process whose command line contains a text."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with contextlib.suppress(OSError):
                command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                if containing in command and "healthz" not in command:
                    found.append(
                        (int(entry.name), (entry / "stat").read_text().rpartition(")")[2].split()[0])
                    )
    return found


class Dnsmasq:
    """A real dnsmasq on a free port of 127.0.0.1 that knows `web.example` and nothing else."""

    def __init__(self) -> None:
        self.port = free_port()
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen(
            [
                tool("dnsmasq:dnsmasq-base"),
                "--keep-in-foreground",
                "--conf-file=/dev/null",
                f"--port={self.port}",
                "--listen-address=127.0.0.1",
                "--bind-interfaces",
                "--no-resolv",
                "--no-hosts",
                "--pid-file=",
                "--cache-size=1234",
                "--host-record=web.example,192.0.2.7",
                "--local=/example/",
            ],
            stderr=subprocess.DEVNULL,
        )

    def stop(self) -> None:
        self.process.kill()
        self.process.wait(DEADLINE)


@pytest.fixture
def healthz() -> Iterator[Callable[..., Program]]:
    """Start exechealthz with arguments; nothing of dnsmasq, its nanny and kubedns is read unless given."""
    started: list[Program] = []

    def start(*arguments: str, prefix: tuple[str, ...] = ()) -> Program:
        started.append(Program((*_ALONE, *arguments), prefix))
        return started[-1]

    yield start
    for program in started:
        program.stop()


@pytest.fixture
def dnsmasq() -> Iterator[Dnsmasq]:
    server = Dnsmasq()
    yield server
    server.stop()


@pytest.fixture
def second_dnsmasq() -> Iterator[Dnsmasq]:
    server = Dnsmasq()
    yield server
    server.stop()


@pytest.fixture
def alive() -> Callable[[str], list[int]]:
    """Return the pids of processes, zombies left out, whose command line contains a text."""
    return lambda text: [pid for pid, state in processes(text) if state != "Z"]


@pytest.fixture
def eventually() -> Callable[..., None]:
    """Wait until a condition holds."""
    return lambda condition, what: wait_for(lambda: condition() or None, what)
