"""The lean path: what a cluster asks all day, names of Services, without parsing or packing.

In: the octets of a query.  Out: the octets of the reply, or None for anything that is not at
once recognised as a plain question for a Service's name, which the full path then answers.
The reply is put together from octets that the sub-tree of the Service holds; they were made from
the same sub-tree, addresses and the records of ports by `subtree`, all else by the full path, and go with
it, so nothing here can be out of date.
"""

from collections.abc import Mapping
from typing import Final

from kubedns.backend import Backend, Subtree
from kubedns.dns import numbers
from kubedns.dns.error_reply import opt
from kubedns.dns.labels import MalformedMessage, read_labels
from kubedns.dns.names import to_wire
from kubedns.dns.query import Edns, Query, whole_options
from kubedns.skydns.negatives import Negatives
from kubedns.skydns.response import WITH_OPT, Packed
from kubedns.skydns.subtree import TYPE_AND_CLASS, SubtreePacker, path_of
from kubedns.telemetry.counters import Outcome, ServerCounters

_AD: Final = 0x20
_CD: Final = 0x10
_FORMS: Final = {
    bytes((rd, flags, 0, 1, 0, 0, 0, 0, 0, options)): rd + WITH_OPT * options
    for rd in (0, 1)
    for flags in (0, _AD, _CD, _AD | _CD)
    for options in (0, 1)
}
"""Octets 2 to 11 of a plain query -> the head of its reply (see `Packed.heads`): a standard query with
one question and nothing else, or an OPT record at most (RFC 1035 4.1.1, RFC 4035 3.2)."""
_ROOT_OPT: Final = b"\0\0\x29"
_OPTIONS: Final = (opt(Edns(0, do=False)), opt(Edns(0, do=True)))
_ABSENT_TYPES: Final = (numbers.A, numbers.AAAA, numbers.SRV)
_OTHER_WAYS: Final = frozenset((numbers.CNAME, numbers.ANY, numbers.AXFR, numbers.IXFR))
"""Types that the full path answers, or refuses."""
_LONGEST_NAME: Final = numbers.LONGEST_NAME - 1
"""Octets of the longest name without its root label."""


