"""Answer -> the octets of its sections.

Names point into the question, or to where they were written before.  Where the answer is kept for
later its records rotate and every case of the question gets the same octets: then names of the
answer section point to the whole name of the question and nowhere else, and those of the
additional section, which begins at the same octet however the answer is rotated, into itself.
Source: RFC 1035 4.1.4.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from kubedns.dns import numbers
from kubedns.dns.names import Labels, to_wire
from kubedns.dns.packed import Packed
from kubedns.dns.query import Query
from kubedns.skydns.rrset import Rdata, RRset
from kubedns.telemetry.counters import Outcome

_LARGEST_POINTER = 0x3FFF
_POINTER_OCTETS = 2
_NAME_OF_QUESTION: Final = (0xC000 | numbers.HEADER_SIZE).to_bytes(2)
_OUTCOMES: Final = {numbers.NXDOMAIN: Outcome.NXDOMAIN, numbers.REFUSED: Outcome.REFUSED}


@dataclass(slots=True)
class Answer:
    """What a question gets.  `keep`: made from nothing but the names of the asked Service."""

    rcode: int = numbers.NOERROR
    authoritative: bool = True
    answer: list[RRset] = field(default_factory=list)
    authority: list[RRset] = field(default_factory=list)
    additional: list[RRset] = field(default_factory=list)
    keep: bool = False


def _outcome(answer: Answer) -> int:
    """Return how an answer counts in the metrics."""
    if answer.rcode == numbers.NOERROR:
        return Outcome.ANSWERED if answer.answer else Outcome.NODATA
    return _OUTCOMES.get(answer.rcode, Outcome.SERVFAIL)


class _Packer:
    """Packs records behind a question; names are written once and pointed at afterwards.

    A name equal to the question's is the question's, case and all (RFC 4343); other names keep
    their own case, so they point into the question only where that is in lower case.
    Records are of the question's class.  With `learn` false no name is pointed at but the
    question's as a whole.
    """

    def __init__(self, query: Query, *, learn: bool) -> None:
        self._query = query
        self._learn = learn
        self._position = numbers.HEADER_SIZE + len(query.question)
        self._class_wire = query.question[-2:]
        self._known: dict[Labels, int] = {}
        if learn and query.is_lower_case():
            self._remember(query.labels, numbers.HEADER_SIZE, len(query.labels))

    def _remember(self, labels: Labels, position: int, written: int) -> None:
        """Take note of where a name and its endings begin; the first `written` labels are there."""
        for index in range(written):
            if position > _LARGEST_POINTER:
                return
            self._known.setdefault(labels[index:], position)
            position += len(labels[index]) + 1

    def _name(self, labels: Labels, position: int) -> bytes:
        if labels == self._query.labels:
            return _NAME_OF_QUESTION
        written, ending = len(labels), b"\0"
        for index in range(len(labels)):
            offset = self._known.get(labels[index:])
            if offset is not None:
                written, ending = index, (0xC000 | offset).to_bytes(2)
                break
        if self._learn:
            self._remember(labels, position, written)
        if written == 1:
            return bytes((len(labels[0]),)) + labels[0] + ending
        return to_wire(labels[:written])[:-1] + ending

    def section(self, rrsets: Iterable[RRset]) -> list[bytes]:
        """Return one section, record by record."""
        records: list[bytes] = []
        for rrset in rrsets:
            fixed = rrset.rtype.to_bytes(2) + self._class_wire + rrset.ttl.to_bytes(4)
            if rrset.owner == self._query.labels and isinstance(rrset.rdatas[0], bytes):
                records += self._plain(_NAME_OF_QUESTION + fixed, rrset.rdatas)
                continue
            owner = b""
            for rdata in rrset.rdatas:
                if len(owner) != _POINTER_OCTETS:
                    owner = self._name(rrset.owner, self._position)
                if isinstance(rdata, bytes):
                    data = rdata
                else:
                    data = self._with_names(rdata, self._position + len(owner) + 10)
                record = b"".join((owner, fixed, len(data).to_bytes(2), data))
                records.append(record)
                self._position += len(record)
        return records

    def _plain(self, head: bytes, rdatas: Iterable[Rdata]) -> list[bytes]:
        """Return the records of the question's name whose data has no names that point: nearly all there are."""
        records = [head + len(data).to_bytes(2) + data for data in rdatas if isinstance(data, bytes)]
        self._position += sum([len(record) for record in records])
        return records

    def additional(self, rrsets: Iterable[RRset]) -> list[bytes]:
        """Return the additional section, whose names may point into itself."""
        self._learn = True
        return self.section(rrsets)

    def _with_names(self, rdata: tuple[bytes | Labels, ...], position: int) -> bytes:
        data = b""
        for part in rdata:
            data += part if isinstance(part, bytes) else self._name(part, position + len(data))
        return data


def pack(query: Query, answer: Answer) -> Packed:
    """Pack an answer behind the question it belongs to."""
    packer = _Packer(query, learn=not answer.keep)
    flags = answer.rcode | (numbers.AA if answer.authoritative else 0)
    sections = (
        packer.section(answer.answer),
        packer.section(answer.authority),
        packer.additional(answer.additional),
    )
    return Packed(flags, _outcome(answer), sections, rotates=answer.keep)
