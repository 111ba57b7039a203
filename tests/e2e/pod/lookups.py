"""Questions as programs ask them: dig for one, a stub resolver's retry for many.

Source of the retry: resolv.conf(5): 2 attempts, 5 s each, a new socket for each; a port that
answers "unreachable" counts as an attempt at once.
"""

import asyncio
import itertools
import socket
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from dnslib import DNSRecord

from tests.e2e.pod.network import run

ATTEMPTS = 2
ATTEMPT_TIMEOUT = 5.0


def place_of(server: str) -> tuple[str, int]:
    """Return address and port of a server given as `ADDRESS` or `ADDRESS#PORT`."""
    address, _, port = server.partition("#")
    return address, int(port or 53)


def dig(server: str, *words: str) -> list[str]:
    """Return the lines of `dig +short`, sorted: addresses shuffle."""
    address, port = place_of(server)
    return sorted(
        run("dig", f"@{address}", "-p", str(port), "+short", "+tries=2", "+time=2", *words).splitlines()
    )


def resolves(server: str, name: str, *lines: str) -> bool:
    """Whether dig prints these lines, in any order; no answer, as while dnsmasq restarts, is a no.

    For conditions that are waited for: there `dig` would end the wait at the first restart.
    """
    try:
        return dig(server, name) == sorted(lines)
    except RuntimeError:
        return False


def dig_status(server: str, *words: str) -> tuple[str, list[str]]:
    """Return the rcode's name and the records of answer and authority, as dig prints them."""
    address, port = place_of(server)
    options = ("+noall", "+comments", "+answer", "+authority", "+tries=2", "+time=2")
    lines = run("dig", f"@{address}", "-p", str(port), *options, *words)
    status = lines.partition("status: ")[2].partition(",")[0]
    return status, [line for line in lines.splitlines() if line and not line.startswith(";")]


@dataclass(slots=True)
class Tally:
    """What became of the lookups; times in seconds, `failures` by reason."""

    asked: int = 0
    answered: int = 0
    retried: int = 0
    slowest: float = 0.0
    failures: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        reasons = ", ".join(f"{reason}: {count}" for reason, count in self.failures.items())
        return (
            f"{self.asked} lookups, {self.answered} answered, {sum(self.failures.values())} failed"
            f"{f' ({reasons})' if reasons else ''}, {self.retried} retried, slowest {self.slowest * 1000:.1f} ms"
        )


class Load:
    """Lookups at a steady rate, each by its own socket, until stopped.

    Used as `async with Load(...) as load`; every lookup has ended when the block is left.
    """

    def __init__(self, server: str, names: Sequence[str], per_second: float) -> None:
        self.tally = Tally()
        self._server, self._names, self._interval = server, names, 1 / per_second
        self._identifiers = itertools.cycle(range(1, 65536))

    async def __aenter__(self) -> "Load":
        self._stopping = asyncio.Event()
        self._sender = asyncio.ensure_future(self._send())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._stopping.set()
        await self._sender

    async def _send(self) -> None:
        loop = asyncio.get_running_loop()
        names, due = itertools.cycle(self._names), loop.time()
        async with asyncio.TaskGroup() as lookups:
            while not self._stopping.is_set():
                lookups.create_task(self._look_up(next(names)))
                due += self._interval
                await asyncio.sleep(max(due - loop.time(), 0))

    async def _look_up(self, name: str) -> None:
        self.tally.asked += 1
        started, reason = time.monotonic(), ""
        for attempt in range(ATTEMPTS):
            self.tally.retried += attempt
            reason = await self._attempt(name)
            if not reason:
                self.tally.answered += 1
                break
        else:
            self.tally.failures[reason] += 1
        self.tally.slowest = max(self.tally.slowest, time.monotonic() - started)

    async def _attempt(self, name: str) -> str:
        """Return why there was no answer, or nothing."""
        loop = asyncio.get_running_loop()
        question = DNSRecord.question(name)
        question.header.id = next(self._identifiers)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
            client.setblocking(False)
            try:
                client.connect(place_of(self._server))
                client.send(question.pack())
                async with asyncio.timeout(ATTEMPT_TIMEOUT):
                    reply = await loop.sock_recv(client, 4096)
            except OSError as error:
                return type(error).__name__
        if reply[:2] != question.pack()[:2]:
            return "wrong ID"
        rcode, answers = reply[3] & 15, int.from_bytes(reply[6:8])
        return "" if rcode == 0 and answers else f"rcode {rcode}, {answers} answers"
