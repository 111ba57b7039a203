"""What the zone room hands to the answering room: records, and the seam SkyDNS defined.

The backend knows names and records; it knows nothing of messages, sockets or time.
"""

from dataclasses import dataclass

from kubedns.names import Labels


@dataclass(frozen=True, slots=True)
class ServiceRecord:
    """One record of the tree, as SkyDNS's `Service` with the fields that cluster DNS uses.

    `host` is an address (packed, 4 or 16 bytes) or the labels of another name: an SRV target
    when `port` is not zero, else the target of a CNAME.  `owner` is the record's own name: the
    target that an SRV query gets for an address record.
    """

    host: bytes | Labels
    port: int
    weight: int
    owner: Labels
    priority: int = 10
    ttl: int = 30
