"""What an upstream says about a name, as values: the records of its reply, decompressed.

In: the wire form of a reply.  Out: a Resolution.  Names are bounded by 255 octets and pointers
lead back only; a name that was read once is remembered for the pointers to it, so the cost stays
linear in the message.  Source: RFC 1035 4.1.4, RFC 3597 4 (the types whose names may be compressed).
"""

from dataclasses import dataclass
from typing import Final

from kubedns.dns import numbers
from kubedns.dns.labels import MalformedMessage, NameReader
from kubedns.dns.message import Record, flags, rcode, sections
from kubedns.dns.names import Labels, to_wire

_NAMES_IN_RDATA: Final = {
    2: (0, 1),  # NS
    5: (0, 1),  # CNAME
    6: (0, 2),  # SOA
    7: (0, 1),  # MB
    8: (0, 1),  # MG
    9: (0, 1),  # MR
    12: (0, 1),  # PTR
    14: (0, 2),  # MINFO
    15: (2, 1),  # MX
    17: (0, 2),  # RP
    18: (2, 1),  # AFSDB
    21: (2, 1),  # RT
    26: (2, 2),  # PX
    33: (6, 1),  # SRV
    36: (2, 1),  # KX
    39: (0, 1),  # DNAME
}
"""RR type -> octets before the names of its RDATA, and how many names follow."""


@dataclass(frozen=True, slots=True)
class UpstreamRecord:
    """A record of class IN: `owner` with the case it came in, `ttl` in seconds, `rdata` uncompressed."""

    owner: Labels
    rtype: int
    ttl: int
    rdata: bytes


@dataclass(frozen=True, slots=True)
class Resolution:
    """The answer for a name and type: `rcode`, the answer section in order, and the SOA of a negative.

    SERVFAIL, without records, also where no upstream answered.
    """

    rcode: int
    records: tuple[UpstreamRecord, ...] = ()
    soa: UpstreamRecord | None = None


UNRESOLVED: Final = Resolution(numbers.SERVFAIL)


@dataclass(frozen=True, slots=True)
class Said:
    """All that a reply says: its records of class IN by section, in order, without the OPT record."""

    rcode: int
    authoritative: bool
    answer: tuple[UpstreamRecord, ...]
    authority: tuple[UpstreamRecord, ...]
    additional: tuple[UpstreamRecord, ...]


def read_reply(reply: bytes, start: int) -> Said:
    """Return what a reply says, whose question ends at `start`; raises MalformedMessage."""
    reader = _Reader(reply)
    answer, authority, additional = (
        tuple(reader.record(record) for record in section if record.rclass == numbers.IN)
        for section in sections(reply, start)
    )
    additional = tuple(record for record in additional if record.rtype != numbers.OPT)
    return Said(rcode(reply), bool(flags(reply) & numbers.AA), answer, authority, additional)


def resolution(reply: bytes, start: int) -> Resolution:
    """Return what a reply says, whose question ends at `start`; UNRESOLVED where it cannot be read."""
    reader = _Reader(reply)
    try:
        found = sections(reply, start)
        records = [reader.record(record) for record in found.answer if record.rclass == numbers.IN]
        soas = [
            reader.record(r) for r in found.authority if r.rtype == numbers.SOA and r.rclass == numbers.IN
        ]
    except MalformedMessage:
        return UNRESOLVED
    return Resolution(rcode(reply), tuple(records), soas[0] if soas else None)


class _Reader:
    """Reads records of one message."""

    def __init__(self, message: bytes) -> None:
        self._message = message
        self._names = NameReader(message)

    def record(self, record: Record) -> UpstreamRecord:
        owner, _ = self._names.read(record.start)
        # RFC 2181 8: a TTL with the most significant bit set counts as zero.
        ttl = record.ttl if record.ttl < 1 << 31 else 0
        return UpstreamRecord(owner, record.rtype, ttl, self._rdata(record))

    def _rdata(self, record: Record) -> bytes:
        layout = _NAMES_IN_RDATA.get(record.rtype)
        if layout is None:
            return self._message[record.rdata : record.end]
        before, names = layout
        offset = record.rdata + before
        parts = [self._message[record.rdata : offset]]
        for _ in range(names):
            labels, offset = self._names.read(offset)
            parts.append(to_wire(labels))
        if offset > record.end:
            raise MalformedMessage(f"a name runs over the end of the record at octet {record.start}")
        parts.append(self._message[offset : record.end])
        return b"".join(parts)
