"""Names that this server does not own are asked of upstream name servers.

In: a client's query.  Out: the upstream's reply under the client's ID and with the client's
spelling of the question, EDNS hop by hop, or cut to what the client can take.
Invariants: a client has its reply within 2 s; questions in flight that are equal as they go out, over
the same transport, share one exchange; what is in flight is bounded; no reply, however made,
raises.  Source: ServeDNSForward of SkyDNS.

Differs: the original picks among its name servers by the query's ID and tries two rounds of 2 s;
it passes a truncated reply on without asking over TCP.
"""

from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from time import monotonic
from typing import Any, Final

from kubedns.dns import message as upstream
from kubedns.dns import numbers
from kubedns.dns.error_reply import opt, rejection
from kubedns.dns.labels import MalformedMessage
from kubedns.dns.message import Sections
from kubedns.dns.names import Labels, to_wire
from kubedns.dns.query import Edns, Query, Rejected
from kubedns.dns.records import UNRESOLVED, Resolution, Said, read_reply, resolution
from kubedns.shared.reply import Awaited, Later, Peer, Sink
from kubedns.shared.servers import ServerAddress
from kubedns.telemetry.counters import Outcome, SystemCounters
from kubedns.telemetry.upstreams import UpstreamTraffic
from kubedns.upstream.cacheserver import CacheServer
from kubedns.upstream.exchange import BUDGET_SECONDS
from kubedns.upstream.exchanges import Exchanges
from kubedns.upstream.hop import for_client, outgoing, refuses_edns
from kubedns.upstream.relay import Relay, open_relay
from kubedns.upstream.servers import (
    FEWEST_LABELS,
    Endpoint,
    Routes,
    Upstream,
    is_same,
    make_upstreams,
    stub_setting,
)

_IN_CLASS = numbers.IN.to_bytes(2)
_OUTCOMES: Final = {
    numbers.NOERROR: Outcome.ANSWERED,
    numbers.NXDOMAIN: Outcome.NXDOMAIN,
    numbers.REFUSED: Outcome.REFUSED,
}


_ARPA: Final = b"\4arpa"
Revise = Callable[[Query, Said, bool], Awaitable[bytes | None]]


class Forwarder:
    """Asks upstream name servers on behalf of clients.

    With `revises_all` every reply may speak of names of ours, not only one that mentions the cluster's.
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
        self._cache_text = ""
        self._relay: Relay | None = None
        self._revising = 0
        self._mark = bytes((len(domain[0]),)) + domain[0]
        self.revises_all = False
        self._counters = counters
        self._own = own
        self._exchanges = Exchanges(most_in_flight)
        self._known: dict[ServerAddress, Upstream] = {}
        self._routes = Routes()

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
        self._exchanges.share_no_more()

    @property
    def overloads(self) -> int:
        """Questions that got SERVFAIL because too many others were in flight."""
        return self._exchanges.overloads + (self._relay.overloads if self._relay is not None else 0)

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
        self._cache_text = str(server)
        self._relay = open_relay(self.cache, BUDGET_SECONDS)

    def forward(self, query: Query, *, tcp: bool, revise: Revise) -> Later:
        """Return the reply to a client's query.

        SERVFAIL where no upstream replies in time, none is configured, the name is too short to be
        forwarded, or too much is in flight.  `revise` is shown each reply that mentions what may be ours.
        """
        return Forwarded(self, query, tcp=tcp, revise=revise)

    def begin(self, question: "Forwarded", client: tuple[str, int]) -> None:
        """Send a question on: as a row of the relay where that is possible, else by a task of its own."""
        cache = self._cache_for(question.query, client)
        if self._relay is None or cache is None or not cache.is_up:
            question.wait_for(self._reply_to(question, cache, tcp=question.tcp))
            return
        query = question.query
        self._relay.ask(outgoing(query), numbers.HEADER_SIZE + len(query.question), question)

    def take(self, question: "Forwarded", found: bytes, sections: Sections | None) -> None:
        """Answer a client from the reply of the cache server, whose records are `sections`."""
        query = question.query
        question.by = self._cache_text
        if query.edns is not None and refuses_edns(found, sections):
            question.wait_for(self._reply_to(question, self.cache, tcp=question.tcp, edns=False))
        elif sections is None:
            self.finish(question, _error(query, upstream.rcode(found)))
        elif not self._may_be_ours(found):
            self.finish(question, for_client(query, found, sections, tcp=question.tcp))
        elif self._revising >= self._exchanges.most:
            self.refuse(question)
        else:
            question.wait_for(self._revised_alone(question, found))

    def refuse(self, question: "Forwarded") -> None:
        """Answer SERVFAIL: no reply came in time, or too much is in flight."""
        self.finish(question, _error(question.query, numbers.SERVFAIL))

    def take_long_way(self, question: "Forwarded", *, truncated: bool) -> None:
        """Ask again in a task: over TCP where the reply was cut, else whoever is up."""
        question.wait_for(self._reply_to(question, self.cache, tcp=question.tcp or truncated))

    def finish(self, question: "Forwarded", reply: bytes) -> None:
        """Deliver a reply and count it."""
        self._count(question, reply)
        question.deliver(reply)

    def _count(self, question: "Forwarded", reply: bytes) -> None:
        system, _ = self._routes.route(question.query.labels)
        _count(self._counters[system], reply, monotonic() - question.begun)

    async def _reply_to(
        self, question: "Forwarded", cache: CacheServer | None, *, tcp: bool, edns: bool = True
    ) -> bytes:
        query = question.query
        end = numbers.HEADER_SIZE + len(query.question)
        _, servers = self._routes.route(query.labels)
        found, by = await self._exchanges.ask(outgoing(query, edns=edns), end, servers, cache=cache, tcp=tcp)
        if found is not None and edns and query.edns is not None and refuses_edns(found, _read(found, end)):
            found, by = await self._exchanges.ask(
                outgoing(query, edns=False), end, servers, cache=cache, tcp=tcp
            )
        question.by = by
        reply = _error(query, numbers.SERVFAIL)
        if found is not None:
            if not upstream.has_question(found):
                reply = _error(query, upstream.rcode(found))
            else:
                reply = await self._revised(question, found)
        self._count(question, reply)
        return reply

    async def _revised_alone(self, question: "Forwarded", found: bytes) -> bytes:
        self._revising += 1
        try:
            reply = await self._revised(question, found)
        finally:
            self._revising -= 1
        self._count(question, reply)
        return reply

    async def _revised(self, question: "Forwarded", found: bytes) -> bytes:
        """Return a reply for the client, without what is not the upstream's to say."""
        query, end = question.query, numbers.HEADER_SIZE + len(question.query.question)
        if self._may_be_ours(found):
            try:
                revised = await question.revise(query, read_reply(found, end), question.tcp)
            except MalformedMessage:
                return _error(query, numbers.SERVFAIL)
            if revised is not None:
                return revised
        return for_client(query, found, _read(found, end), tcp=question.tcp)

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
        reply, _ = await self._exchanges.ask(extended, end, servers, tcp=False, cache=self.cache)
        if reply is not None and upstream.rcode(reply) in (numbers.FORMERR, numbers.NOTIMP):
            # RFC 6891 7: it knows no EDNS.
            reply, _ = await self._exchanges.ask(plain, end, servers, tcp=False, cache=self.cache)
        if reply is None or upstream.is_truncated(reply):
            return UNRESOLVED
        if not upstream.has_question(reply):
            return Resolution(upstream.rcode(reply))
        return resolution(reply, end)

    async def close(self) -> None:
        """End all exchanges; whoever waits for one is cancelled."""
        await self._exchanges.close()
        if self._relay is not None:
            self._relay.close()
        if self.cache is not None:
            await self.cache.close()
        for server in self._known.values():
            server.streams.close()


