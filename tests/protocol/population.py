"""A small cluster that changes at random, in every way that matters to names.

Few names, addresses and slices, so that changes collide: addresses are used again, types change,
slices move between Services or come before them, hostnames are shared, aliases run in circles.
"""

from collections.abc import Mapping
from random import Random
from typing import TypeVar

from kubedns.objects import Endpoint, EndpointSlice, Key, Port, Service
from kubedns.zone.clusterzone import ClusterZone
from tests.protocol.oracle import DOMAIN, Rr, record_label

T = TypeVar("T")
NAMESPACES = ("shop", "prod", "svc", "kube-system")
NAMES = ("web", "db", "pod", "kube-dns")
HOSTNAMES = ("", "", "db-0", "db-1")
CLUSTER_ADDRESSES = tuple(bytes((10, 96, 0, last)) for last in range(1, 7))
POD_ADDRESSES = tuple(bytes((10, 244, 0, last)) for last in range(1, 7))
SIX = tuple(bytes.fromhex(f"fd00{'0' * 26}{last:02x}") for last in range(1, 5))
PORTS = (
    Port("http", "tcp", 80),
    Port("http", "tcp", 8080),
    Port("dns", "tcp", 53),
    Port("dns", "udp", 53),
    Port("dns", "udp", 5353),
    Port("s", "sctp", 9),
)
TARGETS = (
    "www.example.com",
    "WWW.Example.COM.",
    "gone.example.com",
    "dead.example.com",
    "alias.example.com",
    "home.example.com",
    "198.51.100.7",
    "2001:db8::7",
    "bad..name",
    *(f"{name}.{namespace}.svc.{DOMAIN}" for name in NAMES for namespace in NAMESPACES[:2]),
    f"web.db.prod.svc.{DOMAIN}",
    f"_http._tcp.web.shop.svc.{DOMAIN}",
    f"10-0-0-1.shop.pod.{DOMAIN}",
    DOMAIN,
)
FEDERATIONS = {"prod": "fed.example.com"}
"""A federation with the name of a namespace, whose names it takes over."""
PLACE = ("z1", "r1")
_WWW = [Rr("www.example.com", "A", "192.0.2.53"), Rr("www.example.com", "A", "192.0.2.54")]
_FED = "web.shop.prod.svc.z1.r1.fed.example.com"
OUTSIDE: Mapping[tuple[str, str], tuple[str, list[Rr]]] = {
    ("www.example.com", "A"): ("NOERROR", _WWW),
    ("www.example.com", "AAAA"): ("NOERROR", []),
    ("gone.example.com", "A"): ("NXDOMAIN", []),
    ("alias.example.com", "A"): (
        "NOERROR",
        [Rr("alias.example.com", "CNAME", "www.example.com"), *_WWW],
    ),
    ("home.example.com", "A"): (
        "NOERROR",
        [Rr("home.example.com", "CNAME", f"web.shop.svc.{DOMAIN}")],
    ),
    (_FED, "A"): ("NOERROR", [Rr(_FED, "A", "192.0.2.99")]),
}
QUESTION_TYPES = ("A", "AAAA", "SRV", "CNAME", "TXT", "MX", "NS", "SOA", "PTR", "TYPE65280")


class Population:
    """Services and slices as they are now; `change` alters some and returns what changed."""

    def __init__(self) -> None:
        self.services: dict[Key, Service] = {}
        self.slices: dict[Key, EndpointSlice] = {}

    def change_service(self, rng: Random) -> dict[Key, Service | None]:
        key = (rng.choice(NAMESPACES), rng.choice(NAMES))
        changes = {key: None if rng.random() < 0.25 else self.service(rng, key)}
        _note(self.services, changes)
        return changes

    def change_slice(self, rng: Random) -> dict[Key, EndpointSlice | None]:
        key = (rng.choice(NAMESPACES[:2]), f"slice-{rng.randrange(5)}")
        changes = {key: None if rng.random() < 0.25 else self.slice(rng, key)}
        _note(self.slices, changes)
        return changes

    @staticmethod
    def service(rng: Random, key: Key) -> Service:
        ports = _some_ports(rng)
        kind = rng.random()
        if kind < 0.35:
            count = rng.choice((1, 1, 2))
            ips = (rng.choice(CLUSTER_ADDRESSES), rng.choice(SIX))[:count]
            return Service(*key, cluster_ips=tuple(rng.sample(ips, count)), ports=ports)
        if kind < 0.75:
            return Service(*key, headless=True, ports=ports)
        if kind < 0.97:
            return Service(*key, external_name=rng.choice(TARGETS))
        return Service(*key)

    @staticmethod
    def slice(rng: Random, key: Key) -> EndpointSlice:
        if rng.random() < 0.12:
            return EndpointSlice(*key, rng.choice(NAMES), _crowd(rng), _some_ports(rng))
        pool = rng.choice((POD_ADDRESSES, SIX, (*POD_ADDRESSES, *CLUSTER_ADDRESSES)))
        endpoints = tuple(
            Endpoint(tuple(rng.sample(pool, rng.choice((1, 1, 2)))), rng.choice(HOSTNAMES))
            for _ in range(rng.randrange(4))
        )
        return EndpointSlice(*key, rng.choice((*NAMES, *NAMES, "")), endpoints, _some_ports(rng))

    def relisted(self, rng: Random) -> "Population":
        """Return another state of the same cluster, as a fresh list may show it after a silence."""
        other = Population()
        other.services, other.slices = dict(self.services), dict(self.slices)
        for _ in range(rng.randrange(1, 6)):
            other.change_service(rng)
            other.change_slice(rng)
        return other

    def fresh_zone(self, rng: Random | None = None) -> ClusterZone:
        """Return a zone that got the objects at once, or, with `rng`, one by one in any order."""
        zone = ClusterZone(tuple(DOMAIN.encode().split(b".")))
        if rng is None:
            zone.services.apply(self.services)
            zone.slices.apply(self.slices)
        else:
            steps: list[Service | EndpointSlice] = [*self.services.values(), *self.slices.values()]
            rng.shuffle(steps)
            for step in steps:
                if isinstance(step, Service):
                    zone.services.apply({(step.namespace, step.name): step})
                else:
                    zone.slices.apply({(step.namespace, step.name): step})
        zone.mark_synced()
        return zone


