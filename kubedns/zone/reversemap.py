"""Address -> the names that its reverse record gives.  Pure.

In: names coming and going one by one, a name as often as slices have it.  Out: the names to answer
with.  Source: DNS-Based Service Discovery 1.1.0, 2.3.3 and 2.4.3.  Differs: a name with a hostname
keeps those without one out, so that a StatefulSet's pod has the one name that people gave it.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from kubedns.dns.names import Labels
from kubedns.objects import Endpoint, Key, Service
from kubedns.zone.recordlabel import record_label


class Named(NamedTuple):
    """A name of an address: that of a Service (`hostname` None), or of a headless one's endpoint.

    An endpoint without a hostname has the empty one, and is named by its record label.
    """

    service: Key
    hostname: str | None


class ReverseMap:
    """The names of every address."""

    def __init__(self, domain: Labels) -> None:
        self._domain = domain
        self._names: dict[bytes, tuple[Named, ...]] = {}
        self.records = 0

    def add(self, names: Iterable[tuple[bytes, Named]]) -> None:
        """Add names of addresses, each as often as it comes."""
        for address, name in names:
            self._names[address] = (*self._names.get(address, ()), name)
            self.records += 1

    def remove(self, names: Iterable[tuple[bytes, Named]]) -> None:
        """Remove names that were added, each once."""
        for address, name in names:
            known = self._names.get(address, ())
            if name not in known:
                continue
            self.records -= 1
            index = known.index(name)
            left = known[:index] + known[index + 1 :]
            if left:
                self._names[address] = left
            else:
                del self._names[address]

    def names(self, address: bytes) -> tuple[Labels, ...]:
        """Return the names to answer with, in one stable order, none for an unknown address."""
        known = set(self._names.get(address, ()))
        found = (
            {name for name in known if name.hostname is None}
            or {name for name in known if name.hostname}
            or known
        )
        return tuple(sorted((self._labels(name, address) for name in found), key=lambda labels: labels[::-1]))

    def _labels(self, name: Named, address: bytes) -> Labels:
        namespace, service = name.service
        at = (service.encode(), namespace.encode(), b"svc", *self._domain)
        if name.hostname is None:
            return at
        return (name.hostname.encode() or record_label(address), *at)


def names_of_service(service: Service) -> Iterator[tuple[bytes, Named]]:
    """Yield the names that a Service gives to its cluster IPs."""
    name = Named((service.namespace, service.name), None)
    for address in service.cluster_ips:
        yield address, name


def names_of_endpoints(service: Key, endpoints: Iterable[Endpoint]) -> Iterator[tuple[bytes, Named]]:
    """Yield the names that endpoints of a headless Service give to their addresses."""
    for endpoint in endpoints:
        name = Named(service, endpoint.hostname)
        for address in endpoint.addresses:
            yield address, name
