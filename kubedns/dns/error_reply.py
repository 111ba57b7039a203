"""The response to a message that gets nothing but an rcode, and the OPT record of any response.

Source: RFC 1035 4.1.1, RFC 6891 6.1.3.
"""

from kubedns.dns import numbers
from kubedns.dns.query import Edns, Rejected


def opt(edns: Edns, rcode: int = 0) -> bytes:
    """Return the OPT record of a response (RFC 6891 6.1.3): our own payload size, DO copied."""
    do = numbers.EDNS_DO if edns.do else 0
    return (
        b"\0\0\x29"
        + numbers.LARGEST_UDP_PAYLOAD.to_bytes(2)
        + bytes((rcode >> 4, 0))
        + do.to_bytes(2)
        + b"\0\0"
    )


def rejection(rejected: Rejected) -> bytes:
    """Return the response to a message that gets nothing but an rcode."""
    kept = rejected.flags & (numbers.OPCODE | numbers.RD)
    flags = numbers.QR | numbers.RA | kept | (rejected.rcode & 0xF)
    option = opt(rejected.edns, rejected.rcode) if rejected.edns is not None else b""
    counts = (1 if rejected.question else 0, 0, 0, 1 if option else 0)
    header = rejected.message_id + flags.to_bytes(2) + b"".join(count.to_bytes(2) for count in counts)
    return header + rejected.question + option
