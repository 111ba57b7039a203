"""Answer -> message bytes: packed once, fitted to what the asker takes.

A `Packed` answer does not depend on the asker: names point into the question, whose length is
that of the name, so the same octets serve every question for it, whatever its case.  Where the
answer is kept for later, its records point nowhere else, so that they can be rotated.
Source: RFC 1035 4.1, RFC 2181 9 (truncation), RFC 6891 (EDNS).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import Final

from kubedns.dns import numbers
from kubedns.dns.error_reply import opt
from kubedns.dns.names import Labels, to_wire
from kubedns.dns.query import Query
from kubedns.skydns.rrset import Rdata, RRset
from kubedns.telemetry.counters import Outcome

_LARGEST_POINTER = 0x3FFF
_POINTER_OCTETS = 2
_MOST_RECORDS: Final = 0xFFFF
"""What the count of a section can say; no message holds as many."""
NAME_OF_QUESTION: Final = (0xC000 | numbers.HEADER_SIZE).to_bytes(2)
"""A pointer to the question's name."""
WITH_OPT = 2
Heads = tuple[bytes, bytes, bytes, bytes]
"""Flags and counts of a header: for RD clear and RD set, then (from WITH_OPT on) the same with an OPT record."""


@dataclass(slots=True)
class Answer:
    """What a question gets.  `keep`: made from nothing but the names of the asked Service."""

    rcode: int = numbers.NOERROR
    authoritative: bool = True
    answer: list[RRset] = field(default_factory=list)
    authority: list[RRset] = field(default_factory=list)
    additional: list[RRset] = field(default_factory=list)
    keep: bool = False


@lru_cache(maxsize=4096)
def heads(flags: int, answers: int, authorities: int, additionals: int) -> Heads:
    """Return octets 2 to 11 of a response with one question."""

    def head(rd: int, options: int) -> bytes:
        counts = (1, answers, authorities, additionals + options)
        return (numbers.QR | numbers.RA | flags | rd).to_bytes(2) + b"".join(
            count.to_bytes(2) for count in counts
        )

    return head(0, 0), head(numbers.RD, 0), head(0, 1), head(numbers.RD, 1)


