"""Aliases on the way from the asked name to the last one (RFC 1034 3.6.2)."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from kubedns.dns import numbers
from kubedns.dns.labels import read_labels
from kubedns.dns.names import Labels
from kubedns.dns.records import UpstreamRecord
from kubedns.skydns.rrset import RRset

MOST_STEPS: Final = 8
"""Aliases of our own: more of them are a fault, or a loop in the making."""
MOST_LINKS: Final = 32
"""All aliases: clouds have chains of eight and more behind one name."""


@dataclass(slots=True)
class Chain:
    """An alias followed so far: the CNAME records, the name that it leads to now, the names seen.

    `steps` counts the links that are our own.
    """

    qtype: int
    target: Labels
    limit: int = numbers.LARGEST_MESSAGE
    links: list[RRset] = field(default_factory=list)
    seen: set[Labels] = field(default_factory=set)
    steps: int = 0

    def broken(self) -> bool:
        """Whether it turns back on itself or is too long."""
        return self.target in self.seen or self.steps > MOST_STEPS or len(self.links) > MOST_LINKS


@dataclass(frozen=True, slots=True)
class Alias:
    """A CNAME record of an upstream; `owner` and `target` have the case that they came in."""

    record: UpstreamRecord
    owner: Labels
    target: Labels


def alias_of(name: Labels, records: Iterable[UpstreamRecord]) -> Alias | None:
    """Return the CNAME record of a lower-case name among an upstream's records."""
    for record in records:
        if record.rtype == numbers.CNAME and lower(record.owner) == name:
            return Alias(record, record.owner, tuple(read_labels(record.rdata, 0)[0]))
    return None


def lower(labels: Labels) -> Labels:
    """Return a name in lower case."""
    return tuple(label.lower() for label in labels)
