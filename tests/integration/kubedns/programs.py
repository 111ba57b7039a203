"""The record server and the local API as processes, and clients that ask them.

A program's log is read as it comes; whoever waits does so for a line of it, with a deadline.
"""

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self

PATIENCE_SECONDS = 30.0
ROOT = Path(__file__).parents[3]


class Program:
    """A child process; leaving its context ends it."""

    def __init__(self, argv: Sequence[str], environ: Mapping[str, str] | None = None) -> None:
        self._said = threading.Condition()
        self.lines: list[str] = []
        self.process = subprocess.Popen(
            [sys.executable, "-m", *argv],
            cwd=ROOT,
            env={**os.environ, "PROMETHEUS_PORT": "0", **(environ or {})},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with self._said:
                self.lines.append(line.rstrip("\n"))
                self._said.notify_all()
        with self._said:
            self._said.notify_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(PATIENCE_SECONDS)
        self._reader.join(PATIENCE_SECONDS)
        if self.process.stdout is not None:
            self.process.stdout.close()

    def line(self, pattern: str, *, after: int = 0) -> re.Match[str]:
        """Wait for a line of the log, counted from `after` on, in which a pattern is found."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        at = after
        with self._said:
            while True:
                while at < len(self.lines):
                    if found := re.search(pattern, self.lines[at]):
                        return found
                    at += 1
                ended = self.process.poll() is not None and not self._reader.is_alive()
                left = deadline - time.monotonic()
                if ended or left <= 0:
                    raise AssertionError(f"no line {pattern!r} in:\n" + self.log)
                self._said.wait(min(left, 0.2))

    @property
    def log(self) -> str:
        return "\n".join(self.lines)

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def status(self) -> int:
        """Wait for the end and return the exit status."""
        status = self.process.wait(PATIENCE_SECONDS)
        self._reader.join(PATIENCE_SECONDS)
        return status

    def resident_octets(self) -> int:
        """Memory in RAM."""
        with open(f"/proc/{self.process.pid}/statm") as statm:
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class LocalApi(Program):
    """An API server with the objects of manifests; `url` is where."""

    def __init__(self, *words: str) -> None:
        super().__init__(["kubedns.local", "api", "--port=0", *words])
        self.url = self.line(r"serving \d+ objects at (https?://\S+)")[1]

    def apply(self, method: str, path: str, body: str) -> None:
        """Create, replace or delete an object."""
        request = urllib.request.Request(
            self.url + path, body.encode() or None, {"Content-Type": "application/json"}, method=method
        )
        with urllib.request.urlopen(request, timeout=PATIENCE_SECONDS) as response:
            assert response.status < 300


class KubeDns(Program):
    """The record server; ports are free ones and known once it listens."""

    def __init__(self, *flags: str, environ: Mapping[str, str] | None = None) -> None:
        super().__init__(["kubedns", "--dns-port=0", "--healthz-port=0", *flags], environ)

    def listen(self) -> Self:
        """Wait until it answers; then `dns_port` and `healthz_port` are set."""
        self.dns_port = int(self.line(r"answering DNS at \S+, port (\d+)")[1])
        self.healthz_port = int(self.line(r"serving health checks .* at port (\d+)")[1])
        return self

    def synced(self) -> Self:
        """Wait until it knows the cluster."""
        self.listen()
        self.line(r"synced after")
        return self

    def get(self, path: str, port: int | None = None) -> tuple[int, str]:
        """Return status and body of a GET from the health port, or another."""
        try:
            url = f"http://127.0.0.1:{port or self.healthz_port}{path}"
            with urllib.request.urlopen(url, timeout=PATIENCE_SECONDS) as response:
                return response.status, response.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def ask(self, query: bytes, *, tcp: bool = False, host: str = "127.0.0.1") -> bytes:
        """Return the reply to a query; a lost datagram is sent again."""
        return ask_tcp(query, self.dns_port, host) if tcp else ask_udp(query, self.dns_port, host)


def ask_udp(query: bytes, port: int, host: str = "127.0.0.1") -> bytes:
    """Return the reply to a query over UDP, under its own ID."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as client:
        client.connect((host, port))
        client.settimeout(5.0)
        for _ in range(3):
            client.send(query)
            with suppress(TimeoutError):
                while True:
                    reply = client.recv(65535)
                    if reply[:2] == query[:2]:
                        return reply
    raise AssertionError(f"no reply from {host} port {port}")


def ask_tcp(query: bytes, port: int, host: str = "127.0.0.1") -> bytes:
    """Return the reply to a query over TCP."""
    with socket.create_connection((host, port), timeout=PATIENCE_SECONDS) as client:
        client.sendall(len(query).to_bytes(2) + query)
        stream = client.makefile("rb")
        with stream:
            return stream.read(int.from_bytes(stream.read(2)))
