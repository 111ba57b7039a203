"""Octets from a socket -> a parsed DNS message, at a bounded cost.

Invariant: `parse_message` raises MalformedMessage and nothing else, whatever the octets are.
The parsing is dnslib's; names are read here, because dnslib follows compression pointers by
recursion and puts no limit to a name's length, so that 64 KiB can keep it busy for minutes.
Source: RFC 1035 3.1 (255 octets at most) and 4.1.4 (a pointer leads to a prior name).
"""

import struct

import dnslib
from dnslib.bimap import BimapError
from dnslib.buffer import BufferError as DNSBufferError
from dnslib.label import DNSBuffer

_LONGEST_NAME = 255
_POINTER = 0xC0
_UNREADABLE = (dnslib.DNSError, DNSBufferError, BimapError, ValueError, LookupError, struct.error)


class MalformedMessage(Exception):  # noqa: N818 - the name of what it is, a FORMERR
    """The octets are no DNS message; the text says where they cease to be one."""


class _BoundedBuffer(DNSBuffer):  # type: ignore[misc]  # dnslib has no annotations
    """A dnslib buffer whose names cost at most 255 octets, pointers included."""

    offset: int

    def decode_name(self, last: int = -1) -> dnslib.DNSLabel:
        """Return the name at the offset and move past it; raises dnslib's BufferError."""
        labels: list[bytes] = []
        octets, lowest, resume = 1, self.offset, -1
        while length := self.get(1)[0]:
            if length & _POINTER == _POINTER:
                target = (length & ~_POINTER) << 8 | self.get(1)[0]
                resume = self.offset if resume < 0 else resume
                if target >= lowest:
                    raise DNSBufferError(f"compression pointer to octet {target} does not lead back")
                self.offset = lowest = target
                continue
            if length & _POINTER:
                raise DNSBufferError(f"label of unknown kind at octet {self.offset - 1}")
            octets += 1 + length
            if octets > _LONGEST_NAME:
                raise DNSBufferError(f"name longer than {_LONGEST_NAME} octets at octet {self.offset}")
            labels.append(self.get(length))
        self.offset = self.offset if resume < 0 else resume
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