class Packed:
    """The sections of a response after its question.

    `answer` holds the answer section, `starts` where each of its records begins (None for fewer
    than two), `turns` whether they may change places; `rest` is authority and additional section
    together.  `case_bound`: the octets are right only for a question in lower case.
    """

    __slots__ = (
        "additional_at",
        "answer",
        "case_bound",
        "counts",
        "flags",
        "heads",
        "outcome",
        "rest",
        "starts",
        "turn",
        "turns",
    )

    def __init__(
        self,
        flags: int,
        sections: tuple[Sequence[bytes], Sequence[bytes], Sequence[bytes]],
        *,
        turns: bool,
    ) -> None:
        answer, authority, additional = sections
        answer = answer[:_MOST_RECORDS]
        self.flags = flags
        self.outcome = _outcome(flags & 0xF, bool(answer))
        self.answer = b"".join(answer)
        self.starts = _starts(answer)
        self.case_bound = bool(additional)
        self.turn = 0
        self.turns = turns
        before = b"".join(authority)
        self.additional_at = len(before)
        self.rest = before + b"".join(additional)
        self.counts = (len(answer), len(authority), len(additional))
        self.heads = heads(flags, *self.counts)

    def turned(self) -> bytes:
        """Return the answer section, beginning one record later than the last time."""
        starts = self.starts
        if starts is None or not self.turns:
            return self.answer
        self.turn = turn = (self.turn + 1) % len(starts)
        start = starts[turn]
        return self.answer[start:] + self.answer[:start]

    def message(self, query: Query, limit: int) -> tuple[bytes, bool]:
        """Return the response to one query, at most `limit` octets, and whether it was truncated."""
        option = opt(query.edns) if query.edns is not None else b""
        rd = 1 if query.flags & numbers.RD else 0
        return self.fitted(self.turned(), query.message_id, rd, query.question, option, limit)

    def fitted(
        self, answer: bytes, message_id: bytes, rd: int, question: bytes, option: bytes, limit: int
    ) -> tuple[bytes, bool]:
        """Put a response together from an answer section as `turned`: at most `limit` octets.

        Additional records go first, silently; if that is not enough, authority and then whole
        records of the answer, with TC set (RFC 2181 9).  The second value is whether it is set.
        """
        answers, authorities, additionals = self.counts
        flags, rest = self.flags, self.rest
        room = limit - numbers.HEADER_SIZE - len(question) - len(option)
        if len(answer) + len(rest) > room:
            additionals, rest = 0, rest[: self.additional_at]
        if len(answer) + len(rest) > room:
            flags, authorities, rest = flags | numbers.TC, 0, b""
            answers, size = self._whole_records(room)
            answer = answer[:size]
        head = heads(flags, answers, authorities, additionals)[rd + (WITH_OPT if option else 0)]
        return b"".join((message_id, head, question, answer, rest, option)), flags & numbers.TC != 0

    def _whole_records(self, room: int) -> tuple[int, int]:
        """Return how many records from the turned answer's first on fit, and their octets."""
        starts = self.starts
        if isinstance(starts, range):
            count = min(room // starts.step, len(starts))
            return count, count * starts.step
        count = size = 0
        for length in _lengths(starts or (0,), len(self.answer), self.turn):
            if size + length > room:
                break
            count, size = count + 1, size + length
        return count, size


def _outcome(rcode: int, answered: bool) -> int:
    """Return how an answer counts in the metrics."""
    if rcode == numbers.NOERROR:
        return Outcome.ANSWERED if answered else Outcome.NODATA
    return {numbers.NXDOMAIN: Outcome.NXDOMAIN, numbers.REFUSED: Outcome.REFUSED}.get(rcode, Outcome.SERVFAIL)


def _lengths(starts: Sequence[int], end: int, turn: int) -> list[int]:
    """Return the lengths of the records of an answer section, beginning with number `turn`."""
    lengths = [after - start for start, after in pairwise((*starts, end))]
    return lengths[turn:] + lengths[:turn]


def _starts(records: Sequence[bytes]) -> Sequence[int] | None:
    if len(records) < 2:
        return None
    size = len(records[0])
    if all(len(record) == size for record in records):
        return range(0, size * len(records), size)
    return (0, *accumulate(len(record) for record in records[:-1]))


class _Packer:
    """Packs records behind a question; names are written once and pointed at afterwards.

    A name equal to the question's is the question's, case and all (RFC 4343); other names keep
    their own case, so they point into the question only where that is in lower case.
    Records are of the question's class.  With `learn` false only the names of the question are
    pointed at.
    """

    def __init__(self, query: Query, *, learn: bool) -> None:
        self._query = query
        self._learn = learn
        self._position = numbers.HEADER_SIZE + len(query.question)
        self._class_wire = query.question[-2:]
        self._offsets: dict[Labels, int] | None = None

    def _known(self) -> dict[Labels, int]:
        """Return where names begin that can be pointed at, by their labels."""
        if self._offsets is None:
            self._offsets = {}
            if self._query.is_lower_case():
                self._remember(self._query.labels, numbers.HEADER_SIZE, len(self._query.labels))
        return self._offsets

    def _remember(self, labels: Labels, position: int, written: int) -> None:
        """Take note of where a name and its endings begin, of which the first `written` labels are there."""
        known = self._known()
        for index in range(written):
            if position > _LARGEST_POINTER:
                return
            known.setdefault(labels[index:], position)
            position += len(labels[index]) + 1

    def _name(self, labels: Labels, position: int) -> bytes:
        if labels == self._query.labels:
            return NAME_OF_QUESTION
        written, ending, known = len(labels), b"\0", self._known()
        for index in range(len(labels)):
            offset = known.get(labels[index:])
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
        records = []
        for rrset in rrsets:
            fixed = rrset.rtype.to_bytes(2) + self._class_wire + rrset.ttl.to_bytes(4)
            owner = b""
            for rdata in rrset.rdatas:
                if len(owner) != _POINTER_OCTETS:
                    owner = self._name(rrset.owner, self._position)
                data = rdata[0]
                if len(rdata) > 1 or not isinstance(data, bytes):
                    data = self._with_names(rdata, self._position + len(owner) + 10)
                record = b"".join((owner, fixed, len(data).to_bytes(2), data))
                records.append(record)
                self._position += len(record)
        return records

    def _with_names(self, rdata: Rdata, position: int) -> bytes:
        data = b""
        for part in rdata:
            data += part if isinstance(part, bytes) else self._name(part, position + len(data))
        return data


def pack(query: Query, answer: Answer) -> Packed:
    """Pack an answer behind the question it belongs to."""
    packer = _Packer(query, learn=not answer.keep)
    flags = answer.rcode | (numbers.AA if answer.authoritative else 0)
    return Packed(
        flags,
        (packer.section(answer.answer), packer.section(answer.authority), packer.section(answer.additional)),
        turns=answer.keep,
    )
