"""A nanny with a real dnsmasq on a free port, and DNS servers to send questions on to."""

import contextlib
import itertools
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from dnslib import QTYPE, RCODE, RR, SOA, A, DNSRecord

from tests.ports import free_port
from tests.tools import tool

CHECKOUT = Path(__file__).parents[3]
DNSMASQ = tool("dnsmasq:dnsmasq-base")
DEADLINE = 15.0
NEGATIVE = SOA("ns.test", "mail.test", (1, 3600, 600, 86400, 600))


def wait_for(what: str, condition: Callable[[], object]) -> None:
    """Wait until a condition holds; fail with `what` when it does not before the deadline."""
    deadline = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < deadline, f"not before the deadline: {what}"
        time.sleep(0.01)


def alive(pid: int) -> bool:
    """Whether a process runs, zombies left out."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


class NameServer(threading.Thread):
    """Answers A questions on a free port from a table; None is silence, other names are NXDOMAIN for 600 s."""

    def __init__(self, **answers: str | None) -> None:
        super().__init__(daemon=True)
        self.answers = {name.replace("_", "."): answer for name, answer in answers.items()}
        self.seen: list[str] = []
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.port = int(self.socket.getsockname()[1])

    def run(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                wire, client = self.socket.recvfrom(4096)
                if not wire:
                    return
                query = DNSRecord.parse(wire)
                name = str(query.q.qname).rstrip(".").lower()
                self.seen.append(name)
                reply = query.reply()
                answer = self.answers.get(name, "")
                if answer is None:
                    continue
                if not answer:
                    reply.header.rcode = RCODE.NXDOMAIN
                    reply.add_auth(RR("test", QTYPE.SOA, ttl=600, rdata=NEGATIVE))
                elif query.q.qtype == QTYPE.A:
                    reply.add_answer(RR(query.q.qname, QTYPE.A, ttl=0, rdata=A(answer)))
                self.socket.sendto(reply.pack(), client)


class Nanny:
    """A running nanny: its log, its dnsmasq, its metrics, its configuration directory."""

    def __init__(
        self,
        scratch: Path,
        flags: tuple[str, ...],
        given: tuple[str, ...],
        dnsmasq: str,
        port: int | None,
        tmpdir: Path,
    ) -> None:
        self.config = scratch / "config"
        self.log_file = scratch / "log"
        self.port = port or free_port("::")
        self.metrics_port = free_port("::")
        self._versions = itertools.count(1)
        words = [sys.executable, "-m", "nanny", f"--dnsmasqExec={dnsmasq}", f"--configDir={self.config}"]
        words += [f"--metricsPort={self.metrics_port}", "--lameDuck=0s", "--syncInterval=500ms", *flags, "--"]
        words += [f"--port={self.port}", "--conf-file=/dev/null", "--no-hosts", *given]
        with self.log_file.open("wb") as log:
            self.process = subprocess.Popen(
                words,
                stdout=log,
                stderr=log,
                cwd=CHECKOUT,
                env={**os.environ, "TMPDIR": str(tmpdir)},
                start_new_session=True,
            )

    def write(self, **values: str | bytes) -> None:
        """Replace all keys at once, as kubelet does."""
        version = self.config / f"..{next(self._versions)}"
        version.mkdir(parents=True)
        for key, value in values.items():
            (version / key).write_bytes(value if isinstance(value, bytes) else value.encode())
        link = self.config / "..data_tmp"
        link.symlink_to(version.name)
        link.rename(self.config / "..data")

    @property
    def log(self) -> str:
        return self.log_file.read_text()

    def wait_log(self, pattern: str, times: int = 1) -> None:
        try:
            wait_for(pattern, lambda: len(re.findall(pattern, self.log)) >= times)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.log}") from None

    def wait_up(self, starts: int = 1) -> int:
        """Wait until dnsmasq has come up so many times; return its process id."""
        self.wait_log(r"dnsmasq\[\d+\]: started", starts)
        return self.pid

    @property
    def pid(self) -> int:
        """The dnsmasq that came up last."""
        return int(re.findall(r"dnsmasq\[(\d+)\]: started", self.log)[-1])

    def wait_exit(self) -> int:
        return self.process.wait(DEADLINE)

    def ask(self, name: str, kind: str = "A", tcp: bool = False) -> DNSRecord:
        query = DNSRecord.question(name, kind)
        return DNSRecord.parse(query.send("127.0.0.1", self.port, tcp=tcp, timeout=3))

    def addresses(self, name: str) -> list[str]:
        return [str(rr.rdata) for rr in self.ask(name).rr]

    def rcode(self, name: str, kind: str = "A") -> str:
        return str(RCODE[self.ask(name, kind).header.rcode])

    def metric(self, name: str) -> float:
        url = f"http://127.0.0.1:{self.metrics_port}/metrics"
        with urllib.request.urlopen(url, timeout=5) as response:
            text = response.read().decode()
        for line in text.splitlines():
            if line.startswith(f"{name} "):
                return float(line.rpartition(" ")[2])
        raise AssertionError(f"no metric {name} in\n{text}")

    def descendants(self) -> list[int]:
        """Processes of the nanny, dnsmasq's own included."""
        found, parents = [], [self.process.pid]
        while parents:
            parent = parents.pop()
            try:
                pids = [
                    int(pid) for pid in Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
                ]
            except OSError:  # it has ended meanwhile
                pids = []
            found += pids
            parents += pids
        return found


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Nanny]]:
    """Start nannies; each and its dnsmasq are gone at the end, whatever the test did."""
    started: list[Nanny] = []

    def start(
        *given: str,
        flags: tuple[str, ...] = ("--restartDnsmasq",),
        dnsmasq: str = DNSMASQ,
        port: int | None = None,
        tmpdir: Path | None = None,
    ) -> Nanny:
        scratch = tmp_path / f"nanny{len(started)}"
        scratch.mkdir()
        nanny = Nanny(scratch, flags, given, dnsmasq, port, tmpdir or scratch)
        started.append(nanny)
        return nanny

    yield start
    for nanny in started:
        left = nanny.descendants()
        nanny.process.kill()
        nanny.process.wait()
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        assert "Traceback" not in nanny.log


@pytest.fixture
def name_server() -> Iterator[Callable[..., NameServer]]:
    """Start name servers with the answers given as `label_label="address"`."""
    servers: list[NameServer] = []

    def start(**answers: str | None) -> NameServer:
        servers.append(NameServer(**answers))
        servers[-1].start()
        return servers[-1]

    yield start
    for server in servers:
        with contextlib.suppress(OSError):
            server.socket.shutdown(socket.SHUT_RDWR)
        server.join(5)
        server.socket.close()


@pytest.fixture
def script(tmp_path: Path) -> Callable[[str], str]:
    """Write a program in dnsmasq's place; it gives way to the real one for `--test`."""

    def write(body: str) -> str:
        path = tmp_path / "dnsmasq.sh"
        path.write_text(f'#!/bin/sh\n[ "$1" = --test ] && exec {DNSMASQ} "$@"\n{body}\n')
        path.chmod(0o755)
        return str(path)

    return write
