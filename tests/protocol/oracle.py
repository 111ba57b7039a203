"""What the zone must say, worked out from scratch and as plainly as can be, from the objects of a cluster.

Nothing is kept, nothing is shared with the product but the input types.  Names are text without a
final dot.  Sources: DNS-Based Service Discovery 1.1.0 sections 2.3 and 2.4; RFC 1034 3.6.2,
RFC 2308, RFC 6604, RFC 8020; the original's TreeCache for wildcards and for the record labels.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address, ip_address

from kubedns.objects import EndpointSlice, Service

DOMAIN = "cluster.local"
TTL = 30
NEGATIVE_TTL = 60
SOA_TTL = 3600
MOST_LINKS = 8
Address = IPv4Address | IPv6Address


@dataclass(frozen=True, order=True)
class Rr:
    """One record: owner, type, and data as text without final dots."""

    owner: str
    rdtype: str
    rdata: str


@dataclass
class Verdict:
    """What must come back; records as sets.  `soa` is the owner of the SOA of a negative answer."""

    rcode: str = "NOERROR"
    answer: set[Rr] = field(default_factory=set)
    additional: set[Rr] = field(default_factory=set)
    soa: str = ""


@dataclass(frozen=True)
class _Item:
    """A record below a node, with its own name: an address, a port at a target, or an alias."""

    name: str
    address: Address | None = None
    port: int = 0
    target: str = ""


def record_label(address: str) -> str:
    """The hash that names what has no hostname: FNV-1a, 32 bits, of the original's printed record."""
    value = 2166136261
    for octet in f"&{{{address} 0 10 10  false 30 0  }}".encode():
        value = ((value ^ octet) * 16777619) % 2**32
    return "".join(f"{ord(digit):02x}" for digit in f"{value:x}")


