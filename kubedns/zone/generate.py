"""A Service and its slices -> the sub-tree of its names.  Pure.

ClusterIP: one entry for each cluster IP, named by its record label; for each named port a node
`_port` below `_proto` with an SRV entry of the same name for each.  Headless: one name for each
ready endpoint, its hostname or its record label, holding every address of that name; the ports
are the slice's.  Source: DNS-Based Service Discovery 1.1.0, sections 2.3 and 2.4, and the
original's newPortalService and generateRecordsForHeadlessService for the shape of the tree.
"""

from collections.abc import Iterable, Iterator
from functools import lru_cache, partial
from itertools import count
from typing import Final

from kubedns.dns.names import Labels, address_text, pack_address, parse_domain, record_label
from kubedns.objects import EndpointSlice, Port, Service
from kubedns.zone.treecache import Entry, Made, Node

Slices = tuple[EndpointSlice, ...]
_STEP: Final = 64
"""Addresses between two steps of a maker, which take some 0.3 ms."""


def service_labels(service: Service, domain: Labels) -> Labels:
    """Return the name of a Service."""
    return (service.name.encode(), service.namespace.encode(), b"svc", *domain)


def has_records(service: Service, slices: Slices) -> bool:
    """Whether a Service makes a sub-tree: it has a cluster IP, or is headless with a ready endpoint."""
    return bool(service.cluster_ips) or (service.headless and any(slice_.endpoints for slice_ in slices))


def subtree(service: Service, slices: Slices, domain: Labels) -> Node:
    """Return the node of a Service for which `has_records`; it is filled when first looked at."""
    make = _headless if service.headless else _cluster_ip
    return Node(maker=partial(make, service, slices, domain))


def external_name(service: Service) -> tuple[Entry, ...]:
    """Return the record of an ExternalName Service: a CNAME, or an address where it is one.

    Raises ValueError for a text that is neither.
    """
    text = service.external_name
    try:
        return ((pack_address(text), 0),)
    except ValueError:
        return ((parse_domain(text, underscores=True), 0),)


def _cluster_ip(service: Service, _slices: Slices, domain: Labels) -> Iterator[Made]:
    target = service_labels(service, domain)
    entries = {_address_label(ip): ((ip, 0),) for ip in service.cluster_ips}
    protocols: dict[bytes, dict[bytes, Node]] = {}
    for port in service.ports:
        record = ((target, port.number),)
        protocols.setdefault(b"_" + port.protocol.encode(), {})[b"_" + port.name.encode()] = Node(
            dict.fromkeys(entries, record)
        )
    yield entries, {protocol: Node(children=ports) for protocol, ports in protocols.items()}


def _headless(service: Service, slices: Slices, domain: Labels) -> Iterator[Made]:
    entries: dict[bytes, tuple[Entry, ...]] = {}
    shared: dict[bytes, dict[Entry, None]] = {}
    for number, (label, address) in enumerate(_endpoints(slices), 1):
        if label not in entries:
            entries[label] = ((address, 0),)
        else:
            shared.setdefault(label, dict.fromkeys(entries[label]))[address, 0] = None
        if number % _STEP == 0:
            yield entries, {}
    entries.update({label: tuple(records) for label, records in shared.items()})
    protocols: dict[str, dict[str, Node]] = {}
    for port in dict.fromkeys(port for slice_ in slices if slice_.endpoints for port in slice_.ports):
        names = protocols.setdefault(port.protocol, {})
        if port.name not in names:
            names[port.name] = Node(maker=partial(_headless_port, service, slices, domain, port))
    yield (
        entries,
        {
            b"_" + protocol.encode(): Node(
                children={b"_" + name.encode(): node for name, node in names.items()}
            )
            for protocol, names in protocols.items()
        },
    )


def _headless_port(service: Service, slices: Slices, domain: Labels, port: Port) -> Iterator[Made]:
    """Yield the SRV entries of one port name, whose number each slice has its own of.

    A name with several addresses has a record for each of them, equal as they are: the weights
    count them (as in the original, which divides 100 by the number of records).
    """
    at = service_labels(service, domain)
    found: dict[bytes, dict[tuple[bytes, int], Entry]] = {}
    done = count(1)
    for slice_ in slices:
        numbers = [it.number for it in slice_.ports if (it.name, it.protocol) == (port.name, port.protocol)]
        for label, address in _endpoints((slice_,)) if numbers else ():
            records = found.setdefault(label, {})
            for number in numbers:
                records[address, number] = (label, *at), number
            if next(done) % _STEP == 0:
                yield {}, {}
    entries: dict[bytes, tuple[Entry, ...]] = {}
    for label, records in found.items():
        entries[label] = tuple(records.values())
        if next(done) % _STEP == 0:
            yield entries, {}
    yield entries, {}


def _endpoints(slices: Iterable[EndpointSlice]) -> Iterator[tuple[bytes, bytes]]:
    """Yield label and address of every ready endpoint, in the order of the slices."""
    for slice_ in slices:
        for addresses, hostname in slice_.endpoints:
            for address in addresses:
                yield hostname.encode() if hostname else _address_label(address), address


@lru_cache(maxsize=8192)
def _address_label(address: bytes) -> bytes:
    """Return the record label of an address, remembered: a large Service is generated at each change."""
    return record_label(address_text(address))