class LeanPath:
    """Answers plain questions for names of Services once the backend has synced.

    A question is cut in two, in lower case: its head up to the Service's namespace, which finds the
    sub-tree, and its tail from `svc` on, type and class included.  Whatever does not lead to what is
    kept there is not plain.  No type that is kept is changed by the lower case.
    """

    def __init__(self, backend: Backend, negatives: Negatives, ttl: int, counters: ServerCounters) -> None:
        self._backend = backend
        self._negatives = negatives
        self._server_counters = counters
        self._counters = counters.systems["auth"]
        self._outcomes = self._counters.outcomes
        self._sizes = self._counters.sizes
        self._nxdomain: dict[int, Packed] = {}
        self._subtrees: Mapping[bytes, Subtree] = backend.subtrees
        self._suffix = to_wire((b"svc", *backend.domain))
        self._tail_octets = len(self._suffix) + TYPE_AND_CLASS
        self._depth = len(backend.domain) + 3
        # One object for each tail, however many Services have it as a key.
        self._tails = {tail: tail for tail in map(self._tail, _ABSENT_TYPES)}
        self._srv_tail = self._tail(numbers.SRV)
        self._packer = SubtreePacker(negatives, ttl, self._depth)

    def _tail(self, qtype: int) -> bytes:
        return self._suffix + qtype.to_bytes(2) + b"\0\1"

    def respond(self, message: bytes, tcp: bool) -> bytes | None:
        """Return the reply to a plain question for a Service's name, None for anything else."""
        form = _FORMS.get(message[2:12])
        if form is None:
            return None
        # Without OPT the question is all the rest; else its name ends at the first zero octet.
        question = message[12:] if form < WITH_OPT else message[12 : message.find(0, 12) + 5]
        lower = question.lower()
        subtree = self._subtrees.get(lower[: -self._tail_octets])
        if subtree is None:
            packed = self._packed_below(lower, question)
        else:
            tail = lower[-self._tail_octets :]
            packed = None if (kept := subtree.packed) is None else kept.get(tail)
            if packed is None:
                packed = self._made(subtree, b"", lower, question)
        if packed is None or (packed.case_bound and lower != question):
            return None
        answer = packed.answer if packed.starts is None else packed.turned()
        if form < WITH_OPT:
            option, limit = b"", numbers.SMALLEST_PAYLOAD
            reply = b"".join((message[:2], packed.heads[form], question, answer, packed.rest))
        else:
            option, limit = _option(message, numbers.HEADER_SIZE + len(question))
            if not option:
                return None
            reply = b"".join((message[:2], packed.heads[form], question, answer, packed.rest, option))
        if tcp or len(reply) > limit:
            limit = numbers.LARGEST_MESSAGE if tcp else limit
            reply, cut = packed.fitted(answer, message[:2], form & 1, question, option, limit)
            if cut:
                self._outcomes[Outcome.OVERFLOW if tcp else Outcome.TRUNCATED] += 1
            self._counters.count(packed.outcome, len(reply))
            return reply
        self._outcomes[packed.outcome] += 1
        self._sizes[len(reply)] += 1
        return reply

    def keep(self, query: Query, packed: Packed) -> None:
        """Keep an answer at the Service whose names alone it was made from.

        Octets that hold only for a question in lower case are not kept for one in another case.
        """
        if len(query.labels) < self._depth or (packed.case_bound and not query.is_lower_case()):
            return
        lower = query.question.lower()
        tail = self._tails.get(lower[-self._tail_octets :])
        head = lower[: -self._tail_octets]
        service = to_wire(query.labels[-self._depth : -self._depth + 2])[:-1]
        subtree = self._subtrees.get(service)
        if subtree is not None and tail is not None:
            self._keep(subtree, head[: -len(service)] + tail, packed)

    def _packed_below(self, lower: bytes, question: bytes) -> Packed | None:
        """Return what is kept for a name below a Service's, or NXDOMAIN where nothing is there."""
        tail = lower[-self._tail_octets :]
        if tail not in self._tails and not self._is_plain(tail):
            return None
        # Most are one label below, so that no walk is needed.
        service: int | None = lower[0] + 1
        subtree = self._subtrees.get(lower[service : -self._tail_octets])
        if subtree is None or not 0 < lower[0] <= numbers.LONGEST_LABEL:
            stop = len(lower) - self._tail_octets
            service = _last_two_labels(lower, stop)
            if service is None:
                return None
            subtree = self._subtrees.get(lower[service:stop]) if service else None
        if subtree is not None and (kept := subtree.packed) is not None:
            known: Packed | None = kept.get(lower[:service] + tail)
            if known is not None:
                return known
        name_octets = len(lower) - TYPE_AND_CLASS - 1
        if b"*" in lower or name_octets > _LONGEST_NAME or (service and self._backend.has_federations()):
            return None
        if subtree is not None and subtree.has(path_of(lower[:service])):
            return self._made(subtree, lower[:service], lower, question)
        packed = self._nxdomain.get(name_octets)
        if packed is None:
            packed = self._nxdomain[name_octets] = self._negatives.get(numbers.NXDOMAIN, name_octets)
        return packed

    def _made(self, subtree: Subtree, head: bytes, lower: bytes, question: bytes) -> Packed | None:
        """Make and keep the answer for a name that exists; None where the full path has to."""
        tail = lower[-self._tail_octets :]
        octets = len(lower) - TYPE_AND_CLASS - 1
        if octets > _LONGEST_NAME:
            return None
        if tail not in self._tails:
            absent = self._is_plain(tail) and not subtree.is_alias
            return self._negatives.get(numbers.NOERROR, octets) if absent else None
        if tail == self._srv_tail:
            packed = self._packer.srv(subtree, head, lower) if lower == question else None
        else:
            packed = self._packer.addresses(subtree, head, lower)
        if packed is not None:
            self._server_counters.misses += 1
            self._keep(subtree, head + self._tails[tail], packed)
        return packed

    def _is_plain(self, tail: bytes) -> bool:
        """Whether a tail is of class IN, below the suffix, and of no type that the full path must see."""
        qtype = int.from_bytes(tail[-4:-2])
        return tail[-2:] == b"\0\1" and tail.startswith(self._suffix) and qtype not in _OTHER_WAYS

    @staticmethod
    def _keep(subtree: Subtree, key: bytes, packed: Packed) -> None:
        if subtree.packed is None:
            subtree.packed = {}
        subtree.packed[key] = packed


def _last_two_labels(name: bytes, stop: int) -> int | None:
    """Return where the last two labels before an offset begin.

    None where the lengths do not lead exactly there, so that no label can pretend to be two.
    """
    try:
        labels, end = read_labels(name[:stop] + b"\0", 0)
    except MalformedMessage:
        return None
    return stop - len(labels[-1]) - len(labels[-2]) - 2 if end == stop and len(labels) > 1 else None


def _option(message: bytes, after: int) -> tuple[bytes, int]:
    """Return our OPT record and the asker's limit where exactly one plain OPT follows, else nothing."""
    if message[after : after + 3] != _ROOT_OPT or len(message) < after + 11:
        return b"", 0
    options = int.from_bytes(message[after + 9 : after + 11])
    if message[after + 6] or len(message) != after + 11 + options:
        return b"", 0
    if options and not whole_options(message[after + 11 :]):
        return b"", 0
    payload = int.from_bytes(message[after + 3 : after + 5])
    limit = min(max(payload, numbers.SMALLEST_PAYLOAD), numbers.LARGEST_UDP_PAYLOAD)
    return _OPTIONS[message[after + 7] >> 7], limit
