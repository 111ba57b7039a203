"""What the upstream room hands to the answering room: records that other name servers gave."""

from dataclasses import dataclass
from typing import Final

from kubedns import wire
from kubedns.names import Labels


@dataclass(frozen=True, slots=True)
class UpstreamRecord:
    """A record of class IN: `owner` with the case it came in, `ttl` in seconds, `rdata` uncompressed."""

    owner: Labels
    rtype: int
    ttl: int
    rdata: bytes


@dataclass(frozen=True, slots=True)
class Resolution:
    """The answer for a name and type: `rcode`, the answer section in order, and the SOA of a negative.

    SERVFAIL, without records, also where no upstream answered.
    """

    rcode: int
    records: tuple[UpstreamRecord, ...] = ()
    soa: UpstreamRecord | None = None


UNRESOLVED: Final = Resolution(wire.SERVFAIL)
