"""Objects as the API has them, applied to a zone, and questions about them."""

import asyncio
from collections.abc import Sequence
from typing import Any

from kubedns.cluster import project
from kubedns.skydns.answers import Policy
from kubedns.zone.clusterzone import ClusterZone
from tests.protocol.oracle import Rr
from tests.protocol.reading import Reply, ask, read
from tests.protocol.served import Served

D = "cluster.local"
OUTSIDE = {
    ("up.example.test", "A"): ("NOERROR", [Rr("up.example.test", "A", "192.0.2.9")]),
    ("gone.example.test", "A"): ("NXDOMAIN", []),
}


Json = dict[str, Any]


class Cluster:
    """Objects as the API has them, and questions about them."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, *, domain: str = D, policy: Policy | None = None
    ) -> None:
        self.zone = ClusterZone(tuple(domain.lower().encode().split(b".")))
        self.zone.mark_synced()
        self.served = Served(self.zone, loop, outside=OUTSIDE, policy=policy)

    def service(self, namespace: str, name: str, *ips: str, ports: Sequence[Json] = (), **spec: str) -> None:
        """Apply a Service: with cluster IPs, else headless."""
        body = {
            "metadata": {"namespace": namespace, "name": name},
            "spec": {"clusterIPs": list(ips) or ["None"], "ports": list(ports), **spec},
        }
        self.zone.services.apply({(namespace, name): project.service((namespace, name), body, [])})

    def alias(self, namespace: str, name: str, target: str) -> None:
        """Apply an ExternalName Service."""
        self.service(namespace, name, "", type="ExternalName", externalName=target)

    def slice(
        self,
        namespace: str,
        name: str,
        service: str | None,
        *endpoints: Json,
        ports: Sequence[Json] = (),
        family: str = "IPv4",
    ) -> None:
        """Apply a slice with the label of a Service, None: without."""
        body = {
            "metadata": {
                "namespace": namespace,
                "name": name,
                "labels": {"kubernetes.io/service-name": service} if service else {},
            },
            "addressType": family,
            "endpoints": list(endpoints),
            "ports": list(ports),
        }
        key = (namespace, name)
        self.zone.slices.apply({key: project.endpoint_slice(key, body, [])})

    def delete_service(self, namespace: str, name: str) -> None:
        self.zone.services.apply({(namespace, name): None})

    def delete_slice(self, namespace: str, name: str) -> None:
        self.zone.slices.apply({(namespace, name): None})

    def ask(self, name: str, rdtype: str = "A", *, tcp: bool = True, payload: int | None = None) -> Reply:
        query = ask(name, rdtype, payload=payload)
        return read(query, self.served.ask(query, tcp=tcp), tcp=tcp)

    def addresses(self, name: str, rdtype: str = "A") -> set[str]:
        """The addresses that a name has, asked over TCP."""
        return self.ask(name, rdtype).rdatas(rdtype)


def endpoint(address: str, hostname: str | None = None, **conditions: bool | None) -> Json:
    """An endpoint's JSON."""
    return {
        "addresses": [address],
        **({"hostname": hostname} if hostname else {}),
        **({"conditions": conditions} if conditions else {}),
    }


def is_nodata(reply: Reply) -> bool:
    return reply.rcode == "NOERROR" and not reply.answer and [r.rdtype for r in reply.authority] == ["SOA"]


def is_nxdomain(reply: Reply) -> bool:
    return reply.rcode == "NXDOMAIN" and not reply.answer and [r.rdtype for r in reply.authority] == ["SOA"]


def crowd(count: int) -> list[Json]:
    """So many endpoints with addresses and hostnames of their own."""
    return [endpoint(f"10.{1 + n // 65536}.{n // 256 % 256}.{n % 256}", f"pod-{n}") for n in range(count)]
