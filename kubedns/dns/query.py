"""Query bytes -> question, every length checked.

A message that cannot be a question at all is None and gets no answer; one that must be refused
whatever it asks is a `Rejected`.  Source: RFC 1035 4.1, RFC 6891 6.1, RFC 9619 (QDCOUNT).
"""

from struct import error as struct_error
from struct import unpack_from
from typing import NamedTuple

from kubedns.dns import numbers
from kubedns.dns.names import LONGEST_NAME, Labels

_LONGEST_LABEL = 63
_POINTER = 0xC0


class Edns(NamedTuple):
    """What an OPT record says: the payload size of the sender, and whether DO is set."""

    payload: int
    do: bool


class Query(NamedTuple):
    """One question.

    `question` is the question section as it came; `labels` its name in lower case.
    """

    message_id: bytes
    flags: int
    question: bytes
    labels: Labels
    qtype: int
    qclass: int
    edns: Edns | None

    @property
    def name_wire(self) -> bytes:
        """The name as it was asked, in wire form."""
        return self.question[:-4]

    def is_lower_case(self) -> bool:
        """Whether the name was asked in lower case, so that parts of it can stand for other names."""
        return self.name_wire.lower() == self.name_wire

    def limit(self, tcp: bool) -> int:
        """Return how many octets the asker takes in one message."""
        if tcp:
            return numbers.LARGEST_MESSAGE
        if self.edns is None:
            return numbers.SMALLEST_PAYLOAD
        return min(max(self.edns.payload, numbers.SMALLEST_PAYLOAD), numbers.LARGEST_UDP_PAYLOAD)


class Rejected(NamedTuple):
    """A message that is answered with nothing but an rcode (and its question, where there is one)."""

    message_id: bytes
    flags: int
    rcode: int
    question: bytes = b""
    edns: Edns | None = None


class _MalformedError(Exception):
    """A length or a pointer leads outside the message."""


def parse_query(message: bytes) -> Query | Rejected | None:
    """Take a query apart; None for what gets no answer: less than a header, or a response."""
    if len(message) < numbers.HEADER_SIZE or message[2] & 0x80:
        return None
    message_id = message[:2]
    flags, questions, answers, authorities, additionals = unpack_from("!5H", message, 2)
    if flags & numbers.OPCODE:
        return Rejected(message_id, flags, numbers.NOTIMP)
    if questions != 1:
        return Rejected(message_id, flags, numbers.FORMERR)
    question = b""
    try:
        labels, end = _question_name(message)
        qtype, qclass = unpack_from("!HH", message, end)
        question = message[numbers.HEADER_SIZE : end + 4]
        edns, version = _edns(message, end + 4, answers + authorities, additionals)
    except (_MalformedError, IndexError, struct_error):
        return Rejected(message_id, flags, numbers.FORMERR, question)
    if version:
        return Rejected(message_id, flags, numbers.BADVERS, question, edns)
    return Query(message_id, flags, question, labels, qtype, qclass, edns)


def _question_name(message: bytes) -> tuple[Labels, int]:
    """Return the labels of the question, lower-cased, and the offset after them; no pointers here."""
    labels, position = [], numbers.HEADER_SIZE
    while length := message[position]:
        if length > _LONGEST_LABEL or position + length + 1 >= len(message):
            raise _MalformedError
        labels.append(message[position + 1 : position + 1 + length].lower())
        position += length + 1
        if position - numbers.HEADER_SIZE >= LONGEST_NAME:
            raise _MalformedError
    if position + 5 > len(message):
        raise _MalformedError
    return tuple(labels), position + 1


def _edns(message: bytes, position: int, skipped: int, additionals: int) -> tuple[Edns | None, int]:
    """Return the OPT record of the additional section, and its version.

    Raises _MalformedError for a record that does not fit, a second OPT, or one that is not the root's.
    """
    edns, version = None, 0
    for number in range(skipped + additionals):
        start = position
        position = _skip_name(message, position)
        if position + 10 > len(message):
            raise _MalformedError
        rtype, payload, _, opt_version, flags, length = unpack_from("!HHBBHH", message, position)
        position += 10 + length
        if position > len(message):
            raise _MalformedError
        if rtype == numbers.OPT and number >= skipped:
            if edns is not None or message[start]:
                raise _MalformedError
            edns, version = Edns(payload, bool(flags & numbers.EDNS_DO)), opt_version
            if not whole_options(message[position - length : position]):
                raise _MalformedError
    return edns, version


def whole_options(rdata: bytes) -> bool:
    """Whether the data of an OPT record is a list of options that fit; what they are does not matter."""
    position = 0
    while position + 4 <= len(rdata):
        position += 4 + int.from_bytes(rdata[position + 2 : position + 4])
    return position == len(rdata)


def _skip_name(message: bytes, position: int) -> int:
    """Return the offset after a name that may end in a pointer."""
    while length := message[position]:
        if length >= _POINTER:
            return position + 2
        if length > _LONGEST_LABEL:
            raise _MalformedError
        position += length + 1
    return position + 1
