"""Resource records before they are packed."""

from collections.abc import Sequence
from struct import pack
from typing import Final, NamedTuple

from kubedns.dns import numbers
from kubedns.dns.names import Labels

_SRV_PRIORITY: Final = 10

Rdata = bytes | tuple[bytes | Labels, ...]
"""One record's data, or its parts in order: bytes as they are, and names that may be compressed."""


class RRset(NamedTuple):
    """The records of one owner and type, at least one; `ttl` in seconds.  Class IN."""

    owner: Labels
    rtype: int
    ttl: int
    rdatas: Sequence[Rdata]


def name_rrset(owner: Labels, rtype: int, ttl: int, targets: tuple[Labels, ...]) -> RRset:
    """Return CNAME, NS or PTR records, whose data is a name that may be compressed (RFC 3597 4)."""
    return RRset(owner, rtype, ttl, tuple((target,) for target in targets))


def srv_rdata(weight: int, port: int, target_wire: bytes) -> bytes:
    """Return the data of an SRV record; its target is never compressed (RFC 2782)."""
    return pack("!HHH", _SRV_PRIORITY, weight, port) + target_wire


def txt_rrset(owner: Labels, ttl: int, text: bytes) -> RRset:
    """Return a TXT record of one character-string, cut to 255 octets."""
    return RRset(owner, numbers.TXT, ttl, (bytes((min(len(text), 255),)) + text[:255],))


def soa_rrset(owner: Labels, zone: Labels, ttl: int, serial: int, minimum: int) -> RRset:
    """Return the SOA of `zone` with the original's timers; `owner` may be a reverse name of ours."""
    timers = b"".join(number.to_bytes(4) for number in (serial & 0xFFFFFFFF, 28800, 7200, 604800, minimum))
    rdata: Rdata = ((b"ns", b"dns", *zone), (b"hostmaster", *zone), timers)
    return RRset(owner, numbers.SOA, ttl, (rdata,))