class Oracle:
    """The zone of a set of Services and slices.

    `outside` says what upstreams would answer: (name, type) -> rcode and records; `federations`
    are domains by name, `place` zone and region.
    """

    def __init__(
        self,
        services: Iterable[Service],
        slices: Iterable[EndpointSlice],
        *,
        outside: Mapping[tuple[str, str], tuple[str, list[Rr]]] | None = None,
        federations: Mapping[str, str] | None = None,
        place: tuple[str, str] | None = None,
        wildcards: bool = True,
    ) -> None:
        self._services = {(service.namespace, service.name): service for service in services}
        self._slices = list(slices)
        self._outside = outside or {}
        self._federations = federations or {}
        self._place = place
        self._wildcards = wildcards
        self._nodes: set[str] = set()
        self._items: dict[str, list[_Item]] = {}
        self._ptr: dict[Address, list[tuple[str, str]]] = {}
        for service in self._services.values():
            self._publish(service)

    # The records.

    def _publish(self, service: Service) -> None:
        name = f"{service.name}.{service.namespace}.svc.{DOMAIN}"
        if service.external_name:
            self._external(name, service.external_name)
        elif service.cluster_ips:
            ips = [ip_address(packed) for packed in service.cluster_ips]
            for ip in ips:
                self._add(name, _Item(f"{record_label(str(ip))}.{name}", address=ip))
                self._ptr.setdefault(ip, []).append(("service", name))
                for port in service.ports:
                    at = f"_{port.name}._{port.protocol}.{name}"
                    self._add(at, _Item(f"{record_label(str(ip))}.{at}", port=port.number, target=name))
        elif service.headless:
            self._headless(service, name)

    def _external(self, name: str, text: str) -> None:
        try:
            item = _Item(name, address=ip_address(text))
        except ValueError:
            target = text.lower().removesuffix(".")
            if not target or any(not 0 < len(label) < 64 for label in target.split(".")):
                return
            item = _Item(name, target=target)
        self._add(name.partition(".")[2], item)

    def _headless(self, service: Service, name: str) -> None:
        known: set[tuple[str, ...]] = set()
        for slice_ in sorted(self._slices, key=lambda one: one.name):
            if (slice_.namespace, slice_.service) != (service.namespace, service.name):
                continue
            for endpoint in slice_.endpoints:
                for ip in map(ip_address, endpoint.addresses):
                    label = endpoint.hostname or record_label(str(ip))
                    if (label, str(ip)) not in known:
                        known.add((label, str(ip)))
                        self._add(name, _Item(f"{label}.{name}", address=ip))
                        kind = "hostname" if endpoint.hostname else "label"
                        self._ptr.setdefault(ip, []).append((kind, f"{label}.{name}"))
                    for port in slice_.ports:
                        at = f"_{port.name}._{port.protocol}.{name}"
                        if (at, label, str(ip), str(port.number)) not in known:
                            known.add((at, label, str(ip), str(port.number)))
                            item = _Item(f"{label}.{at}", port=port.number, target=f"{label}.{name}")
                            self._add(at, item)

    def _add(self, node: str, item: _Item) -> None:
        self._items.setdefault(node, []).append(item)
        while node != DOMAIN:
            self._nodes.add(node)
            node = node.partition(".")[2]

    # Looking up.

    def _at(self, name: str) -> list[_Item] | None:
        """The records at a name, None where the name does not exist."""
        if name in self._nodes:
            return self._own(name)
        parent = name.partition(".")[2]
        return [item for item in self._items.get(parent, []) if item.name == name] or None

    def _own(self, node: str) -> list[_Item]:
        """The records of a node's own name: a namespace has none, though aliases are kept in it."""
        is_service = node.count(".") > f"namespace.svc.{DOMAIN}".count(".")
        return self._items.get(node, []) if is_service else []

    def _matches(self, pattern: str) -> list[_Item] | None:
        first, *middle = pattern.removesuffix(f".{DOMAIN}").split(".")
        nodes = [DOMAIN]
        for label in reversed(middle):
            if label == "*":
                nodes = [child for node in nodes for child in self._children(node)]
            else:
                nodes = [f"{label}.{node}" for node in nodes if f"{label}.{node}" in self._nodes]
        found: list[_Item] = []
        for node in nodes:
            if first != "*":
                found += self._at(f"{first}.{node}") or []
                continue
            found += self._items.get(node, [])
        return found or None

    def _children(self, node: str) -> Iterator[str]:
        for name in self._nodes:
            label, _, parent = name.partition(".")
            if parent == node and not label.startswith("_"):
                yield name

    def _found(self, name: str, *, asked: bool) -> list[_Item] | None:
        below = name.removesuffix(f".{DOMAIN}").split(".") if name != DOMAIN else []
        if asked and not self._wildcards and "*" in below:
            return None
        if name in {DOMAIN, f"dns.{DOMAIN}", f"dns-version.{DOMAIN}", f"pod.{DOMAIN}"}:
            return []
        if name == f"ns.dns.{DOMAIN}":
            service = self._services.get(("kube-system", "kube-dns"))
            return [_Item("", address=ip_address(ip)) for ip in service.cluster_ips] if service else []
        if below[-1] == "pod":
            return self._pod(below)
        federated = len(below) == 4 and below[3] == "svc" and below[2] in self._federations
        if federated and "*" not in below and self._at(name) is None:
            return [_Item("", target=self._federated(below))]
        if asked and self._wildcards and "*" in below:
            return self._matches(name)
        return self._at(name)

    def _pod(self, below: list[str]) -> list[_Item] | None:
        if len(below) == 2:
            return []
        if len(below) > 3 or "." in below[0] or ":" in below[0]:
            return None
        for separator in ".:":
            try:
                return [_Item("", address=ip_address(below[0].replace("-", separator)))]
            except ValueError:
                continue
        return None

    def _federated(self, below: list[str]) -> str:
        local = f"{below[0]}.{below[1]}.svc.{DOMAIN}"
        service = self._services.get((below[1], below[0]))
        if service is not None and not service.external_name and self._at(local) is not None:
            return local
        return ".".join((*below, *self._place, self._federations[below[2]])) if self._place else ""

    # Answering.

    def answer(self, name: str, rdtype: str) -> Verdict:
        """What a question of class IN for a name of the zone, in lower case, gets."""
        verdict = Verdict()
        seen: list[str] = []
        asked = name
        while True:
            if f".{name}".endswith(f".{DOMAIN}"):
                found = self._found(name, asked=not seen)
                alias = self._alias(found)
                if alias is None:
                    self._conclude(verdict, name, rdtype, found)
                    return verdict
                if not alias:  # the place of a federation is not known
                    verdict.rcode = "SERVFAIL"
                    return verdict
                links = [Rr(name, "CNAME", alias)]
                if rdtype == "CNAME" and name == asked:
                    verdict.answer |= set(links)
                    return verdict
            else:
                rcode, records = self._outside.get((name, rdtype), ("SERVFAIL", []))
                links = [rr for rr in records if rr.rdtype == "CNAME" and rr.owner == name]
                if not links:
                    verdict.rcode = rcode
                    verdict.answer |= {rr for rr in records if rr.rdtype == rdtype}
                    return verdict
            seen.append(name)
            verdict.answer |= set(links)
            name = links[0].rdata
            if name in seen or len(seen) > MOST_LINKS:
                return Verdict("SERVFAIL")

    @staticmethod
    def _alias(found: list[_Item] | None) -> str | None:
        """The target where there is nothing but aliases; of several under a wildcard the first in order."""
        items = found or []
        if items and all(item.address is None and not item.port for item in items):
            return min((item.target for item in items), key=lambda name: name.split("."))
        return None

    def _conclude(self, verdict: Verdict, name: str, rdtype: str, found: list[_Item] | None) -> None:
        if found is None:
            verdict.rcode, verdict.soa = "NXDOMAIN", DOMAIN
            return
        items = [item for item in found if item.address is not None or item.port]
        records: set[Rr] = set()
        if rdtype in {"A", "AAAA"}:
            records = {Rr(name, rdtype, str(ip)) for ip in self._addresses(items) if _type(ip) == rdtype}
        elif rdtype == "SRV":
            records, verdict.additional = self._srv(name, [item for item in items if item.name])
        elif rdtype == "TXT" and name == f"dns-version.{DOMAIN}":
            records = {Rr(name, "TXT", '"1.1.0"')}
        elif rdtype == "NS" and name == DOMAIN:
            server = f"ns.dns.{DOMAIN}"
            records = {Rr(name, "NS", server)}
            glue = self._found(server, asked=False) or []
            verdict.additional = {Rr(server, _type(ip), str(ip)) for ip in self._addresses(glue)}
        elif rdtype == "SOA" and name == DOMAIN:
            records = {
                Rr(name, "SOA", f"ns.dns.{DOMAIN}. hostmaster.{DOMAIN}. 0 28800 7200 604800 {NEGATIVE_TTL}")
            }
        verdict.answer |= records
        if not records:
            verdict.soa = DOMAIN

    def _addresses(self, items: Iterable[_Item]) -> Iterator[Address]:
        for item in items:
            if item.address is not None:
                yield item.address
            else:
                yield from (found.address for found in self._at(item.target) or () if found.address)

    def _srv(self, name: str, items: list[_Item]) -> tuple[set[Rr], set[Rr]]:
        answer, additional = set(), set()
        for item in items:
            target = item.target or item.name
            answer.add(Rr(name, "SRV", f"10 {max(1, 100 // len(items))} {item.port} {target}"))
            addresses = [item.address] if item.address else self._addresses([item])
            additional |= {Rr(target, _type(ip), str(ip)) for ip in addresses}
        return answer, additional

    def pointers(self, address: str) -> list[str] | None:
        """The names that an address has, in the order to give them; None where it has none."""
        found = self._ptr.get(ip_address(address), [])
        for wanted in ("service", "hostname", "label"):
            names = {name for kind, name in found if kind == wanted}
            if names:
                return sorted(names, key=lambda name: name.split(".")[::-1])
        return None

    def names(self) -> set[str]:
        """Every name with something at or below it, but for those of pods."""
        return self._nodes | {item.name for items in self._items.values() for item in items} | {DOMAIN}


def _type(address: Address) -> str:
    return "A" if address.version == 4 else "AAAA"
