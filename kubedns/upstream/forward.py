"""Names that this server does not own are asked of upstream name servers.

In: a client's query.  Out: the upstream's reply under the client's ID and with the client's
spelling of the question, otherwise unchanged (RFC 5625), or cut to what the client can take.
Invariants: a client has its reply within 2 s; questions in flight that are equal after the ID, over
the same transport, share one exchange; what is in flight is bounded; no reply, however made,
raises.  Source: ServeDNSForward of SkyDNS.

Differs: the original picks among its name servers by the query's ID and tries two rounds of 2 s;
it passes a truncated reply on without asking over TCP.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final

from kubedns.dns import message as upstream
from kubedns.dns import numbers
from kubedns.dns.error_reply import opt, rejection
from kubedns.dns.names import Labels, to_wire
from kubedns.dns.query import Edns, Query, Rejected, parse_query
from kubedns.dns.records import UNRESOLVED, Resolution, resolution
from kubedns.shared.files import share_of_open_files
from kubedns.shared.servers import ServerAddress
from kubedns.shared.tasks import cancel, spawn
from kubedns.telemetry.counters import Outcome, SystemCounters
from kubedns.upstream.exchange import Exchange
from kubedns.upstream.servers import Endpoint, Routes, Upstream, in_order, make_upstreams, stub_setting

MOST_IN_FLIGHT: Final = 1000
"""Questions that may wait for an upstream, unless the process may open few files."""

_FILES_PER_QUESTION: Final = 4
_IN_CLASS = numbers.IN.to_bytes(2)
_OUTCOMES: Final = {
    numbers.NOERROR: Outcome.ANSWERED,
    numbers.NXDOMAIN: Outcome.NXDOMAIN,
    numbers.REFUSED: Outcome.REFUSED,
}


_WAITERS_PER_QUESTION: Final = 4
"""Clients that may wait for each place, as many can wait for the same answer."""


class Forwarder:
    """Asks upstream name servers on behalf of clients.

    `overloads` counts questions that got SERVFAIL because too many others were in flight.
    """

    def __init__(
        self,
        counters: Mapping[str, SystemCounters],
        *,
        own: Sequence[Endpoint] = (),
        most_in_flight: int | None = None,
    ) -> None:
        """Begin without any upstream.

        `counters` are those of the systems `recursive` and `stub`; `own` are the addresses and ports
        that this server listens on, read by `configure`.
        """
        self.overloads = 0
        self._counters = counters
        self._own = own
        self._most_in_flight = most_in_flight or share_of_open_files(MOST_IN_FLIGHT, _FILES_PER_QUESTION)
        self._known: dict[ServerAddress, Upstream] = {}
        self._routes = Routes()
        self._in_flight: dict[tuple[bool, bytes], asyncio.Task[bytes | None]] = {}
        self._exchanges: set[asyncio.Task[bytes | None]] = set()
        self._waiting = 0

    def configure(
        self,
        nameservers: Sequence[ServerAddress],
        stub_domains: Mapping[Labels, Sequence[ServerAddress]],
    ) -> None:
        """Replace the upstreams; questions in flight stay with the ones they were sent to.

        Servers that cannot be asked, or are this server itself, are left out with a warning.
        """
        known = dict(self._known)
        plain = make_upstreams(nameservers, self._own, known, "name servers")
        stubs = {
            domain: make_upstreams(servers, self._own, known, stub_setting(domain))
            for domain, servers in stub_domains.items()
        }
        used = {server for group in (plain, *stubs.values()) for server in group}
        for unused in set(known.values()) - used:
            unused.streams.close()
        self._known = {address: server for address, server in known.items() if server in used}
        self._routes = Routes(plain, stubs)
        self._in_flight = {}

    def targets(self) -> list[tuple[ServerAddress, str]]:
        """Return each server in force with the domain that it is asked for, `.` for all other names."""
        return self._routes.targets()

    async def forward(
        self, query: bytes, labels: Labels, *, tcp: bool, limit: int = numbers.LARGEST_MESSAGE
    ) -> bytes | None:
        """Return the reply to a client's query, at most `limit` octets of it.

        `labels` are those of the question, in lower case.  SERVFAIL where no upstream replies in
        time, none is configured, the name is too short to be forwarded, or too much is in flight.
        None when the query has no single well-formed question.
        """
        end = upstream.question_end(query)
        if end is None:
            return None
        loop = asyncio.get_running_loop()
        begun = loop.time()
        system, servers = self._routes.route(labels)
        found = await self._ask(query, end, servers, tcp=tcp)
        if found is None:
            reply = _error(query, numbers.SERVFAIL)
        elif not upstream.has_question(found):
            reply = _error(query, upstream.rcode(found))
        else:
            reply = upstream.cut(upstream.reply_for(query, end, found), end, limit)
        if reply is not None:
            _count(self._counters[system], reply, loop.time() - begun)
        return reply

    async def resolve(self, labels: Labels, qtype: int) -> Resolution:
        """Return what the upstreams say of a name and type; for the targets of CNAME records.

        SERVFAIL stands for every failure, timeouts included.
        """
        name = to_wire(labels) if all(0 < len(label) <= numbers.LONGEST_LABEL for label in labels) else b""
        if not 0 < len(name) <= numbers.LONGEST_NAME:
            return UNRESOLVED
        _, servers = self._routes.route(labels)
        question = name + qtype.to_bytes(2) + _IN_CLASS
        end = numbers.HEADER_SIZE + len(question)
        plain = b"\0\0\1\0\0\1\0\0\0\0\0\0" + question
        extended = plain[:11] + b"\1" + question + opt(Edns(numbers.LARGEST_UDP_PAYLOAD, do=False))
        reply = await self._ask(extended, end, servers, tcp=False)
        if reply is not None and upstream.rcode(reply) in (numbers.FORMERR, numbers.NOTIMP):
            reply = await self._ask(plain, end, servers, tcp=False)  # RFC 6891 7: it knows no EDNS
        if reply is None or upstream.is_truncated(reply):
            return UNRESOLVED
        if not upstream.has_question(reply):
            return Resolution(upstream.rcode(reply))
        return resolution(reply, end)

    async def close(self) -> None:
        """End all exchanges; whoever waits for one is cancelled."""
        await cancel(*self._exchanges)
        for server in self._known.values():
            server.streams.close()

    async def _ask(self, query: bytes, end: int, upstreams: Sequence[Upstream], *, tcp: bool) -> bytes | None:
        if not upstreams:
            return None
        key = (tcp, query[2:])
        task = self._in_flight.get(key)
        if task is None:
            order = in_order(upstreams, asyncio.get_running_loop().time())
            if self._is_overloaded(order[0]):
                self.overloads += 1
                return None
            task = self._begin(key, query, end, order)
        elif self._waiting >= self._most_in_flight * _WAITERS_PER_QUESTION:
            self.overloads += 1
            return None
        self._waiting += 1
        try:
            return await asyncio.shield(task)
        finally:
            self._waiting -= 1

    def _is_overloaded(self, first: Upstream) -> bool:
        """Whether another question to this server first would take the place of those to others.

        One that answers may hold three quarters of all places, one that does not a quarter.
        """
        share = self._most_in_flight // 4 * (1 if first.is_failing else 3)
        return first.under_way >= max(1, share) or len(self._exchanges) >= self._most_in_flight

    def _begin(
        self, key: tuple[bool, bytes], query: bytes, end: int, order: list[Upstream]
    ) -> asyncio.Task[bytes | None]:
        first = order[0]
        first.under_way += 1
        task = spawn(Exchange(query, end, tcp=key[0]).run(order), name="upstream exchange")
        self._in_flight[key] = task
        self._exchanges.add(task)

        def ended(task: asyncio.Task[bytes | None]) -> None:
            first.under_way -= 1
            self._exchanges.discard(task)
            if self._in_flight.get(key) is task:
                del self._in_flight[key]

        task.add_done_callback(ended)
        return task


def _error(query: bytes, rcode: int) -> bytes | None:
    parsed = parse_query(query)
    if isinstance(parsed, Query):
        parsed = Rejected(parsed.message_id, parsed.flags, rcode, parsed.question, parsed.edns)
    return None if parsed is None else rejection(parsed)


def _count(counters: SystemCounters, reply: bytes, seconds: float) -> None:
    outcome = _OUTCOMES.get(upstream.rcode(reply), Outcome.SERVFAIL)
    if outcome is Outcome.ANSWERED and reply[6:8] == b"\0\0" and not upstream.is_truncated(reply):
        outcome = Outcome.NODATA
    counters.count(outcome, len(reply))
    if upstream.is_truncated(reply):
        counters.outcomes[Outcome.TRUNCATED] += 1
    counters.time(seconds, 1)
