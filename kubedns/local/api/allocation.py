"""Cluster IPs and node ports: what is taken, by whom, and the next free one.

In: values that users chose, and requests for any.  Out: values.  The invariant: a value has
one owner; an owner's values are replaced as a whole.  Choices are made in ascending order, so
that the same manifests get the same addresses every time.

Differs: a real server picks at random and refuses cluster IPs outside its range; here the
addresses of any cluster's manifests are taken as they are.
"""

from collections.abc import Collection
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final

IPV4: Final = "IPv4"
IPV6: Final = "IPv6"


class PoolFullError(Exception):
    """Nothing is left to allocate; the text names the pool."""


class Pool:
    """Numbers from `first` to `last`; free ones are picked from `start` on, then from `first`."""

    def __init__(self, name: str, first: int, last: int, start: int) -> None:
        self._name = name
        self._first = first
        self._last = last
        self._next = start
        self._owners: dict[int, str] = {}
        self._held: dict[str, tuple[int, ...]] = {}

    def __contains__(self, value: int) -> bool:
        """Whether a value lies in the range."""
        return self._first <= value <= self._last

    def held_by_other(self, value: int, owner: str) -> bool:
        """Whether somebody else has a value."""
        return self._owners.get(value, owner) != owner

    def pick(self, beside: Collection[int] = ()) -> int:
        """Return a free value that is not in `beside`; raises PoolFullError."""
        for _ in range(self._last - self._first + 1):
            value = self._next
            self._next = self._first if value == self._last else value + 1
            if value not in self._owners and value not in beside:
                return value
        raise PoolFullError(f"failed to allocate: the range of {self._name} is full")

    def assign(self, owner: str, values: Collection[int]) -> None:
        """Make `values`, and nothing else, the owner's."""
        for value in self._held.pop(owner, ()):
            del self._owners[value]
        if values:
            self._held[owner] = tuple(set(values))
            self._owners.update(dict.fromkeys(values, owner))


def _ipv4_pool() -> Pool:
    first = int(IPv4Address("10.96.0.0"))
    return Pool("IPv4 cluster IPs", first + 1, first + 2**20 - 2, first + 257)


def _ipv6_pool() -> Pool:
    first = int(IPv6Address("fd00:10:96::"))
    return Pool("IPv6 cluster IPs", first + 1, first + 2**16 - 1, first + 257)


@dataclass(slots=True)
class Allocations:
    """What Services hold.

    The lowest 256 addresses of each range are left to users, as a real server does.
    """

    ips: dict[str, Pool] = field(default_factory=lambda: {IPV4: _ipv4_pool(), IPV6: _ipv6_pool()})
    node_ports: Pool = field(default_factory=lambda: Pool("node ports", 30000, 32767, 30086))

    def pick_ip(self, family: str) -> str:
        """Return a free address of a family; raises PoolFullError."""
        return str(ip_address(self.ips[family].pick()))

    def ip_taken(self, address: str, owner: str) -> bool:
        """Whether a Service other than `owner` has an address."""
        return self.ips[family_of(address)].held_by_other(int(ip_address(address)), owner)

    def assign(self, owner: str, addresses: Collection[str], ports: Collection[int]) -> None:
        """Record what a Service has now; nothing when it is gone."""
        for family, pool in self.ips.items():
            pool.assign(owner, [int(ip_address(one)) for one in addresses if family_of(one) == family])
        self.node_ports.assign(owner, ports)


def family_of(address: str) -> str:
    """Return the family of an address; raises ValueError when it is none."""
    return IPV4 if ip_address(address).version == 4 else IPV6
