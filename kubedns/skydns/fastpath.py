"""The fast path: what a cluster asks all day, names of Services, without parsing or packing.

In: the octets of a query.  Out: the octets of the reply, or None for anything that is not at
once recognised as a plain question for a Service's name, which the full path then answers.
The reply is put together from octets that the sub-tree of the Service holds; the full path made them
from the same sub-tree, and they go with it, so nothing here can be out of date.
"""

from collections.abc import Mapping
from typing import Final

from kubedns.backend import Alias, Backend, Subtree
from kubedns.dns import numbers
from kubedns.dns.error_reply import opt
from kubedns.dns.labels import MalformedMessage, read_labels
from kubedns.dns.names import Labels, to_wire
from kubedns.dns.packed import WITH_OPT, Packed
from kubedns.dns.query import Edns, Query, whole_options
from kubedns.skydns.negatives import Negatives
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
_TYPE_AND_CLASS: Final = 4
"""Octets of a question after its name."""
_IN: Final = b"\0\1"
_ROOT_OPT: Final = b"\0\0\x29"
_OPTIONS: Final = (opt(Edns(0, do=False)), opt(Edns(0, do=True)))
_KEPT_TYPES: Final = (numbers.A, numbers.AAAA, numbers.SRV)
_OTHER_WAYS: Final = frozenset((numbers.CNAME, numbers.ANY, numbers.AXFR, numbers.IXFR))
"""Types that the full path answers, or refuses."""
_LONGEST_NAME: Final = numbers.LONGEST_NAME - 1
"""Octets of the longest name without its root label."""


class FastPath:
    """Answers plain questions for names of Services once the backend has synced.

    A question is cut in two, in lower case: its head up to the Service's namespace, which finds the
    sub-tree, and its tail from `svc` on, type and class included.  Whatever does not lead to what is
    kept there is not plain.  No type that is kept is changed by the lower case.
    """

    def __init__(self, backend: Backend, negatives: Negatives, counters: ServerCounters) -> None:
        self._backend = backend
        self._negatives = negatives
        self._counters = counters.systems["auth"]
        self._outcomes = self._counters.outcomes
        self._sizes = self._counters.sizes
        self._nxdomain: dict[int, Packed] = {}
        self._subtrees: Mapping[bytes, Subtree] = backend.subtrees
        self._suffix = to_wire((b"svc", *backend.domain))
        self._tail_octets = len(self._suffix) + _TYPE_AND_CLASS
        self._depth = len(backend.domain) + 3
        # One object for each tail, however many Services have it as a key.
        self._tails = {tail: tail for tail in map(self._tail, _KEPT_TYPES)}

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
            packed = self._packed_below(lower)
        else:
            tail = lower[-self._tail_octets :]
            packed = None if (kept := subtree.packed) is None else kept.get(tail)
            if packed is None:
                packed = self._absent(subtree, (), lower)
        if packed is None:
            return None
        octets = numbers.HEADER_SIZE + len(question) + packed.octets
        if form < WITH_OPT:
            option, limit = b"", numbers.SMALLEST_PAYLOAD
        else:
            option, limit = _option(message, numbers.HEADER_SIZE + len(question))
            if not option:
                return None
            octets += len(option)
        if tcp or octets > limit:
            limit = numbers.LARGEST_MESSAGE if tcp else limit
            reply, cut = packed.fitted(message[:2], form & 1, question, option, limit)
            if cut:
                self._outcomes[Outcome.OVERFLOW if tcp else Outcome.TRUNCATED] += 1
            self._counters.count(packed.outcome, len(reply))
            return reply
        self._outcomes[packed.outcome] += 1
        self._sizes[octets] += 1
        answer = packed.answer if packed.starts is None else packed.rotated()
        return b"".join((message[:2], packed.heads[form], question, answer, packed.rest, option))

    def keep(self, query: Query, packed: Packed) -> None:
        """Keep an answer at the Service whose names alone it was made from."""
        if len(query.labels) < self._depth:
            return
        lower = query.question.lower()
        tail = self._tails.get(lower[-self._tail_octets :])
        head = lower[: -self._tail_octets]
        service = to_wire(query.labels[-self._depth : -self._depth + 2])[:-1]
        subtree = self._subtrees.get(service)
        if subtree is None or tail is None:
            return
        if subtree.packed is None:
            subtree.packed = {}
        subtree.packed[head[: -len(service)] + tail] = packed

    def _packed_below(self, lower: bytes) -> Packed | None:
        """Return what is kept for a name below a Service's, or NXDOMAIN where nothing is there."""
        tail = lower[-self._tail_octets :]
        if not tail.startswith(self._suffix):
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
        below = lower[:service]
        if subtree is not None and (kept := subtree.packed) is not None:
            known = kept.get(below + tail)
            if known is not None:
                return known
        if b"*" in lower or (service and self._backend.has_federations()):
            return None
        octets = len(lower) - _TYPE_AND_CLASS - 1
        if subtree is None and tail in self._tails and octets <= _LONGEST_NAME:
            # Of all names that are asked for these are the next in number to those kept.
            packed = self._nxdomain.get(octets)
            if packed is None:
                packed = self._nxdomain[octets] = self._negatives.get(numbers.NXDOMAIN, octets)
            return packed
        return self._absent(subtree, _labels(below), lower)

    def _absent(self, subtree: Subtree | None, below: Labels, lower: bytes) -> Packed | None:
        """Return NXDOMAIN or NODATA where that is the answer, else None.

        No Service has a record of another type than those kept: that costs no more than to find it.
        """
        tail = lower[-self._tail_octets :]
        qtype = int.from_bytes(tail[-_TYPE_AND_CLASS:-2])
        octets = len(lower) - _TYPE_AND_CLASS - 1
        if octets > _LONGEST_NAME or not tail.startswith(self._suffix) or tail[-2:] != _IN:
            return None
        kept = tail in self._tails
        if qtype in _OTHER_WAYS or (kept and subtree is not None and not below):
            return None
        found = None if subtree is None else subtree.find(below)
        if found is None:
            return self._negatives.get(numbers.NXDOMAIN, octets)
        if found != () and (kept or isinstance(found, Alias)):
            return None
        return self._negatives.get(numbers.NOERROR, octets)


def _last_two_labels(name: bytes, stop: int) -> int | None:
    """Return where the last two labels before an offset begin.

    None where the lengths do not lead exactly there, so that no label can pretend to be two.
    """
    try:
        labels, end = read_labels(name[:stop] + b"\0", 0)
    except MalformedMessage:
        return None
    return stop - len(labels[-1]) - len(labels[-2]) - 2 if end == stop and len(labels) > 1 else None


def _labels(name: bytes) -> Labels:
    """Return the labels of a name without a root, whose lengths are right."""
    return (name[1:],) if name and name[0] == len(name) - 1 else tuple(read_labels(name + b"\0", 0)[0])


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
