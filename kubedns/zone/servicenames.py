"""A Service and its slices -> the sub-tree of its names.

ClusterIP: the cluster IPs, each also at its record label; for each named port `_port._proto` an SRV
record for each.  Headless: one name for each ready endpoint, its hostname or its record label, with
every address of that name; the ports are the slices'.  Nothing is made before it is asked for.
Source: DNS-Based Service Discovery 1.1.0, sections 2.3 and 2.4, and the original's newPortalService
and generateRecordsForHeadlessService for the shape of the tree.
"""

from collections.abc import Iterable, Sequence

from kubedns.backend import Alias, Found
from kubedns.dns.names import Labels, pack_address, parse_domain
from kubedns.dns.packed import Packed
from kubedns.objects import Endpoint, Service
from kubedns.zone.endpoints import Endpoints, Slices
from kubedns.zone.recordlabel import address_hash, hash_of_label
from kubedns.zone.records import Addresses, Ports

WILDCARD = b"*"


class ServiceNames:
    """The names of a Service, by their labels before the Service's: see `backend.Subtree`."""

    __slots__ = ("_service", "_suffix", "packed")

    def __init__(self, service: Service, suffix: Labels) -> None:
        self._service = service
        self._suffix = suffix
        self.packed: dict[bytes, Packed] | None = None

    @property
    def name(self) -> Labels:
        """The name of the Service."""
        return (self._service.name.encode(), self._service.namespace.encode(), *self._suffix)

    def own(self) -> Addresses | Alias:
        """Return the records of the Service's own name."""
        raise NotImplementedError

    def at(self, label: bytes) -> Sequence[Endpoint]:
        """Return the endpoints, or cluster IPs, with one label."""
        raise NotImplementedError

    def ports(self) -> Iterable[tuple[bytes, bytes]]:
        """Return protocol and name of the ports, as labels."""
        return ()

    def port(self, protocol: bytes, name: bytes) -> Ports | None:
        """Return the records of a named port."""
        return None

    def find(self, below: Labels) -> Found | tuple[()] | None:
        """Return what is at a name."""
        if not below:
            return self.own()
        if len(below) == 1:
            if below[0][:1] == b"_" and any(protocol == below[0] for protocol, _ in self.ports()):
                return ()
            known = self.at(below[0])
            return Addresses(self.name, known, self.at) if known else None
        port = self.port(below[-1], below[-2]) if len(below) <= 3 else None
        return port if len(below) == 2 or port is None else port.entry(below[0])

    def match(self, below: Labels) -> Found | tuple[()] | None:
        """Return what is at a name that may have wildcards.

        Every node below a Service begins with `_`, which `*` does not stand for but as the first
        label: there it means the entries of the node after it.
        """
        if WILDCARD in below[1:]:
            return None
        if not below or below[0] != WILDCARD:
            return self.find(below)
        return self.own() if len(below) == 1 else self.port(below[-1], below[1]) if len(below) == 3 else None

    def forget(self) -> None:
        """Give up what was made for questions."""
        self.packed = None


class PortalNames(ServiceNames):
    """The names of a Service with cluster IPs."""

    __slots__ = ()

    def own(self) -> Addresses:
        """Return the cluster IPs."""
        return Addresses(self.name, [Endpoint((ip,)) for ip in self._service.cluster_ips], self.at)

    def at(self, label: bytes) -> Sequence[Endpoint]:
        """Return the cluster IPs with one label."""
        spelt = hash_of_label(label)
        if spelt is None:
            return ()
        return [Endpoint((ip,)) for ip in self._service.cluster_ips if address_hash(ip) == spelt]

    def ports(self) -> Iterable[tuple[bytes, bytes]]:
        """Return protocol and name of the ports, as labels."""
        return [(b"_" + it.protocol.encode(), b"_" + it.name.encode()) for it in self._service.ports]

    def port(self, protocol: bytes, name: bytes) -> Ports | None:
        """Return the records of a named port: one for each cluster IP, equal as they are."""
        for it in self._service.ports:
            if (b"_" + it.protocol.encode(), b"_" + it.name.encode()) == (protocol, name):
                own = self.own()
                return Ports(own, [(it.number, own.endpoints)], portal=True)
        return None


class HeadlessNames(ServiceNames):
    """The names of a headless Service with a ready endpoint."""

    __slots__ = ("_endpoints", "_slices")

    def __init__(self, service: Service, slices: Slices, suffix: Labels) -> None:
        super().__init__(service, suffix)
        self._slices = slices
        self._endpoints: Endpoints | None = None

    def _known(self) -> Endpoints:
        if self._endpoints is None:
            self._endpoints = Endpoints(self.name, self._slices)
        return self._endpoints

    def own(self) -> Addresses:
        """Return every endpoint."""
        return self._known().all()

    def at(self, label: bytes) -> Sequence[Endpoint]:
        """Return the endpoints with one label."""
        return self._known().at(label)

    def ports(self) -> Iterable[tuple[bytes, bytes]]:
        """Return protocol and name of the ports, as labels."""
        return self._known().ports()

    def port(self, protocol: bytes, name: bytes) -> Ports | None:
        """Return the records of a named port."""
        return self._known().port(protocol, name)

    def forget(self) -> None:
        """Give up what was made for questions."""
        super().forget()
        self._endpoints = None


class ExternalNames(ServiceNames):
    """The name of an ExternalName Service: an alias, or an address where it is one.  Nothing is below it.

    Raises ValueError for a text that is neither.
    """

    __slots__ = ("_record",)

    def __init__(self, service: Service, suffix: Labels) -> None:
        super().__init__(service, suffix)
        self._record: bytes | Labels
        try:
            self._record = pack_address(service.external_name)
        except ValueError:
            self._record = parse_domain(service.external_name, underscores=True)

    def own(self) -> Addresses | Alias:
        """Return the alias, or the address as a record of the namespace with the Service's label."""
        if not isinstance(self._record, bytes):
            return Alias(self._record)
        return Addresses(self.name[1:], [Endpoint((self._record,), self._service.name)], self._itself)

    def _itself(self, _label: bytes) -> Sequence[Endpoint]:
        assert isinstance(self._record, bytes)
        return [Endpoint((self._record,), self._service.name)]

    def find(self, below: Labels) -> Found | tuple[()] | None:
        """Return what is at a name."""
        return None if below else self.own()

    def match(self, below: Labels) -> Found | tuple[()] | None:
        """Return what is at a name."""
        return self.find(below)


def names_of(service: Service, slices: Slices, suffix: Labels) -> ServiceNames | None:
    """Return the names of a Service, None where it has none; `suffix` are the labels after its namespace's.

    Raises ValueError for an externalName that is neither a name nor an address.
    """
    if service.external_name:
        return ExternalNames(service, suffix)
    if service.cluster_ips:
        return PortalNames(service, suffix)
    if service.headless and any(slice_.endpoints for slice_ in slices):
        return HeadlessNames(service, slices, suffix)
    return None
