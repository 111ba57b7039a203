"""Names that this server does not own are asked of upstream name servers.

In: a client's query.  Out: the upstream's reply under the client's ID and with the client's
spelling of the question, EDNS hop by hop, or cut to what the client can take.
Invariants: a client has its reply within 2 s; questions in flight that are equal as they go out, over
the same transport, share one exchange; what is in flight is bounded; no reply, however made,
raises.  Source: ServeDNSForward of SkyDNS.

Differs: the original picks among its name servers by the query's ID and tries two rounds of 2 s;
it passes a truncated reply on without asking over TCP.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from functools import partial
from typing import Any, Final

from kubedns.dns import message as upstream
from kubedns.dns import numbers
from kubedns.dns.error_reply import opt, rejection
from kubedns.dns.labels import MalformedMessage
from kubedns.dns.names import Labels, to_wire
from kubedns.dns.query import Edns, Query, Rejected
from kubedns.dns.records import UNRESOLVED, Resolution, Said, read_reply, resolution
from kubedns.shared.files import share_of_open_files
from kubedns.shared.reply import Awaited, Later, Peer, Sink
from kubedns.shared.servers import ServerAddress
from kubedns.shared.tasks import cancel, spawn
from kubedns.telemetry.counters import Outcome, SystemCounters
from kubedns.telemetry.upstreams import UpstreamTraffic
from kubedns.upstream.cacheserver import CacheServer
from kubedns.upstream.exchange import BUDGET_SECONDS, Exchange
from kubedns.upstream.hop import for_client, outgoing, refuses_edns
from kubedns.upstream.servers import (
    FEWEST_LABELS,
    Endpoint,
    Routes,
    Upstream,
    in_order,
    is_same,
    make_upstreams,
    stub_setting,
)

MOST_IN_FLIGHT: Final = 1000
"""Questions that may wait for an upstream, unless the process may open few files."""

_FILES_PER_QUESTION: Final = 4
_IN_CLASS = numbers.IN.to_bytes(2)
_OUTCOMES: Final = {
    numbers.NOERROR: Outcome.ANSWERED,
    numbers.NXDOMAIN: Outcome.NXDOMAIN,
    numbers.REFUSED: Outcome.REFUSED,
}


_ARPA: Final = b"\4arpa"
_Key = tuple[bool, bool, bytes]
"""Over TCP, through the cache server, and the message as it goes out without its ID."""
Revise = Callable[[Query, Said, bool], Awaitable[bytes | None]]
_WAITERS_PER_QUESTION: Final = 4
"""Clients that may wait for each place, as many can wait for the same answer."""


class Forwarder:
    """Asks upstream name servers on behalf of clients.

    `overloads` counts questions that got SERVFAIL because too many others were in flight.  With
    `revises_all` every reply may speak of names of ours, not only one that mentions the cluster's.
    """

    def __init__(
        self,
        counters: Mapping[str, SystemCounters],
        *,
        domain: Labels,
        own: Sequence[Endpoint] = (),
        most_in_flight: int | None = None,
    ) -> None:
        """Begin without any upstream.

        `counters` are those of the systems `recursive` and `stub`; `domain` is the cluster domain, of
        which no other server may speak; `own` are the addresses and ports that this server listens on,
        read by `configure`.
        """
        self.cache: CacheServer | None = None
        self._mark = bytes((len(domain[0]),)) + domain[0]
        self.revises_all = False
        self.overloads = 0
        self._counters = counters
        self._own = own
        self._most_in_flight = most_in_flight or share_of_open_files(MOST_IN_FLIGHT, _FILES_PER_QUESTION)
        self._known: dict[ServerAddress, Upstream] = {}
        self._routes = Routes()
        self._in_flight: dict[_Key, asyncio.Task[bytes | None]] = {}
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

    def traffic(self) -> Mapping[str, UpstreamTraffic]:
        """Return the counts of each server in use by its address; of one named twice, those of the cache."""
        used = {str(address): server.traffic for address, server in self._known.items()}
        if self.cache is not None:
            used[str(self.cache.upstream.server)] = self.cache.upstream.traffic
        return used

    def use_cache(self, server: ServerAddress) -> None:
        """Ask one server for names elsewhere before those of the configuration; called once, at the start.

        Raises ValueError for an address that cannot be asked, or that is this server's own.
        """
        if any(is_same(server, endpoint) for endpoint in self._own):
            raise ValueError(f"{server} is this server itself")
        self.cache = CacheServer(Upstream(server))

    def forward(self, query: Query, *, tcp: bool, revise: Revise) -> Later:
        """Return the reply to a client's query.

        SERVFAIL where no upstream replies in time, none is configured, the name is too short to be
        forwarded, or too much is in flight.  `revise` is shown each reply that mentions what may be ours.
        """
        return _Forwarded(partial(self._reply_to, query, tcp, revise))

    async def _reply_to(self, query: Query, tcp: bool, revise: Revise, client: tuple[str, int]) -> bytes:
        end = numbers.HEADER_SIZE + len(query.question)
        loop = asyncio.get_running_loop()
        begun = loop.time()
        system, servers = self._routes.route(query.labels)
        cache = self._cache_for(query, client)
        found = await self._ask(outgoing(query), end, servers, cache=cache, tcp=tcp)
        if found is not None and query.edns is not None and refuses_edns(found, end):
            found = await self._ask(outgoing(query, edns=False), end, servers, cache=cache, tcp=tcp)
        reply = None
        if found is None:
            reply = _error(query, numbers.SERVFAIL)
        elif not upstream.has_question(found):
            reply = _error(query, upstream.rcode(found))
        elif self._may_be_ours(found):
            try:
                reply = await revise(query, read_reply(found, end), tcp)
            except MalformedMessage:
                reply = _error(query, numbers.SERVFAIL)
        if reply is None and found is not None:
            reply = for_client(query, found, tcp)
        assert reply is not None
        _count(self._counters[system], reply, loop.time() - begun)
        return reply

    def _cache_for(self, query: Query, client: tuple[str, int]) -> CacheServer | None:
        """Return the cache server where it is to be asked: for no reverse name, and not for itself."""
        cache = self.cache
        if cache is None or cache.is_client(client) or query.labels[-1:] == (b"arpa",):
            return None
        return cache

    def _may_be_ours(self, reply: bytes) -> bool:
        """Whether a reply may speak of a name of ours: a label is never cut, however names are compressed."""
        if self.revises_all:
            return True
        lower = reply.lower()
        return self._mark in lower or _ARPA in lower

    async def resolve(self, labels: Labels, qtype: int) -> Resolution:
        """Return what the upstreams say of a name and type; for the targets of CNAME records.

        SERVFAIL stands for every failure, timeouts included.
        """
        name = to_wire(labels) if all(0 < len(label) <= numbers.LONGEST_LABEL for label in labels) else b""
        if not 0 < len(name) <= numbers.LONGEST_NAME:
            return UNRESOLVED
        _, servers = self._routes.route(labels)
        if not servers and len(labels) < FEWEST_LABELS and self.cache is None:
            return Resolution(numbers.NXDOMAIN)  # a host name without a domain: no server knows it
        question = name + qtype.to_bytes(2) + _IN_CLASS
        end = numbers.HEADER_SIZE + len(question)
        plain = b"\0\0\1\0\0\1\0\0\0\0\0\0" + question
        extended = plain[:11] + b"\1" + question + opt(Edns(numbers.LARGEST_UDP_PAYLOAD, do=False))
        reply = await self._ask(extended, end, servers, tcp=False, cache=self.cache)
        if reply is not None and upstream.rcode(reply) in (numbers.FORMERR, numbers.NOTIMP):
            reply = await self._ask(
                plain, end, servers, tcp=False, cache=self.cache
            )  # RFC 6891 7: it knows no EDNS
        if reply is None or upstream.is_truncated(reply):
            return UNRESOLVED
        if not upstream.has_question(reply):
            return Resolution(upstream.rcode(reply))
        return resolution(reply, end)

    async def close(self) -> None:
        """End all exchanges; whoever waits for one is cancelled."""
        await cancel(*self._exchanges)
        if self.cache is not None:
            await self.cache.close()
        for server in self._known.values():
            server.streams.close()

    async def _ask(
        self,
        query: bytes,
        end: int,
        upstreams: Sequence[Upstream],
        *,
        tcp: bool,
        cache: CacheServer | None = None,
    ) -> bytes | None:
        if not upstreams and cache is None:
            return None
        key = (tcp, cache is not None, query[2:])
        task = self._in_flight.get(key)
        if task is None:
            first = None if cache is None else cache.upstream
            order = in_order(upstreams, asyncio.get_running_loop().time())
            if self._is_overloaded(first or order[0]):
                self.overloads += 1
                return None
            task = self._begin(key, first or order[0], self._run(query, end, order, tcp=tcp, cache=cache))
        elif self._waiting >= self._most_in_flight * _WAITERS_PER_QUESTION:
            self.overloads += 1
            return None
        self._waiting += 1
        try:
            return await asyncio.shield(task)
        finally:
            self._waiting -= 1

    async def _run(
        self, query: bytes, end: int, order: list[Upstream], *, tcp: bool, cache: CacheServer | None
    ) -> bytes | None:
        """Ask the cache server while it is up, else the servers in order."""
        loop = asyncio.get_running_loop()
        begun = loop.time()
        if cache is not None:
            try:
                async with asyncio.timeout(BUDGET_SECONDS):
                    said = await cache.ask(query, end, tcp=tcp)
            except TimeoutError:
                return None
            if said is not None:
                return said
        return await Exchange(query, end, tcp=tcp, spent=loop.time() - begun).run(order)

    def _is_overloaded(self, first: Upstream) -> bool:
        """Whether another question to this server first would take the place of those to others.

        One that answers may hold three quarters of all places, one that does not a quarter.
        """
        share = self._most_in_flight // 4 * (1 if first.is_failing else 3)
        return first.under_way >= max(1, share) or len(self._exchanges) >= self._most_in_flight

    def _begin(
        self, key: _Key, first: Upstream, exchange: Coroutine[Any, Any, bytes | None]
    ) -> asyncio.Task[bytes | None]:
        first.under_way += 1
        task = spawn(exchange, name="upstream exchange")
        self._in_flight[key] = task
        self._exchanges.add(task)

        def ended(task: asyncio.Task[bytes | None]) -> None:
            first.under_way -= 1
            self._exchanges.discard(task)
            if self._in_flight.get(key) is task:
                del self._in_flight[key]

        task.add_done_callback(ended)
        return task


class _Forwarded:
    """The reply to a forwarded question, which depends on who asks."""

    by = ""

    def __init__(self, reply_to: Callable[[tuple[str, int]], Coroutine[Any, Any, bytes]]) -> None:
        self._reply_to = reply_to

    def begin(self, sink: Sink, peer: Peer) -> None:
        Awaited(self._reply_to(sink.address(peer)), name="forwarded question").begin(sink, peer)


def _error(query: Query, rcode: int) -> bytes:
    return rejection(Rejected(query.message_id, query.flags, rcode, query.question, query.edns))


def _count(counters: SystemCounters, reply: bytes, seconds: float) -> None:
    outcome = _OUTCOMES.get(upstream.rcode(reply), Outcome.SERVFAIL)
    if outcome is Outcome.ANSWERED and reply[6:8] == b"\0\0" and not upstream.is_truncated(reply):
        outcome = Outcome.NODATA
    counters.count(outcome, len(reply))
    if upstream.is_truncated(reply):
        counters.outcomes[Outcome.TRUNCATED] += 1
    counters.time(seconds, 1)
