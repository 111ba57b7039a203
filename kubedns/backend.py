"""What the zone room hands to the answering room: records, and the seam SkyDNS defined.

The backend knows names and records; it knows nothing of messages, sockets or time.  A name
that does not exist is `None`, a name that exists without records is an empty tuple: the
difference between NXDOMAIN and NODATA (RFC 2308).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

from kubedns.dns.names import Labels
from kubedns.dns.packed import Packed


class BackendError(Exception):
    """The backend cannot tell now; the text says why.  The client gets SERVFAIL."""


class TooWideError(Exception):
    """A wildcard stands for more names than one question may look at.  The client gets REFUSED."""


class Alias(NamedTuple):
    """The CNAME record of a name."""

    target: Labels


class Records(Protocol):
    """The addresses of a name, or the ports found there.

    However many there are, a reader takes as many as it needs: the work is that of what it takes.
    Targets of SRV records are `parent`, which the empty label stands for, or one label below it.
    An address without a port is itself a target, with port 0, unless it is computed from its name
    or belongs to the zone's name server: `count` is 0 then.
    """

    @property
    def parent(self) -> Labels:
        """The name that the targets are at or right below."""

    @property
    def count(self) -> int:
        """How many SRV records there are before equal ones merge."""

    @property
    def distinct(self) -> int:
        """How many distinct targets there are."""

    def addresses(self, octets: int) -> Sequence[bytes]:
        """Return the distinct addresses of 4 or 16 octets; those of the targets where there are ports."""

    def targets(self, start: int, most: int) -> list[tuple[bytes, int]]:
        """Return the labels and ports of at most so many distinct targets from one on."""

    def glue(self, label: bytes, octets: int) -> Sequence[bytes]:
        """Return the distinct addresses of one target."""


Found = Alias | Records


class Subtree(Protocol):
    """The names of one Service, replaced as a whole when anything of it changes."""

    packed: dict[bytes, Packed] | None
    """Answers made from these names, by the question's octets before and after the Service's name.

    Only the answering room puts any in; they live exactly as long as what they were made from.
    """

    def find(self, below: Labels) -> Found | tuple[()] | None:
        """Return what is at a name, by its labels before the Service's: records, none, or None."""


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

    def records(self, name: Labels) -> tuple[Found, ...] | None:
        """Return the records at a name of the domain, one at most, None when the name does not exist.

        Raises BackendError.
        """

    def matches(self, name: Labels, look: Callable[[int], None]) -> tuple[Found, ...] | None:
        """Return the records at a name whose labels `*` are wildcards, None where there are none.

        `look` is called with how many names there are to look at, and at each with 0; what it raises goes
        through.
        """

    def reverse_record(self, name: Labels) -> tuple[Labels, ...] | None:
        """Return the names that a reverse name stands for, in one stable order; None: not ours."""
