"""The answering rooms on a zone, without sockets, and with upstreams that are a table."""

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from kubedns.backend import Backend
from kubedns.dns.names import Labels, to_wire
from kubedns.dns.query import Query
from kubedns.dns.records import Resolution, UpstreamRecord
from kubedns.shared.reply import Awaited, Later
from kubedns.skydns.answers import Policy, ZoneAnswers
from kubedns.skydns.server import Revise, Server
from kubedns.telemetry.counters import ServerCounters
from tests.later import settled
from tests.protocol.oracle import Rr

_RCODES = {"NOERROR": 0, "SERVFAIL": 2, "NXDOMAIN": 3, "REFUSED": 5}
_TYPES = {"A": 1, "CNAME": 5, "AAAA": 28, "SRV": 33}
Outside = Mapping[tuple[str, str], tuple[str, list[Rr]]]


class TableForwarder:
    """Stands for the forwarder: the names of `outside` have answers, others are SERVFAIL."""

    def __init__(self, outside: Outside) -> None:
        self._outside = outside
        self.forwarded: list[Labels] = []
        self.resolved: list[tuple[Labels, int]] = []

    def forward(self, query: Query, *, tcp: bool, revise: Revise) -> Later:
        """Refuse everything, under the question's own bytes."""
        self.forwarded.append(query.labels)

        async def refused() -> bytes:
            return query.message_id + b"\x81\x85\0\1\0\0\0\0\0\0" + query.question

        return Awaited(refused(), name="refused")

    async def resolve(self, labels: Labels, qtype: int) -> Resolution:
        """Look a name up in the table."""
        self.resolved.append((labels, qtype))
        name = b".".join(labels).decode()
        text = next((text for text, number in _TYPES.items() if number == qtype), f"TYPE{qtype}")
        rcode, records = self._outside.get((name, text), ("SERVFAIL", []))
        return Resolution(_RCODES[rcode], tuple(map(_upstream, records)))


class Served:
    """One server on one backend; `ask` returns what comes back, waited for where need be.

    With `full` nothing goes the fast path, so that every answer is made anew, by the plain rules.
    """

    def __init__(
        self,
        backend: Backend,
        loop: asyncio.AbstractEventLoop,
        *,
        policy: Policy | None = None,
        outside: Outside | None = None,
        clock: float = 0.0,
        full: bool = False,
    ) -> None:
        self._loop = loop
        self.counters = ServerCounters()
        self.forwarder = TableForwarder(outside or {})
        answers = ZoneAnswers(backend, policy or Policy())
        self.server = Server(backend, answers, self.forwarder, self.counters)
        self.server.set_clock(clock)
        self._respond = self.server._full if full else self.server.respond

    def ask(self, query: bytes, *, tcp: bool = False) -> bytes | None:
        reply = self._respond(query, tcp)
        if reply is None or isinstance(reply, bytes):
            return reply
        return self._loop.run_until_complete(settled(reply))


@contextmanager
def own_loop() -> Iterator[asyncio.AbstractEventLoop]:
    """Give a loop of its own to a test that is not a coroutine."""
    loop = asyncio.new_event_loop()
    try:
        yield loop
    finally:
        loop.close()


def _upstream(record: Rr) -> UpstreamRecord:
    rdata = _wire_of(record.rdata) if record.rdtype == "CNAME" else bytes(map(int, record.rdata.split(".")))
    return UpstreamRecord(tuple(record.owner.encode().split(b".")), _TYPES[record.rdtype], 300, rdata)


def _wire_of(name: str) -> bytes:
    return to_wire(tuple(name.encode().split(b".")))
