"""The sub-tree of a Service -> answers for its addresses and its ports, packed.

In: what a question asks, as the lean path cuts it, in lower case.  Out: `Packed`, octet for octet what
the full path makes of the same question; None for anything but addresses and SRV records as a Service
has them.  Most answers are first made here, after a change above all: it takes a third of the time.
Source: as for `answers` and `response`.
"""

from struct import pack
from typing import Final

from kubedns.backend import Subtree
from kubedns.dns import numbers
from kubedns.dns.labels import read_labels
from kubedns.dns.names import Labels
from kubedns.skydns.negatives import Negatives
from kubedns.skydns.response import NAME_OF_QUESTION, Packed
from kubedns.skydns.rrset import SRV_PRIORITY

TYPE_AND_CLASS: Final = 4
"""Octets of a question after its name."""
_MOST_TARGETS: Final = 500
"""More SRV records may not fit any message, which the full path knows how to deal with."""


class SubtreePacker:
    """Packs for one zone; `ttl` in seconds, `depth` the number of labels of a Service's name."""

    def __init__(self, negatives: Negatives, ttl: int, depth: int) -> None:
        self._negatives = negatives
        self._depth = depth
        self._address_heads = {
            rtype.to_bytes(2): (octets, _head(rtype, ttl) + octets.to_bytes(2))
            for rtype, octets in numbers.ADDRESS_OCTETS.items()
        }
        self._srv_head = NAME_OF_QUESTION + _head(numbers.SRV, ttl)

    def addresses(self, subtree: Subtree, head: bytes, question: bytes) -> Packed | None:
        """Pack the A or AAAA records of a Service, or of the one label of `head` below it."""
        if head and head[0] != len(head) - 1:
            return None
        octets, record = self._address_heads[question[-TYPE_AND_CLASS:-2]]
        found = subtree.addresses(head[1:], octets)
        if found is None:
            return None
        if not found:
            return self._negatives.get(numbers.NOERROR, len(question) - TYPE_AND_CLASS - 1)
        record = NAME_OF_QUESTION + record
        return Packed(numbers.AA, ([record + address for address in found], (), ()), turns=True)

    def srv(self, subtree: Subtree, head: bytes, question: bytes) -> Packed | None:
        """Pack the SRV records of a port, whose labels below the Service's name are `head`."""
        found = subtree.targets(path_of(head)) if head else None
        if found is None or len(found) > _MOST_TARGETS:
            return None
        service = question[len(head) : -TYPE_AND_CLASS]
        at = (0xC000 | numbers.HEADER_SIZE + len(head)).to_bytes(2)
        weight = max(1, 100 // len(found))
        records: dict[bytes, None] = {}
        names: dict[bytes, bytes] = {}
        for target, port in found:
            label = target[0] if len(target) > self._depth else b""
            name = bytes((len(label),)) + label if label else b""
            names[label] = name
            data = pack("!HHH", SRV_PRIORITY, weight, port) + name + service
            records[self._srv_head + len(data).to_bytes(2) + data] = None
        additional = [
            name + at + record + address
            for label, name in names.items()
            for octets, record in self._address_heads.values()
            for address in subtree.addresses(label, octets) or ()
        ]
        return Packed(numbers.AA, (list(records), (), additional), turns=True)


def path_of(head: bytes) -> Labels:
    """Return the path, right to left, of labels in wire form without a root."""
    if head[0] == len(head) - 1:
        return (head[1:],)
    labels, _ = read_labels(head + b"\0", 0)
    return tuple(reversed(labels))


def _head(rtype: int, ttl: int) -> bytes:
    """Return type, class and TTL of a record."""
    return pack("!HHI", rtype, numbers.IN, ttl)
