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
SVCB: Final = 64
HTTPS: Final = 65
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

_TYPES: Final = {
    A: "A", NS: "NS", CNAME: "CNAME", SOA: "SOA", PTR: "PTR", 13: "HINFO", 15: "MX", TXT: "TXT",
    AAAA: "AAAA", 29: "LOC", SRV: "SRV", 35: "NAPTR", 39: "DNAME", OPT: "OPT", 43: "DS", 44: "SSHFP",
    46: "RRSIG", 47: "NSEC", 48: "DNSKEY", 50: "NSEC3", 52: "TLSA", SVCB: "SVCB", HTTPS: "HTTPS",
    IXFR: "IXFR", AXFR: "AXFR", ANY: "ANY", 257: "CAA",
}  # fmt: skip
_RCODES: Final = {
    NOERROR: "NOERROR", FORMERR: "FORMERR", SERVFAIL: "SERVFAIL", NXDOMAIN: "NXDOMAIN", NOTIMP: "NOTIMP",
    REFUSED: "REFUSED", 6: "YXDOMAIN", 7: "YXRRSET", 8: "NXRRSET", 9: "NOTAUTH", 10: "NOTZONE",
    BADVERS: "BADVERS",
}  # fmt: skip


def type_name(qtype: int) -> str:
    """Return the name of a record type, `TYPE64` for one without (RFC 3597 5)."""
    return _TYPES.get(qtype, f"TYPE{qtype}")


def rcode_name(rcode: int) -> str:
    """Return the name of a response code."""
    return _RCODES.get(rcode, f"RCODE{rcode}")
