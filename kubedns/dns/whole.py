"""Whole messages, as dnslib sees them, for programs that show or judge what a server says.

In: a question, a server's address; or octets.  Out: a dnslib record with all four sections.
The one module that loads dnslib: nothing that the record server or the nanny needs imports it.
"""

import struct

import dnslib
from dnslib.bimap import BimapError
from dnslib.buffer import BufferError as DNSBufferError
from dnslib.label import DNSBuffer

from kubedns.dns import client
from kubedns.dns.labels import MalformedMessage, NameReader

_UNREADABLE = (dnslib.DNSError, DNSBufferError, BimapError, ValueError, LookupError, struct.error)


async def exchange(query: dnslib.DNSRecord, server: client.Server, timeout: float) -> dnslib.DNSRecord:  # noqa: ASYNC109 - handed on
    """Ask, as `client.exchange`; a malformed reply raises DNSExchangeError too.

    `query` has one question and is left as it is.
    """
    reply = await client.exchange(bytes(query.pack()), server, timeout)
    try:
        return parse_message(reply)
    except MalformedMessage as error:
        raise client.DNSExchangeError(server, f"malformed reply: {error}") from error


class _BoundedBuffer(DNSBuffer):  # type: ignore[misc]  # dnslib has no annotations
    """A dnslib buffer whose names are read by our own walker, which bounds them."""

    offset: int

    def __init__(self, message: bytes) -> None:
        super().__init__(message)
        self._names = NameReader(message)

    def decode_name(self, last: int = -1) -> dnslib.DNSLabel:
        """Return the name at the offset and move past it; raises MalformedMessage."""
        labels, self.offset = self._names.read(self.offset)
        return dnslib.DNSLabel(labels)


def parse_message(wire: bytes) -> dnslib.DNSRecord:
    """Return the message that `wire` holds, all four sections; octets after it are ignored.

    Raises MalformedMessage.
    """
    buffer = _BoundedBuffer(wire)
    try:
        header = dnslib.DNSHeader.parse(buffer)
        questions = [dnslib.DNSQuestion.parse(buffer) for _ in range(header.q)]
        answer = [dnslib.RR.parse(buffer) for _ in range(header.a)]
        authority = [dnslib.RR.parse(buffer) for _ in range(header.auth)]
        additional = [dnslib.RR.parse(buffer) for _ in range(header.ar)]
    except _UNREADABLE as error:
        raise MalformedMessage(str(error)) from error
    return dnslib.DNSRecord(header, questions, answer, auth=authority, ar=additional)
