"""The lean path: what a cluster asks all day, names of Services, without parsing or packing.

In: the octets of a query.  Out: the octets of the reply, or None for anything that is not at
once recognised as a plain question for a Service's name, which the full path then answers.
The reply is put together from octets that the sub-tree of the Service holds; they were made by
the full path from the same sub-tree and go with it, so nothing here can be out of date.
"""

from collections.abc import Mapping
from typing import Final

from kubedns import wire
from kubedns.backend import Backend, Subtree
from kubedns.metrics import Outcome, SystemCounters
from kubedns.names import Labels, to_wire
from kubedns.query import Edns, Query, whole_options
from kubedns.rejection import opt
from kubedns.skydns.negatives import Negatives
from kubedns.skydns.response import Packed

_ONE_QUESTION: Final = b"\0\1\0\0\0\0"
_NOTHING_MORE: Final = b"\0\0"
_ONE_MORE: Final = b"\0\1"
_ROOT_OPT: Final = b"\0\0\x29"
_OPTIONS: Final = (opt(Edns(0, do=False)), opt(Edns(0, do=True)))
_ABSENT_TYPES: Final = frozenset(rtype.to_bytes(2) + b"\0\1" for rtype in (wire.A, wire.AAAA, wire.SRV))
_NOT_PLAIN: Final = 0xFA
"""QR, opcode and TC in octet 2 of the header."""
_LONGEST_NAME: Final = 254
"""Octets of the longest name without its root label."""


class LeanPath:
    """Answers plain questions for names of Services once the backend has synced."""

    def __init__(self, backend: Backend, negatives: Negatives, counters: SystemCounters) -> None:
        self._backend = backend
        self._negatives = negatives
        self._counters = counters
        self._subtrees: Mapping[bytes, Subtree] = backend.subtrees
        self._suffix = to_wire((b"svc", *backend.domain))[:-1]
        self._suffix_octets = len(self._suffix)
        self._depth = len(backend.domain) + 3

    def respond(self, message: bytes, tcp: bool) -> bytes | None:  # noqa: C901, PLR0911, PLR0912, PLR0915 - in place, for speed
        """Return the reply to a plain question for a Service's name, None for anything else.

        The name ends at the first zero octet, as the lengths must lead exactly to the zone's own
        labels: a label cannot pretend to be two, or hide the end.
        """
        if message[4:10] != _ONE_QUESTION or message[2] & _NOT_PLAIN:
            return None
        end = message.find(0, wire.HEADER_SIZE)
        name = message[12:end].lower()
        if not name.endswith(self._suffix):
            return None
        stop = len(name) - self._suffix_octets
        service = namespace = position = 0
        while position < stop:
            service, namespace = namespace, position
            length = name[position]
            if length > 63:
                return None
            position += length + 1
        if position != stop or not namespace:
            return None
        after = end + 5
        question = message[end + 1 : after]
        subtree = self._subtrees.get(name[service:stop])
        packed: Packed | None = None
        if subtree is not None and (kept := subtree.packed) is not None:
            packed = kept.get(name[:service] + question)
        if packed is None:
            if question not in _ABSENT_TYPES or not self._is_absent(name, service, subtree):
                return None
            packed = self._negatives.get(wire.NXDOMAIN, len(name))
        elif packed.case_bound and name != message[12:end]:
            return None
        answer = packed.answer if packed.starts is None else packed.turned()
        rd = message[2] & 1
        if len(message) == after and message[10:12] == _NOTHING_MORE:
            option, limit = b"", wire.SMALLEST_PAYLOAD
            reply = b"%b%b%b%b%b" % (message[:2], packed.heads[rd], message[12:after], answer, packed.rest)
        else:
            option, limit = _option(message, after)
            if not option:
                return None
            head = packed.heads_edns[rd]
            reply = b"%b%b%b%b%b%b" % (message[:2], head, message[12:after], answer, packed.rest, option)
        counters = self._counters
        if tcp or len(reply) > limit:
            limit = wire.LARGEST_MESSAGE if tcp else limit
            reply, cut = packed.fitted(answer, message[:2], rd, message[12:after], option, limit)
            if cut:
                counters.outcomes[Outcome.OVERFLOW if tcp else Outcome.TRUNCATED] += 1
            counters.count(packed.outcome, len(reply))
            return reply
        counters.outcomes[packed.outcome] += 1
        counters.sizes[len(reply)] += 1
        return reply

    def keep(self, query: Query, packed: Packed) -> None:
        """Keep an answer at the Service whose names alone it was made from.

        Octets that hold only for a question in lower case are not kept for one in another case.
        """
        if len(query.labels) < self._depth or (packed.case_bound and not query.is_lower_case()):
            return
        stop = len(query.name_wire) - 1 - self._suffix_octets
        service = to_wire(query.labels[-self._depth : -self._depth + 2])[:-1]
        subtree = self._subtrees.get(service)
        if subtree is not None and query.labels[-self._depth + 2] == b"svc":
            if subtree.packed is None:
                subtree.packed = {}
            prefix = query.name_wire[: stop - len(service)].lower()
            subtree.packed[prefix + query.question[-4:]] = packed

    def _is_absent(self, name: bytes, service: int, subtree: Subtree | None) -> bool:
        """Whether a name certainly does not exist; its labels before `service` are below a Service."""
        if b"*" in name or len(name) > _LONGEST_NAME or self._backend.has_federations():
            return False
        return subtree is None or (service > 0 and not subtree.has(_path(name[:service])))


def _path(head: bytes) -> Labels:
    """Return the path, right to left, of labels in wire form without a root."""
    labels, position = [], 0
    while position < len(head):
        after = position + 1 + head[position]
        labels.append(head[position + 1 : after])
        position = after
    return tuple(reversed(labels))


def _option(message: bytes, after: int) -> tuple[bytes, int]:
    """Return our OPT record and the asker's limit where exactly one plain OPT follows, else nothing."""
    if message[10:12] != _ONE_MORE or message[after : after + 3] != _ROOT_OPT or len(message) < after + 11:
        return b"", 0
    options = int.from_bytes(message[after + 9 : after + 11])
    if message[after + 6] or len(message) != after + 11 + options:
        return b"", 0
    if options and not whole_options(message[after + 11 :]):
        return b"", 0
    payload = int.from_bytes(message[after + 3 : after + 5])
    limit = min(max(payload, wire.SMALLEST_PAYLOAD), wire.LARGEST_UDP_PAYLOAD)
    return _OPTIONS[message[after + 7] >> 7], limit
