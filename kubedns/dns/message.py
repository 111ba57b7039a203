"""Messages that pass through: read no further than forwarding needs, rebuilt where it must be.

In: the wire form of queries and replies, replies from anywhere and of any shape.  Out: offsets,
a verdict, and messages for a client.  Nothing is decompressed and nothing follows a pointer, so
the cost is linear in the message's length.  Source: RFC 1035 4.1, RFC 2181 9, RFC 6891 6.1.
"""

import enum
import struct
from typing import NamedTuple

from kubedns.dns import numbers
from kubedns.dns.labels import MalformedMessage, name_end, read_labels

_FIXED = struct.Struct("!HHIH")
_COUNTS = struct.Struct("!HHHH")
_EMPTY_OPT_OCTETS = 11
_WITHOUT_QUESTION = {numbers.FORMERR, numbers.SERVFAIL, numbers.NOTIMP, numbers.REFUSED}
"""Servers send these without repeating the question."""


class Record(NamedTuple):
    """Where a resource record lies in its message, and its fixed fields; `ttl` in seconds."""

    start: int
    rtype: int
    rclass: int
    ttl: int
    rdata: int
    end: int


class Sections(NamedTuple):
    """The records of a message by section, in order; the OPT record is one of `additional`."""

    answer: list[Record]
    authority: list[Record]
    additional: list[Record]


class Verdict(enum.Enum):
    """What a reply is worth to the one who asked."""

    ANSWER = enum.auto()
    """The reply to pass on, NXDOMAIN and every RCODE not named below included."""

    TRUNCATED = enum.auto()
    """TC is set: the answer is to be had over TCP."""

    UNWELCOME = enum.auto()
    """SERVFAIL, REFUSED, a lame referral or a reply without question: another server may know better."""

    MALFORMED = enum.auto()
    """The sections are not what the header counts; never passed on."""


def question_end(query: bytes) -> int | None:
    """Return the offset after the question of a query, None unless it has exactly one, well formed."""
    if len(query) < numbers.HEADER_SIZE or query[4:6] != b"\0\1":
        return None
    try:
        _, end = read_labels(query, numbers.HEADER_SIZE)
    except MalformedMessage:
        return None
    return end + 5 if query[end] == 0 and end + 5 <= len(query) else None


def sections(message: bytes, start: int) -> Sections:
    """Return the records that follow the question section, which ends at `start`.

    Octets after the last record are ignored.  Raises MalformedMessage.
    """
    found: list[list[Record]] = []
    offset = start
    _, *counts = _COUNTS.unpack_from(message, 4)
    try:
        for count in counts:
            section: list[Record] = []
            for _ in range(count):
                begin, offset = offset, name_end(message, offset)
                rtype, rclass, ttl, length = _FIXED.unpack_from(message, offset)
                rdata = offset + _FIXED.size
                offset = rdata + length
                section.append(Record(begin, rtype, rclass, ttl, rdata, offset))
            found.append(section)
    except (IndexError, struct.error) as error:
        raise MalformedMessage(f"ends within the record at octet {offset}") from error
    if offset > len(message):
        raise MalformedMessage("ends within its last record")
    return Sections(*found)


def is_well_formed(message: bytes, start: int) -> bool:
    """Whether all records that the header counts are there, behind the question."""
    try:
        sections(message, start)
    except MalformedMessage:
        return False
    return True


def flags(message: bytes) -> int:
    """Return octets 2 and 3 of the header: QR, OPCODE, AA, TC, RD, RA, AD, CD and RCODE."""
    return int.from_bytes(message[2:4])


def rcode(message: bytes) -> int:
    """Return the RCODE of the header, 0 to 15."""
    return message[3] & 0x0F


def is_truncated(message: bytes) -> bool:
    """Whether TC is set."""
    return message[2] & 0x02 != 0


def has_question(reply: bytes) -> bool:
    """Whether a reply repeats the question; some errors come without."""
    return reply[4:6] != b"\0\0"


def verdict(reply: bytes, start: int) -> Verdict:
    """Judge a reply to our question, which ends at `start` where the reply repeats it."""
    if not has_question(reply):
        return Verdict.UNWELCOME
    if is_truncated(reply):
        return Verdict.TRUNCATED  # however it was cut
    try:
        found = sections(reply, start)
    except MalformedMessage:
        return Verdict.MALFORMED
    if rcode(reply) in (numbers.SERVFAIL, numbers.REFUSED) or _is_lame(reply, found):
        return Verdict.UNWELCOME
    return Verdict.ANSWER


def _is_lame(reply: bytes, found: Sections) -> bool:
    """Whether a server that neither owns the name nor recurses points elsewhere (RFC 1912 2.8)."""
    return (
        not flags(reply) & (numbers.AA | numbers.RA)
        and rcode(reply) == numbers.NOERROR
        and not found.answer
        and any(record.rtype == numbers.NS for record in found.authority)
        and not any(record.rtype == numbers.SOA for record in found.authority)
    )


def cut(reply: bytes, end: int, limit: int) -> bytes:
    """Return a reply that fits `limit` octets; `end` is where its question ends.

    The additional section goes first, all but OPT, and without TC; then whole records from the
    end, with TC (RFC 2181 9).  A message that cannot be read keeps its header and question.
    """
    if len(reply) <= limit:
        return reply
    try:
        found = sections(reply, end)
    except MalformedMessage:
        return bare(reply, end)
    opts = (r for r in found.additional if r.rtype == numbers.OPT and not reply[r.start])
    opt = next((reply[record.start : record.end] for record in opts), b"")
    if opt and end + len(opt) > limit:
        opt = opt[: _EMPTY_OPT_OCTETS - 2] + b"\0\0"  # without its options
    room = limit - len(opt)
    answer = [record for record in found.answer if record.end <= room]
    authority = [record for record in found.authority if record.end <= room]
    last = max((record.end for record in (*answer[-1:], *authority[-1:])), default=end)
    whole = len(answer) == len(found.answer) and len(authority) == len(found.authority)
    head = flags(reply) | (0 if whole else numbers.TC)
    counts = _COUNTS.pack(1, len(answer), len(authority), 1 if opt else 0)
    return reply[:2] + head.to_bytes(2) + counts + reply[numbers.HEADER_SIZE : last] + opt


def bare(reply: bytes, end: int) -> bytes:
    """Return header and question of a reply, with TC set."""
    head = (flags(reply) | numbers.TC).to_bytes(2)
    return reply[:2] + head + _COUNTS.pack(1, 0, 0, 0) + reply[numbers.HEADER_SIZE : end]


def is_reply_to(reply_wire: bytes, query_wire: bytes) -> bool:
    """Whether a message answers a query: ID, QR, OPCODE and question, its name without case.

    `query_wire` has one question, which begins right after the header and is not compressed.
    A FORMERR, SERVFAIL, NOTIMP or REFUSED may come without a question (RFC 1035 leaves it open).
    """
    if len(reply_wire) < numbers.HEADER_SIZE or reply_wire[:2] != query_wire[:2]:
        return False
    if not reply_wire[2] & 0x80 or (reply_wire[2] ^ query_wire[2]) & 0x78:
        return False
    if reply_wire[4:6] == b"\0\0":
        return reply_wire[3] & 0x0F in _WITHOUT_QUESTION
    end = name_end(query_wire, numbers.HEADER_SIZE)
    return (
        reply_wire[4:6] == b"\0\1"
        and reply_wire[numbers.HEADER_SIZE : end].lower() == query_wire[numbers.HEADER_SIZE : end].lower()
        and reply_wire[end : end + 4] == query_wire[end : end + 4]
    )