class Forwarded:
    """A client's question on its way: the `Later` of the transport, and a waiter of the relay.

    `by` is the server that the reply came from, empty before it is there; `begun` of the monotonic clock.
    """

    __slots__ = ("_forwarder", "_peer", "_sink", "begun", "by", "query", "revise", "tcp")

    def __init__(self, forwarder: Forwarder, query: Query, *, tcp: bool, revise: Revise) -> None:
        self._forwarder = forwarder
        self.query = query
        self.tcp = tcp
        self.revise = revise
        self.by = ""

    def begin(self, sink: Sink, peer: Peer) -> None:
        """Start; the reply goes to the peer."""
        self._sink = sink
        self._peer = peer
        self.begun = monotonic()
        self._forwarder.begin(self, sink.address(peer))

    def deliver(self, reply: bytes) -> None:
        """Send the reply."""
        self._sink.deliver(self._peer, reply)

    def wait_for(self, reply: Coroutine[Any, Any, bytes]) -> None:
        """Send a reply when it is there."""
        Awaited(reply, name="forwarded question").begin(self._sink, self._peer)

    def answered(self, reply: bytes, found: Sections | None) -> None:
        """Take the reply of the cache server."""
        self._forwarder.take(self, reply, found)

    def unanswered(self) -> None:
        """Take it that there is none in time."""
        self._forwarder.refuse(self)

    def ask_elsewhere(self, *, truncated: bool) -> None:
        """Take it that this reply is of no use."""
        self._forwarder.take_long_way(self, truncated=truncated)


def _read(reply: bytes, end: int) -> Sections | None:
    """Return the records of a reply, None where it can't be read."""
    try:
        return upstream.sections(reply, end)
    except MalformedMessage:
        return None


def _error(query: Query, rcode: int) -> bytes:
    return rejection(Rejected(query.message_id, query.flags, rcode, query.question, query.edns))


def _count(counters: SystemCounters, reply: bytes, seconds: float) -> None:
    truncated = upstream.is_truncated(reply)
    outcome = _OUTCOMES.get(upstream.rcode(reply), Outcome.SERVFAIL)
    if outcome is Outcome.ANSWERED and not truncated and reply[6:8] == b"\0\0":
        outcome = Outcome.NODATA
    counters.count(outcome, len(reply))
    if truncated:
        counters.outcomes[Outcome.TRUNCATED] += 1
    counters.time(seconds, 1)