def _crowd(rng: Random) -> tuple[Endpoint, ...]:
    """Return more endpoints than fit a datagram."""
    named = rng.random() < 0.5
    return tuple(
        Endpoint((bytes((10, 244, 1, last)),), f"{'h' * (last % 9)}-{last}"[-9:].strip("-") if named else "")
        for last in range(1, 61)
    )


def _some_ports(rng: Random) -> tuple[Port, ...]:
    ports = {(port.name, port.protocol): port for port in rng.sample(PORTS, rng.randrange(4))}
    return tuple(ports.values())


def _note(held: dict[Key, T], changes: Mapping[Key, T | None]) -> None:
    for key, value in changes.items():
        if value is None:
            held.pop(key, None)
        else:
            held[key] = value


def question_name(rng: Random, population: Population) -> str:
    """Return a name worth asking: most of them exist, or nearly do."""
    service = f"{rng.choice(NAMES)}.{rng.choice(NAMESPACES)}.svc"
    if population.services and rng.random() < 0.7:
        namespace, name = rng.choice(list(population.services))
        service = f"{name}.{namespace}.svc"
    head = rng.choice(
        (
            "",
            "",
            "",
            "db-0.",
            "db-1.",
            "_http._tcp.",
            "_dns._udp.",
            "_dns._tcp.",
            "_tcp.",
            "_udp.",
            "x.",
            "db-0._http._tcp.",
            "*.",
            "x.y.",
            "web.",
            "db.",
            f"{_label(rng)}.",
            f"{_label(rng)}._dns._udp.",
        )
    )
    if rng.random() < 0.8:
        return f"{head}{service}.{DOMAIN}"
    other = (
        DOMAIN,
        f"svc.{DOMAIN}",
        f"dns.{DOMAIN}",
        f"ns.dns.{DOMAIN}",
        f"dns-version.{DOMAIN}",
        f"pod.{DOMAIN}",
        f"shop.pod.{DOMAIN}",
        f"10-1-2-3.shop.pod.{DOMAIN}",
        f"fd00--1.shop.pod.{DOMAIN}",
        f"nope.shop.pod.{DOMAIN}",
        f"{rng.choice(NAMESPACES)}.svc.{DOMAIN}",
        f"*.*.svc.{DOMAIN}",
        f"*.*.*.svc.{DOMAIN}",
        f"*.{rng.choice(NAMESPACES)}.*.{DOMAIN}",
        f"*.{rng.choice(NAMESPACES)}.svc.{DOMAIN}",
        f"{rng.choice(NAMES)}.*.svc.{DOMAIN}",
        f"*.{rng.choice(NAMES)}.*.svc.{DOMAIN}",
        f"_http._tcp.*.*.svc.{DOMAIN}",
        f"web.{rng.choice(NAMESPACES)}.prod.svc.{DOMAIN}",
        f"foo.{DOMAIN}",
        f"*.{DOMAIN}",
    )
    return rng.choice(other)


def _label(rng: Random) -> str:
    return record_label(f"10.{rng.choice(('96', '244'))}.0.{rng.randrange(1, 7)}")


def question_types(rng: Random) -> str:
    """Return a type, mostly one of those that are asked all day."""
    return rng.choice(QUESTION_TYPES[:3]) if rng.random() < 0.8 else rng.choice(QUESTION_TYPES)
