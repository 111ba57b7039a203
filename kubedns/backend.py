"""What the zone room hands to the answering room: records, and the seam SkyDNS defined.

The backend knows names and records; it knows nothing of messages, sockets or time.  A name
that does not exist is `None`, a name that exists without records is an empty tuple: the
difference between NXDOMAIN and NODATA (RFC 2308).
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple, Protocol

from kubedns.dns.names import Labels

MOST_RECORDS: Final = 512
"""Records that one wildcard lookup collects at most, so that no question holds up the others."""


class BackendError(Exception):
    """The backend cannot tell now; the text says why.  The client gets SERVFAIL."""


class TooWideError(Exception):
    """A wildcard stands for more names than one question may look at.  The client gets REFUSED."""


class ServiceRecord(NamedTuple):
    """One record, as SkyDNS's `Service` with the fields that cluster DNS uses.

    `host` is a packed address (4 or 16 bytes), or the labels of another name: an SRV target
    where there is a `port`, else the target of a CNAME.  `owner` is the record's own name, which
    an SRV question gets as target; None for an address that is computed from its name or
    belongs to the zone's name server: no SRV leads there.
    """

    host: bytes | Labels
    port: int
    owner: Labels | None


class Subtree(Protocol):
    """The names of one Service, replaced as a whole when anything of it changes."""

    packed: dict[bytes, Any] | None
    """What a reader made of these names: it lives exactly as long as what it was made from."""

    @property
    def is_alias(self) -> bool:
        """Whether it is the name of an ExternalName alone."""

    def has(self, path: Labels) -> bool:
        """Whether the name with this path below the Service exists."""

    def addresses(self, label: bytes, octets: int) -> tuple[bytes, ...] | None:
        """Return the distinct addresses, of 4 or 16 octets, of the Service or of one label below it.

        An empty label is the Service itself.  None where something else than addresses is.
        """

    def targets(self, path: Labels) -> list[tuple[Labels, int]] | None:
        """Return target and port of each SRV record at a path below the Service, None where there is none."""


class Backend(Protocol):
    """What the answering room reads."""

    domain: Labels

    @property
    def subtrees(self) -> Mapping[bytes, Subtree]:
        """The sub-tree of each Service that has a name, by the wire form of its labels: service, namespace."""

    def has_federations(self) -> bool:
        """Whether names with a federation's label exist besides those of the sub-trees."""

    def has_synced(self) -> bool:
        """Whether every object has been seen once, so that a missing name really is missing."""

    def records(self, name: Labels, exact: bool) -> tuple[ServiceRecord, ...] | None:
        """Return the records at a name of the domain, None when the name does not exist.

        Unless `exact`, a label `*` is a wildcard; at most MOST_RECORDS come back.
        Raises BackendError, and TooWideError for a wildcard.
        """

    def reverse_record(self, name: Labels) -> tuple[Labels, ...] | None:
        """Return the names that a reverse name stands for, in one stable order; None: not ours."""
