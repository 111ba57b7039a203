"""Negative answers of the zone, packed once for all names of the same length.

NXDOMAIN and NODATA carry the zone's SOA (RFC 2308 2), whose names point at the domain at the end
of the question: their octets depend on where it begins there, and on the serial, and on nothing
else.
"""

from kubedns.dns import numbers
from kubedns.dns.names import Labels, to_wire
from kubedns.dns.packed import Packed
from kubedns.dns.query import Query
from kubedns.skydns.answers import ZoneAnswers
from kubedns.skydns.response import pack


class Negatives:
    """The shared negative answers of one zone: some 500 at most, two for each length of a name."""

    def __init__(self, answers: ZoneAnswers, domain: Labels) -> None:
        self._answers = answers
        self._domain = domain
        self._domain_octets = len(to_wire(domain)) - 1
        self._packed: dict[tuple[int, int], Packed] = {}

    def get(self, rcode: int, name_octets: int) -> Packed:
        """Return NXDOMAIN, or NODATA for NOERROR; the name's length is without its root label."""
        packed = self._packed.get((rcode, name_octets))
        if packed is None:
            packed = self._packed[rcode, name_octets] = self._pack(rcode, name_octets)
        return packed

    def refresh(self) -> None:
        """Take over a new serial, in the answers that are kept somewhere too."""
        for (rcode, name_octets), packed in self._packed.items():
            packed.rest = self._pack(rcode, name_octets).rest

    def _pack(self, rcode: int, name_octets: int) -> Packed:
        """Pack behind a name whose only known part is the domain: one label stands for all before it."""
        head_octets = name_octets - self._domain_octets
        head = (b"?" * (head_octets - 1),) if head_octets else ()
        question = bytes(name_octets + 3) + b"\0\1"
        query = Query(b"", 0, question, (*head, *self._domain), numbers.A, numbers.IN, None)
        return pack(query, self._answers.negative(rcode))
