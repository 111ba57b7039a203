"""Everything the server is authoritative for, kept in step with the cluster's objects.

In: new states of Services and EndpointSlices, each batch applied whole and without a pause.
Out: a `backend.Backend`.  Invariant: tree and reverse map are what a fresh start on the same
objects would make, whatever the order in which they came.
"""

import logging
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from kubedns.backend import Alias, BackendError, Found
from kubedns.dns.names import Labels, address_of_reverse, pod_address
from kubedns.objects import Endpoint, EndpointSlice, Key, Service, Sink, Topology
from kubedns.zone.dump import dump
from kubedns.zone.endpoints import Slices
from kubedns.zone.federation import Federations
from kubedns.zone.records import Unnamed
from kubedns.zone.reversemap import Named, ReverseMap, names_of_endpoints, names_of_service
from kubedns.zone.servicenames import ExternalNames, ServiceNames, names_of
from kubedns.zone.treecache import TreeCache

_log = logging.getLogger(__name__)
_FORGOTTEN_AT_ONCE: Final = 16
DNS_SERVICE: Final = ("kube-system", "kube-dns")
"""The Service whose cluster IPs are the addresses of the zone's name server."""


class ClusterZone:
    """Sole owner of the tree, the reverse map and the objects behind them.

    `domain` is the cluster domain; `ttl` is what `/cache` shows.
    """

    def __init__(self, domain: Labels, ttl: int = 30) -> None:
        self.domain = domain
        self._ttl = ttl
        self._suffix: Labels = (b"svc", *domain)
        self._tree = TreeCache()
        self._services: dict[Key, Service] = {}
        self._slices: dict[Key, EndpointSlice] = {}
        self._slices_of: dict[Key, tuple[Key, ...]] = {}
        self._reverse = ReverseMap(domain)
        self._aliases = 0
        self._federations = Federations()
        self._has_federations = False
        self._synced = False
        self.services: Sink[Service] = _Services(self)
        self.slices: Sink[EndpointSlice] = _Slices(self)

    # What the cluster says.

    def mark_synced(self) -> None:
        """Take the state as complete from now on."""
        self._synced = True

    def configure_federations(self, domains: Mapping[str, str], topology: Topology | None) -> None:
        """Replace the federations, by name, and the place that their names elsewhere carry."""
        self._federations = Federations(domains, topology)
        self._has_federations = bool(self._federations)
        for node in self.subtrees.values():
            node.packed = None

    def apply_services(self, changes: Mapping[Key, Service | None]) -> None:
        """Take over new states of Services; None: gone."""
        for key, service in changes.items():
            old = self._services.pop(key, None)
            if service is not None:
                self._services[key] = service
            if old is None or service is None or not _has_same_addresses(old, service):
                if old is not None:
                    self._reverse.remove(self._names_of(old))
                if service is not None:
                    self._reverse.add(self._names_of(service))
            self._publish(key)

    def apply_slices(self, changes: Mapping[Key, EndpointSlice | None]) -> None:
        """Take over new states of EndpointSlices; None: gone.

        The work is that of what changed in the slices, however large their Services are.
        """
        touched: dict[Key, None] = {}
        for key, slice_ in changes.items():
            old = self._slices.pop(key, None)
            if slice_ is not None:
                self._slices[key] = slice_
            if old is not None and slice_ is not None and old.service == slice_.service:
                self._exchange(_owner(slice_), old.endpoints, slice_.endpoints)
            else:
                if old is not None:
                    self._unlink(key, old)
                if slice_ is not None:
                    self._link(key, slice_)
            touched.update((_owner(it), None) for it in (old, slice_) if it is not None and it.service)
        for owner in touched:
            self._publish(owner)

    def _link(self, key: Key, slice_: EndpointSlice) -> None:
        """Join a slice to its Service."""
        if slice_.service:
            owner = _owner(slice_)
            self._slices_of[owner] = tuple(sorted((*self._slices_of.get(owner, ()), key)))
            self._exchange(owner, (), slice_.endpoints)

    def _unlink(self, key: Key, slice_: EndpointSlice) -> None:
        """Part a slice from its Service."""
        if slice_.service:
            owner = _owner(slice_)
            left = tuple(other for other in self._slices_of[owner] if other != key)
            if left:
                self._slices_of[owner] = left
            else:
                del self._slices_of[owner]
            self._exchange(owner, slice_.endpoints, ())

    def _exchange(self, owner: Key, old: tuple[Endpoint, ...], new: tuple[Endpoint, ...]) -> None:
        """Put the names of a slice's endpoints in the place of those it had, if its Service is headless.

        Endpoints that are equal count once, here as in `_names_of`: what one adds the other removes.
        """
        service = self._services.get(owner)
        if service is not None and service.headless:
            before, after = set(old), set(new)
            self._reverse.remove(names_of_endpoints(owner, before - after))
            self._reverse.add(names_of_endpoints(owner, after - before))

    def _slices_for(self, service: Service) -> Slices:
        if not service.headless:
            return ()
        return tuple(self._slices[key] for key in self._slices_of.get((service.namespace, service.name), ()))

    def _names_of(self, service: Service) -> Iterator[tuple[bytes, Named]]:
        yield from names_of_service(service)
        for slice_ in self._slices_for(service):
            yield from names_of_endpoints(_owner(slice_), set(slice_.endpoints))

    def _publish(self, key: Key) -> None:
        """Swap in the names of a Service as they are now."""
        service = self._services.get(key)
        names: ServiceNames | None = None
        if service is not None:
            try:
                names = names_of(service, self._slices_for(service), self._suffix)
            except ValueError as error:
                _log.warning("Service %s/%s makes no record: externalName: %s", *key, error)
        self._aliases += isinstance(names, ExternalNames) - isinstance(
            self._tree.named(key[0].encode(), key[1].encode()), ExternalNames
        )
        self._tree.set(key, names)

    def forget(self) -> Iterator[None]:
        """Give up, in steps, what was made of the Services when they were asked for: it is made again then."""
        for number, names in enumerate(list(self._tree.subtrees.values())):
            if number % _FORGOTTEN_AT_ONCE == 0:
                yield
            names.forget()

    # What the answering room reads.

    def has_synced(self) -> bool:
        """Whether every object has been seen once."""
        return self._synced

    @property
    def subtrees(self) -> Mapping[bytes, ServiceNames]:
        """The names of each Service that has any; see `backend.Backend`."""
        return self._tree.subtrees

    def records(self, name: Labels) -> tuple[Found, ...] | None:
        """Return the records at a name of the domain; see `backend.Backend`."""
        below = name[: len(name) - len(self.domain)]
        if not below:
            return ()
        top = below[-1]
        if top == b"pod":
            return self._pod_records(below)
        if top == b"dns":
            return self._name_server_records(below)
        if top == b"dns-version":
            return () if len(below) == 1 else None
        found = self._tree.get(below)
        if found is None:
            covered = self._federations and self._federations.covers(below)
            return self._federated(below) if covered else None
        return (found,) if found else ()

    def matches(self, name: Labels, look: Callable[[int], None]) -> tuple[Found, ...] | None:
        """Return the records at a name with wildcards; see `backend.Backend`."""
        below = name[: len(name) - len(self.domain)]
        if below[-1] in (b"pod", b"dns", b"dns-version"):
            return self.records(name)
        return tuple(self._tree.match(below, look)) or None

    def has_federations(self) -> bool:
        """Whether a federation is configured."""
        return self._has_federations

    def reverse_record(self, name: Labels) -> tuple[Labels, ...] | None:
        """Return the names of an address; see `backend.Backend`."""
        address = address_of_reverse(name)
        return (self._reverse.names(address) or None) if address is not None else None

    def _pod_records(self, below: Labels) -> tuple[Found, ...] | None:
        if len(below) < 3:
            return ()
        address = pod_address(below[0]) if len(below) == 3 else None
        return None if address is None else (Unnamed((address,)),)

    def _name_server_records(self, below: Labels) -> tuple[Found, ...] | None:
        if below == (b"dns",):
            return ()
        if below != (b"ns", b"dns"):
            return None
        service = self._services.get(DNS_SERVICE)
        return () if service is None or not service.cluster_ips else (Unnamed(service.cluster_ips),)

    def _federated(self, below: Labels) -> tuple[Found, ...]:
        local = (below[0], below[1], *self._suffix)
        names = self._tree.named(below[1], below[0])
        if names is not None and not isinstance(names, ExternalNames):
            return (Alias(local),)
        remote = self._federations.remote(below)
        if remote is None:
            raise BackendError("no node names its zone and region, which a federation's name needs")
        return (Alias(remote),)

    # What people look at.

    def counts(self) -> dict[str, int]:
        """Return how many objects are held, by kind as the metrics name them."""
        return {"service": len(self._services), "endpointslice": len(self._slices)}

    def count_records(self) -> int:
        """Return how many reverse records and aliases are held."""
        return self._reverse.records + self._aliases

    def dump(self) -> Iterator[str]:
        """Yield the tree as JSON, in pieces."""
        return dump(self._tree, self.domain, self._ttl)


def _owner(slice_: EndpointSlice) -> Key:
    """Return the Service that a slice says it belongs to."""
    return slice_.namespace, slice_.service


def _has_same_addresses(one: Service, other: Service) -> bool:
    """Whether two states of a Service give the same names to the same addresses."""
    return one.headless == other.headless and one.cluster_ips == other.cluster_ips


class _Services:
    def __init__(self, zone: ClusterZone) -> None:
        self.apply = zone.apply_services


class _Slices:
    def __init__(self, zone: ClusterZone) -> None:
        self.apply = zone.apply_slices
