"""What an upstream says about a name, as values: the records of its reply, decompressed.

In: the wire form of a reply.  Out: a Resolution.  Names are bounded by 255 octets and pointers
lead back only; a name that was read once is remembered for the pointers to it, so the cost stays
linear in the message.  Source: RFC 1035 4.1.4, RFC 3597 4 (the types whose names may be compressed).
"""

import struct
from dataclasses import dataclass
from typing import Final

from kubedns.dns import numbers
from kubedns.dns.message import MalformedMessage, Record, rcode, sections
from kubedns.dns.names import LONGEST_NAME, Labels, to_wire

_POINTER = 0xC0
_LONGEST_LABEL = 63
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
        self._known: dict[int, Labels] = {}

    def record(self, record: Record) -> UpstreamRecord:
        owner, _ = self._name(record.start)
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
            labels, offset = self._name(offset)
            parts.append(to_wire(labels))
        if offset > record.end:
            raise MalformedMessage(f"a name runs over the end of the record at octet {record.start}")
        parts.append(self._message[offset : record.end])
        return b"".join(parts)

    def _name(self, offset: int) -> tuple[Labels, int]:
        """Return the name at an offset, and the offset after it."""
        labels: list[bytes] = []
        jumps: list[tuple[int, int]] = []
        octets, position, lowest, after = 1, offset, offset, 0
        try:
            while length := self._message[position]:
                if length >= _POINTER:
                    (pointer,) = struct.unpack_from("!H", self._message, position)
                    target = pointer & 0x3FFF
                    if target >= lowest:
                        raise MalformedMessage(f"compression pointer to octet {target} does not lead back")
                    after = after or position + 2
                    jumps.append((target, len(labels)))
                    position = lowest = target
                    if (suffix := self._known.get(target)) is not None:
                        labels += suffix
                        octets += sum(map(len, suffix)) + len(suffix)
                        break
                    continue
                if length > _LONGEST_LABEL:
                    raise MalformedMessage(f"label of unknown kind at octet {position}")
                labels.append(self._message[position + 1 : position + 1 + length])
                octets += 1 + length
                position += 1 + length
                if octets > LONGEST_NAME:
                    break
        except (IndexError, struct.error) as error:
            raise MalformedMessage(f"ends within the name at octet {offset}") from error
        if octets > LONGEST_NAME:
            raise MalformedMessage(f"name longer than {LONGEST_NAME} octets at octet {offset}")
        name = tuple(labels)
        self._known.update((target, name[index:]) for target, index in jumps)
        return name, after or position + 1
