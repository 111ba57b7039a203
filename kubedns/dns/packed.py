"""The sections of a response after its question, packed once for every asker.

A packed answer does not depend on the asker: names point into the question, whose length is that of
the name, so the same octets serve every question for it, whatever its case.
Source: RFC 1035 4.1, RFC 2181 9 (truncation).
"""

from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate
from random import getrandbits
from typing import Final

from kubedns.dns import numbers
from kubedns.dns.error_reply import opt
from kubedns.dns.query import Query

_MOST_RECORDS: Final = 0xFFFF
"""What the count of a section can say; no message holds as many."""
WITH_OPT: Final = 2
Heads = tuple[bytes, bytes, bytes, bytes]
"""Flags and counts of a header: for RD clear and RD set, then (from WITH_OPT on) the same with an OPT record."""


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
    """The sections of a response after its question; `outcome` is how it counts in the metrics.

    `answer` holds the answer section, `starts` where each of its records begins where they may be
    rotated, else None; `rest` is authority and additional section together, `octets` all of them.
    """

    __slots__ = (
        "_begins",
        "additional_at",
        "answer",
        "counts",
        "flags",
        "heads",
        "octets",
        "outcome",
        "rest",
        "starts",
    )

    def __init__(
        self,
        flags: int,
        outcome: int,
        sections: tuple[Sequence[bytes], Sequence[bytes], Sequence[bytes]],
        *,
        rotates: bool,
    ) -> None:
        answer, authority, additional = sections
        answer = answer[:_MOST_RECORDS]
        self.flags = flags
        self.outcome = outcome
        self.answer = b"".join(answer)
        self._begins = _begins(answer)
        self.starts = self._begins if rotates and len(answer) > 1 else None
        before = b"".join(authority)
        self.additional_at = len(before)
        self.rest = before + b"".join(additional)
        self.octets = len(self.answer) + len(self.rest)
        self.counts = (len(answer), len(authority), len(additional))
        self.heads = heads(flags, *self.counts)

    def rotated(self) -> bytes:
        """Return the answer section, beginning at a random record.

        Random for each answer, so that a client that asks k times for each use meets every record.
        """
        starts = self.starts
        if starts is None:
            return self.answer
        start = starts[getrandbits(24) % len(starts)]
        return self.answer[start:] + self.answer[:start]

    def message(self, query: Query, limit: int) -> tuple[bytes, bool]:
        """Return the response to one query, at most `limit` octets, and whether it was truncated."""
        option = opt(query.edns) if query.edns is not None else b""
        rd = 1 if query.flags & numbers.RD else 0
        return self.fitted(query.message_id, rd, query.question, option, limit)

    def fitted(
        self, message_id: bytes, rd: int, question: bytes, option: bytes, limit: int
    ) -> tuple[bytes, bool]:
        """Put a response of at most `limit` octets together.

        Additional records go first, silently; if that is not enough, authority and then whole
        records of the answer, with TC set (RFC 2181 9).  The second value is whether it is set.
        """
        answers, authorities, additionals = self.counts
        flags, rest, octets = self.flags, self.rest, len(self.answer)
        room = limit - numbers.HEADER_SIZE - len(question) - len(option)
        if octets + len(rest) > room:
            additionals, rest = 0, rest[: self.additional_at]
        if octets + len(rest) > room:
            flags, authorities, rest = flags | numbers.TC, 0, b""
            answers, answer = self._some(room)
        else:
            answer = self.rotated()
        head = heads(flags, answers, authorities, additionals)[rd + (WITH_OPT if option else 0)]
        return b"".join((message_id, head, question, answer, rest, option)), flags & numbers.TC != 0

    def _some(self, room: int) -> tuple[int, bytes]:
        """Return how many records fit, from a random one on where they rotate, and their octets."""
        begins, end = self._begins, len(self.answer)
        if not begins:
            return 0, b""
        first = getrandbits(24) % len(begins) if self.starts is not None else 0
        begin = begins[first]
        left = begin + room - end
        if left < 0:
            stop = bisect_right(begins, begin + room) - 1
            return stop - first, self.answer[begin : begins[stop]]
        again = min(bisect_right(begins, left) - 1, first)
        return len(begins) - first + again, self.answer[begin:] + self.answer[: begins[again]]


def _begins(records: Sequence[bytes]) -> Sequence[int]:
    """Return where each record begins: a range where all are of one length."""
    size = len(records[0]) if records else 1
    if set(map(len, records)) <= {size}:
        return range(0, size * len(records), size)
    return (0, *accumulate([len(record) for record in records[:-1]]))
