"""One DNS message in, one out: which part of the server a question is for.

Most questions end on the fast path.  The full path here parses, resolves and packs, and what it
made from the names of one Service it leaves there for the fast path.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from time import perf_counter
from typing import Final, Protocol

from kubedns.backend import Backend
from kubedns.dns import numbers
from kubedns.dns.error_reply import rejection
from kubedns.dns.names import IN_ADDR_ARPA, IP6_ARPA, Labels
from kubedns.dns.packed import Packed
from kubedns.dns.query import Query, Rejected, parse_query
from kubedns.dns.records import Resolution, Said
from kubedns.shared.reply import Awaited, Later, Reply
from kubedns.skydns.answers import ZoneAnswers
from kubedns.skydns.chain import Chain
from kubedns.skydns.chaos import chaos_text
from kubedns.skydns.fastpath import FastPath
from kubedns.skydns.negatives import Negatives
from kubedns.skydns.response import Answer, pack
from kubedns.telemetry.counters import Outcome, ServerCounters, SystemCounters

_log = logging.getLogger(__name__)
_REFUSED_TYPES: Final = frozenset((numbers.ANY, numbers.AXFR, numbers.IXFR))
_LONGEST_CHAIN_SECONDS: Final = 2.0
"""How long a client waits for an alias that leads out of the zone, as for any forwarded question."""
MOST_CHAINS: Final = 1000
"""Aliases followed out of the zone at once; a question beyond them gets SERVFAIL.

