"""Numbers of the DNS message format (RFC 1035 4.1, RFC 6891, IANA DNS parameters)."""

from typing import Final

HEADER_SIZE: Final = 12
LONGEST_LABEL: Final = 63
LONGEST_NAME: Final = 255
"""Octets of the longest name on the wire, its root label included (RFC 1035 2.3.4)."""
LONGEST_WRITTEN_NAME: Final = LONGEST_NAME - 2
"""Characters of the longest name as text, without its final dot."""
POINTER: Final = 0xC0
"""A length octet from here on is the first of a compression pointer (RFC 1035 4.1.4)."""

A: Final = 1
NS: Final = 2
CNAME: Final = 5
SOA: Final = 6
PTR: Final = 12
TXT: Final = 16
AAAA: Final = 28
SRV: Final = 33
OPT: Final = 41
IXFR: Final = 251
AXFR: Final = 252
ANY: Final = 255

ADDRESS_OCTETS: Final = {A: 4, AAAA: 16}
"""Octets of an address, by record type (RFC 1035 3.4.1, RFC 3596 2.2)."""

IN: Final = 1
CH: Final = 3

NOERROR: Final = 0
FORMERR: Final = 1
SERVFAIL: Final = 2
NXDOMAIN: Final = 3
NOTIMP: Final = 4
REFUSED: Final = 5
BADVERS: Final = 16
RCODE_NAMES: Final = {
    NOERROR: "NOERROR",
    FORMERR: "FORMERR",
    SERVFAIL: "SERVFAIL",
    NXDOMAIN: "NXDOMAIN",
    NOTIMP: "NOTIMP",
    REFUSED: "REFUSED",
}

QR: Final = 0x8000
AA: Final = 0x0400
TC: Final = 0x0200
RD: Final = 0x0100
RA: Final = 0x0080
OPCODE: Final = 0x7800

SMALLEST_PAYLOAD: Final = 512
"""What a UDP client without EDNS takes, and the least that a payload size counts as (RFC 6891 6.2.3)."""
LARGEST_UDP_PAYLOAD: Final = 1232
"""Our own limit over UDP, which passes IPv6's smallest MTU unfragmented (DNS flag day 2020)."""
LARGEST_MESSAGE: Final = 65535
EDNS_DO: Final = 0x8000
