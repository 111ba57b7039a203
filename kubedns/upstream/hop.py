"""A question and its reply on our side of the hop, and on the client's.

In: a parsed query; the reply of an upstream.  Out: the question that goes out, without its ID; the reply
for the client.  EDNS is hop by hop (RFC 6891 6.1.1): of a client's OPT record only DO goes on, in a record
of ours, and no option passes in either direction.  RD, AD and CD are the client's, as is the spelling of
the name, both ways.
"""

from typing import Final

from kubedns.dns import numbers
from kubedns.dns.error_reply import opt
from kubedns.dns.message import Sections, bare, cut, rcode
from kubedns.dns.query import Query

_KEPT_FLAGS: Final = numbers.RD | 0x30
"""RD, AD (RFC 6840 5.7) and CD (RFC 4035 3.2.2)."""
_KNOWS_NO_EDNS: Final = frozenset((numbers.FORMERR, numbers.NOTIMP))


def outgoing(query: Query, *, edns: bool = True) -> bytes:
    """Return the message for an upstream with an ID of 0; without `edns` it bears no OPT record."""
    option = opt(query.edns) if edns and query.edns is not None else b""
    flags = (query.flags & _KEPT_FLAGS).to_bytes(2)
    return b"\0\0" + flags + b"\0\1\0\0\0\0\0" + bytes((1 if option else 0,)) + query.question + option


def refuses_edns(reply: bytes, found: Sections | None) -> bool:
    """Whether a reply to a question with an OPT record says that the server wants none (RFC 6891 7)."""
    if rcode(reply) in _KNOWS_NO_EDNS:
        return True
    return found is not None and any(
        record.rtype == numbers.OPT and record.ttl >> 24 for record in found.additional
    )


def for_client(query: Query, reply: bytes, found: Sections | None, *, tcp: bool) -> bytes:
    """Return the reply under the client's ID and spelling, with our OPT record if it sent one, cut to size.

    `found` are the records of the reply, None where they can't be read.
    """
    end = numbers.HEADER_SIZE + len(query.question)
    if found is None:
        return bare(query.message_id + reply[2:12] + query.question, end)
    last, additionals = _before_options(found, end)
    option = b"" if query.edns is None else opt(query.edns)
    count = (additionals + (1 if option else 0)).to_bytes(2)
    message = b"".join((query.message_id, reply[2:10], count, query.question, reply[end:last], option))
    limit = query.limit(tcp)
    return message if len(message) <= limit else cut(message, end, limit)


def _before_options(found: Sections, end: int) -> tuple[int, int]:
    """Return where the records up to the OPT record end, and how many of them are additional.

    OPT is the last but for signatures of the hop (RFC 8945), which go with it.
    """
    last = (found.authority or found.answer or (None,))[-1]
    for number, record in enumerate(found.additional):
        if record.rtype == numbers.OPT:
            return record.start, number
        last = record
    return (end if last is None else last.end), len(found.additional)