Each is a task and holds its question.  A chain counts from its start, and those of one batch of
messages start together: the limit may be passed by one batch.
"""


Revise = Callable[[Query, Said, bool], Awaitable[bytes | None]]


class Forwarder(Protocol):
    """Who answers for names that are not ours."""

    def forward(self, query: Query, *, tcp: bool, revise: Revise) -> Later:
        """Return the reply to a client's query.

        `revise` is shown each reply that mentions what may be ours, and returns another in its place.
        """

    async def resolve(self, labels: Labels, qtype: int) -> Resolution:
        """Return what upstreams say of a name that an alias leads to."""


class Server:
    """Answers messages.  `set_clock` must be called before the first one, and from time to time.

    `overloads` counts questions that got SERVFAIL because too many aliases were being followed.
    """

    def __init__(
        self, backend: Backend, answers: ZoneAnswers, forwarder: Forwarder, counters: ServerCounters
    ) -> None:
        self._backend = backend
        self._answers = answers
        self._forwarder = forwarder
        self._counters = counters
        self._auth = counters.systems["auth"]
        self._negatives = Negatives(answers, backend.domain)
        self._fast = FastPath(backend, self._negatives, counters)
        self._synced = False
        self._took_full_path = False
        self._chains = 0
        self.overloads = 0

    def took_full_path(self) -> bool:
        """Whether the reply given last was made for its question; asked once for each reply."""
        took, self._took_full_path = self._took_full_path, False
        return took

    def set_clock(self, unix_seconds: float) -> None:
        """Set the serial of the SOA: the hour, in seconds since 1970, as the original does."""
        serial = int(unix_seconds) // 3600 * 3600
        if serial != self._answers.serial:
            self._answers.serial = serial
            self._negatives.refresh()

    def respond(self, message: bytes, tcp: bool = False) -> Reply:
        """Answer one message; never raises."""
        try:
            if self._synced:
                reply = self._fast.respond(message, tcp)
                if reply is not None:
                    return reply
            return self._full(message, tcp)
        except Exception:  # noqa: BLE001 - a fault of ours must not cost anybody else an answer
            _log.exception("cannot answer %s", message[:300].hex())
            return rejection(Rejected(message[:2], int.from_bytes(message[2:4]), numbers.SERVFAIL))

    def respond_tcp(self, message: bytes, tcp: bool = True) -> Reply:
        """Answer one message that came over TCP, and time it; UDP times whole batches."""
        begun = perf_counter()
        reply = self.respond(message, tcp)
        if isinstance(reply, bytes):
            self._counters.note_batch(perf_counter() - begun, 1)
        return reply

    def _full(self, message: bytes, tcp: bool) -> Reply:
        query = parse_query(message)
        if query is None:
            return None
        if isinstance(query, Rejected):
            return self._reject(query)
        if query.qclass != numbers.IN or query.qtype in _REFUSED_TYPES:
            chaos = query.qclass == numbers.CH
            answer = (
                chaos_text(query.labels, query.qtype)
                if chaos
                else Answer(numbers.REFUSED, authoritative=False)
            )
            return self._finish(query, pack(query, answer), self._auth, tcp)
        if self._answers.owns(query.labels):
            return self._own(query, tcp)
        if query.labels[-2:] in (IN_ADDR_ARPA, IP6_ARPA):
            return self._reverse(query, tcp)
        return self._forward(query, tcp)

    def _forward(self, query: Query, tcp: bool) -> Reply:
        answer = self._answers.outside(query.labels, query.qtype)
        if answer is not None:
            return self._finish(query, pack(query, answer), self._auth, tcp)
        return self._forwarder.forward(query, tcp=tcp, revise=self._revise)

    async def _revise(self, query: Query, said: Said, tcp: bool) -> bytes | None:
        """Return the reply in place of an upstream's that speaks of names of ours, None where it does not."""
        revised = self._answers.revise(query.labels, query.qtype, said, query.limit(tcp))
        if isinstance(revised, Chain):
            if not self._has_synced():
                revised = self._answers.unresolved(revised)
            else:
                return await self._follow(query, revised, tcp)
        return None if revised is None else pack(query, revised).message(query, query.limit(tcp))[0]

    def _has_synced(self) -> bool:
        self._synced = self._synced or self._backend.has_synced()
        return self._synced

    def _own(self, query: Query, tcp: bool) -> Reply:
        if not self._has_synced():
            return self._refuse(query, self._auth, tcp)
        answer = self._answers.resolve(query.labels, query.qtype, query.limit(tcp))
        if isinstance(answer, Chain):
            if self._chains >= MOST_CHAINS:
                self.overloads += 1
                return self._finish(
                    query, pack(query, Answer(numbers.SERVFAIL, authoritative=False)), self._auth, tcp
                )
            return Awaited(self._follow(query, answer, tcp), name="alias out of the zone")
        self._counters.misses += 1
        if not answer.answer and answer.rcode in (numbers.NOERROR, numbers.NXDOMAIN):
            packed = self._negatives.get(answer.rcode, len(query.name_wire) - 1)
        else:
            packed = pack(query, answer)
        if answer.keep:
            self._fast.keep(query, packed)
        return self._finish(query, packed, self._auth, tcp)

    async def _follow(self, query: Query, chain: Chain, tcp: bool) -> bytes:
        """Take an alias that leads out of the zone to its end, or as far as time allows."""
        begun = perf_counter()
        self._chains += 1
        try:
            async with asyncio.timeout(_LONGEST_CHAIN_SECONDS):
                answer = await self._at_the_end(chain)
        except TimeoutError:
            answer = self._answers.unresolved(chain)
        finally:
            self._chains -= 1
        self._auth.time(perf_counter() - begun, 1)
        return self._finish(query, pack(query, answer), self._auth, tcp)

    async def _at_the_end(self, chain: Chain) -> Answer:
        answer: Answer | Chain = chain
        while isinstance(answer, Chain):
            if self._answers.has(answer.target):
                answer = self._answers.follow(answer)
            else:
                said = await self._forwarder.resolve(answer.target, answer.qtype)
                answer = self._answers.absorb(answer, said)
        return answer

    def _reverse(self, query: Query, tcp: bool) -> Reply:
        system = self._counters.systems["reverse"]
        if not self._has_synced():
            return self._refuse(query, system, tcp)
        answer = self._answers.reverse(query.labels, query.qtype)
        if answer is None:
            return self._forward(query, tcp)
        return self._finish(query, pack(query, answer), system, tcp)

    def _refuse(self, query: Query, system: SystemCounters, tcp: bool) -> bytes:
        return self._finish(query, pack(query, Answer(numbers.REFUSED, authoritative=False)), system, tcp)

    def _reject(self, rejected: Rejected) -> bytes:
        self._took_full_path = True
        reply = rejection(rejected)
        self._auth.count(
            Outcome.SERVFAIL if rejected.rcode == numbers.SERVFAIL else Outcome.REFUSED, len(reply)
        )
        return reply

    def _finish(self, query: Query, packed: Packed, system: SystemCounters, tcp: bool) -> bytes:
        self._took_full_path = True
        reply, truncated = packed.message(query, query.limit(tcp))
        system.count(packed.outcome, len(reply))
        if truncated:
            system.outcomes[Outcome.OVERFLOW if tcp else Outcome.TRUNCATED] += 1
        return reply
