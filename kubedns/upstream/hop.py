"""A question and its reply on our side of the hop, and on the client's.

In: a parsed query; the reply of an upstream.  Out: the question that goes out, without its ID; the reply
for the client.  EDNS is hop by hop (RFC 6891 6.1.1): of a client's OPT record only DO goes on, in a record
of ours, and no option passes in either direction.  RD, AD and CD are the client's, as is the spelling of
the name, both ways.
"""

from typing import Final

from kubedns.dns import numbers
from kubedns.dns.error_reply import opt
from kubedns.dns.labels import MalformedMessage
from kubedns.dns.message import Record, bare, cut, rcode, reply_for, sections
from kubedns.dns.query import Query

_KEPT_FLAGS: Final = numbers.RD | 0x30
"""RD, AD (RFC 6840 5.7) and CD (RFC 4035 3.2.2)."""
_KNOWS_NO_EDNS: Final = frozenset((numbers.FORMERR, numbers.NOTIMP))


def outgoing(query: Query, *, edns: bool = True) -> bytes:
    """Return the message for an upstream with an ID of 0; without `edns` it bears no OPT record."""
    option = opt(query.edns) if edns and query.edns is not None else b""
    flags = (query.flags & _KEPT_FLAGS).to_bytes(2)
    return b"\0\0" + flags + b"\0\1\0\0\0\0\0" + bytes((1 if option else 0,)) + query.question + option


def refuses_edns(reply: bytes, end: int) -> bool:
    """Whether a reply to a question with an OPT record says that the server wants none (RFC 6891 7)."""
    if rcode(reply) in _KNOWS_NO_EDNS:
        return True
    try:
        return any(record.ttl >> 24 for record in _options(reply, end))
    except MalformedMessage:
        return False


def for_client(query: Query, reply: bytes, tcp: bool) -> bytes:
    """Return the reply under the client's ID and spelling, with our OPT record if it sent one, cut to size."""
    end = numbers.HEADER_SIZE + len(query.question)
    message = _without_options(reply_for(query.message_id + bytes(10) + query.question, end, reply), end)
    if query.edns is not None:
        count = int.from_bytes(message[10:12]) + 1
        message = message[:10] + count.to_bytes(2) + message[12:] + opt(query.edns)
    return cut(message, end, query.limit(tcp))


def _options(message: bytes, end: int) -> list[Record]:
    return [record for record in sections(message, end).additional if record.rtype == numbers.OPT]


def _without_options(message: bytes, end: int) -> bytes:
    """Return a message up to its OPT record, which is the last but for signatures of the hop (RFC 8945)."""
    try:
        found = sections(message, end)
    except MalformedMessage:
        return bare(message, end)
    for before, record in enumerate(found.additional):
        if record.rtype == numbers.OPT:
            return message[:10] + before.to_bytes(2) + message[12 : record.start]
    last = (*found.answer, *found.authority, *found.additional)
    return message[: last[-1].end] if last else message[:end]
