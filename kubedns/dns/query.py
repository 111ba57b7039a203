"""Query bytes -> question, every length checked.

A message that cannot be a question at all is None and gets no answer; one that must be refused
whatever it asks is a `Rejected`.  Source: RFC 1035 4.1, RFC 6891 6.1, RFC 9619 (QDCOUNT).
"""

from struct import error as struct_error
from struct import unpack_from
from typing import NamedTuple

from kubedns.dns import numbers
from kubedns.dns.labels import MalformedMessage, name_end, read_labels
from kubedns.dns.names import Labels


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
    except (MalformedMessage, struct_error):
        return Rejected(message_id, flags, numbers.FORMERR, question)
    if version:
        return Rejected(message_id, flags, numbers.BADVERS, question, edns)
    return Query(message_id, flags, question, labels, qtype, qclass, edns)


def _question_name(message: bytes) -> tuple[Labels, int]:
    """Return the labels of the question, lower-cased, and the offset after them; no pointers here."""
    labels, end = read_labels(message.lower(), numbers.HEADER_SIZE)
    if message[end]:
        raise MalformedMessage("compression pointer in the question")
    return tuple(labels), end + 1


def _edns(message: bytes, position: int, skipped: int, additionals: int) -> tuple[Edns | None, int]:
    """Return the OPT record of the additional section, and its version.

    Raises MalformedMessage for a record that does not fit, a second OPT, or one that is not the root's.
    """
    edns, version = None, 0
    for number in range(skipped + additionals):
        start = position
        position = name_end(message, position)
        rtype, payload, _, opt_version, flags, length = unpack_from("!HHBBHH", message, position)
        position += 10 + length
        if position > len(message):
            raise MalformedMessage("ends within a record")
        if rtype == numbers.OPT and number >= skipped:
            if edns is not None or message[start]:
                raise MalformedMessage("more than one OPT record, or one that is not the root's")
            edns, version = Edns(payload, bool(flags & numbers.EDNS_DO)), opt_version
            if not whole_options(message[position - length : position]):
                raise MalformedMessage("ends within an option")
    return edns, version


def whole_options(rdata: bytes) -> bool:
    """Whether the data of an OPT record is a list of options that fit; what they are does not matter."""
    position = 0
    while position + 4 <= len(rdata):
        position += 4 + int.from_bytes(rdata[position + 2 : position + 4])
    return position == len(rdata)
