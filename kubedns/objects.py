"""What the API room hands to the zone room: Kubernetes objects cut down to what DNS needs.

Every field costs memory once per object of the cluster, so a new one must make a record.  What
comes with every change is a NamedTuple: made, compared and hashed without running Python code.
Addresses are packed (4 or 16 bytes, network order), names are as the API has them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeVar

Key = tuple[str, str]
"""Namespace and name of an object."""


class Port(NamedTuple):
    """A named port: `protocol` in lower case (`tcp`, `udp`, `sctp`); unnamed ports make no record."""

    name: str
    protocol: str
    number: int


class Service(NamedTuple):
    """A Service.

    Exactly one holds: `cluster_ips` (at least one address), `headless`, or `external_name`
    (as written by the user); none of them where the API server has not decided yet.
    `ports` are the named ports only.
    """

    namespace: str
    name: str
    cluster_ips: tuple[bytes, ...] = ()
    headless: bool = False
    external_name: str = ""
    ports: tuple[Port, ...] = ()


class Endpoint(NamedTuple):
    """One ready endpoint of a slice: its addresses, and its hostname or the empty string."""

    addresses: tuple[bytes, ...]
    hostname: str = ""


class EndpointSlice(NamedTuple):
    """An EndpointSlice: the Service that its label names (`""`: none), ready endpoints, named ports.

    No endpoint comes twice.  A slice of address type FQDN has no endpoints here.
    """

    namespace: str
    name: str
    service: str
    endpoints: tuple[Endpoint, ...] = ()
    ports: tuple[Port, ...] = ()


@dataclass(frozen=True, slots=True)
class Topology:
    """The zone and region that the labels of a node name."""

    zone: str
    region: str


T_contra = TypeVar("T_contra", contravariant=True)


class Sink(Protocol[T_contra]):
    """Where a reflector delivers: the owner of the records made from one kind of object."""

    def apply(self, changes: Mapping[Key, T_contra | None]) -> None:
        """Take over the new state of some objects at once; None means that one is gone.

        Runs to completion: when it returns, answers follow the new state.
        """
