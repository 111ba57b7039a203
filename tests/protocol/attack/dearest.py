"""Every kind of question about a cluster with a very large Service, and the CPU time that each takes.

Out: what each kind costs the first time and afterwards, with its rcode and its records.
The cluster has a headless Service of 10,000 endpoints with hostnames and one of 10,000 without, 2,000
Services with cluster IPs in 100 namespaces, and an ExternalName.
"""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from statistics import median
from time import process_time
from typing import Final

from kubedns.objects import Endpoint, EndpointSlice, Port, Service
from kubedns.zone.clusterzone import ClusterZone
from kubedns.zone.recordlabel import record_label
from tests.protocol.reading import Reply, ask, read
from tests.protocol.served import Served

D: Final = "cluster.local"
ENDPOINTS: Final = 10_000
_SLICE: Final = 100
_PORTS: Final = (Port("p0", "tcp", 8080), Port("p1", "tcp", 9090))
_FIRST: Final = 2
_AGAIN: Final = 9
TYPES: Final = ("A", "AAAA", "SRV", "CNAME", "TXT", "MX", "NS", "SOA", "PTR", "HTTPS", "TYPE65280", "ANY")
FEW_TYPES: Final = ("A", "SRV", "TXT")


@dataclass(frozen=True)
class Kind:
    """A kind of question; `payload` None is without EDNS."""

    name: str
    rdtype: str
    tcp: bool
    payload: int | None

    def __str__(self) -> str:
        over = "TCP" if self.tcp else "UDP" if self.payload is None else f"UDP {self.payload}"
        return f"{self.name.removesuffix(D)} {self.rdtype} {over}"


@dataclass(frozen=True)
class Cost:
    """Seconds of CPU time for the first answer and (the median) for the next ones, and what came back."""

    kind: Kind
    first: float
    next: float
    octets: int
    reply: Reply


def _address(number: int, net: int) -> bytes:
    return bytes((10, net, number // 250, number % 250 + 1))


def zone() -> ClusterZone:
    """Return the cluster, nobody having asked for anything."""
    services = {}
    for number in range(2000):
        key = (f"ns-{number % 100}", f"web-{number}")
        services[key] = Service(*key, (bytes((10, 96, number // 250, number % 250)),), ports=_PORTS)
    services["default", "ext"] = Service("default", "ext", external_name=f"web-0.ns-0.svc.{D}")
    slices = {}
    for name, net, named in (("huge", 128, False), ("pods", 192, True)):
        services["default", name] = Service("default", name, headless=True)
        for first in range(0, ENDPOINTS, _SLICE):
            key = ("default", f"{name}-{first}")
            endpoints = tuple(
                Endpoint((_address(number, net),), f"pod-{number}" if named else "")
                for number in range(first, first + _SLICE)
            )
            slices[key] = EndpointSlice(*key, name, endpoints, _PORTS)
    made = ClusterZone(tuple(D.encode().split(b".")))
    made.services.apply(services)
    made.slices.apply(slices)
    made.mark_synced()
    return made


def names() -> Iterator[str]:
    """Yield a name of each kind and depth, existing and not."""
    label = record_label(_address(77, 128)).decode()
    for service, endpoint in (("huge", label), ("pods", "pod-77")):
        at = f"{service}.default.svc.{D}"
        for head in ("", f"{endpoint}.", "x.", "3030.", "x.y.", "_tcp.", "_udp.", "_p0._tcp.", "_no._tcp."):
            yield head + at
        for head in (f"{endpoint}._p0._tcp.", "x._p0._tcp.", "a.b.c.d."):
            yield head + at
        for head in ("*.", "*._p0._tcp.", "*.*.", "_p0.*.", f"*.{endpoint}."):
            yield head + at
        yield f"{endpoint}.{service}.*.svc.{D}"
    for name in ("*.*", "*.*.*", "web-1.*", "*.web-1.*", "_p0._tcp.*.*", "*._p0._tcp.*.*", "x.*.*", "*.ns-1"):
        yield f"{name}.svc.{D}"
    for name in (
        "web-0.ns-0.svc",
        "_p0._tcp.web-0.ns-0.svc",
        "no.ns-0.svc",
        "ns-0.svc",
        "svc",
        "ext.default.svc",
    ):
        yield f"{name}.{D}"
    yield from (D, f"*.{D}", f"10-1-2-3.default.pod.{D}", f"dns-version.{D}", f"ns.dns.{D}", f"no.{D}")


def kinds() -> Iterator[Kind]:
    """Yield every kind of question: types, cases, wildcards, depths, transports, with and without EDNS."""
    for name in names():
        for rdtype, payload in product(TYPES, (None, 1232)):
            yield Kind(name, rdtype, tcp=False, payload=payload)
        for rdtype in FEW_TYPES:
            yield Kind(name, rdtype, tcp=True, payload=1232)
            yield Kind(name.title(), rdtype, tcp=False, payload=1232)


def costs(loop: asyncio.AbstractEventLoop, asked: list[Kind]) -> Iterator[Cost]:
    """Ask each kind of question, the first time with nothing made for any before."""
    cluster = zone()
    served = Served(cluster, loop)
    served.ask(ask(f"no.{D}"))
    for kind in asked:
        query = ask(kind.name, kind.rdtype, payload=kind.payload)
        first, reply = min(_first(cluster, served, query, kind.tcp) for _ in range(_FIRST))
        again = median(_timed(served, query, kind.tcp)[0] for _ in range(_AGAIN))
        assert reply is not None
        yield Cost(kind, first, again, len(reply), read(query, reply, tcp=kind.tcp))


def _first(cluster: ClusterZone, served: Served, query: bytes, tcp: bool) -> tuple[float, bytes | None]:
    for _ in cluster.forget():
        pass
    return _timed(served, query, tcp)


def _timed(served: Served, query: bytes, tcp: bool) -> tuple[float, bytes | None]:
    begun = process_time()
    reply = served.ask(query, tcp=tcp)
    return process_time() - begun, reply


def table(found: list[Cost], most: int = 8) -> str:
    """Return the dearest of each way as lines of text."""
    lines = [f"{len(found)} kinds of questions; CPU time of the dearest:"]
    udp = [cost for cost in found if not cost.kind.tcp]
    for title, rows, key in (
        ("UDP, the first time", udp, lambda cost: cost.first),
        ("UDP, then", udp, lambda cost: cost.next),
        ("TCP, then, by KiB sent", [cost for cost in found if cost.kind.tcp], per_kib),
    ):
        lines.append(f"{title}:")
        lines += [
            f"  {key(cost) * 1000:7.3f} ms  {cost.kind}  ({cost.reply.rcode}, {cost.octets} octets)"
            for cost in sorted(rows, key=key, reverse=True)[:most]
        ]
    return "\n".join(lines)


def per_kib(cost: Cost) -> float:
    """Return seconds for each KiB sent, of which there is one at least."""
    return cost.next / max(cost.octets / 1024, 1)
