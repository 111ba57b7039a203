"""A large cluster as the API server lists it, and the questions that its pods ask.  Deterministic.

Services svc-0, svc-1, ... are spread over 100 namespaces; the last ones are headless.  Each has one
slice of endpoints, whose pods have hostnames where the Service is headless.  Objects carry what
real ones carry and DNS does not need (managedFields, annotations, selectors), as it costs the list.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Final

NAMESPACES: Final = 100
QUESTIONS: Final = ("hot", "wide", "mix", "cold")
OUTSIDE: Final = ("outside", "outside new")
"""Names elsewhere: few again and again, and names never asked twice."""
_BORN: Final = "2026-01-01T00:00:00Z"
_MANAGER: Final = "endpointslice-controller.k8s.io"
_PORTS: Final = (("http", 80, 8080), ("grpc", 9090, 9090))
_HOT_NAMES: Final = 1000
_MIX_LENGTH: Final = 50_000
_COLD_LENGTH: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Cluster:
    """How large the cluster is.

    `headless` is how many of the Services are; `endpoints` those of each, and `portal_endpoints`, where
    it is given, those of each that has a cluster IP.
    """

    services: int = 10_000
    headless: int = 1_000
    endpoints: int = 10
    portal_endpoints: int | None = None

    @property
    def portals(self) -> int:
        """How many Services have a cluster IP: those with the lower numbers."""
        return self.services - self.headless

    def name(self, number: int) -> str:
        """Return the DNS name of a Service."""
        return f"svc-{number}.{namespace(number)}.svc.cluster.local"

    def objects(self) -> Iterator[dict[str, Any]]:
        """Yield every Service and its EndpointSlice."""
        for number in range(self.services):
            yield self.service(number)
            yield self.slice(number)

    def service(self, number: int) -> dict[str, Any]:
        """Return a Service."""
        address = "None" if number >= self.portals else cluster_ip(number)
        name = f"svc-{number}"
        spec = {
            "clusterIP": address,
            "clusterIPs": [address],
            "internalTrafficPolicy": "Cluster",
            "ipFamilies": ["IPv4"],
            "ipFamilyPolicy": "SingleStack",
            "ports": [
                {"name": port, "port": outer, "protocol": "TCP", "targetPort": inner}
                for port, outer, inner in _PORTS
            ],
            "selector": {"app": name},
            "sessionAffinity": "None",
            "type": "ClusterIP",
        }
        applied = {"apiVersion": "v1", "kind": "Service", "spec": spec}
        metadata = _metadata(name, number, number, "kubectl-client-side-apply")
        metadata["labels"] = {"app": name, "tier": "backend"}
        metadata["annotations"] = {"kubectl.kubernetes.io/last-applied-configuration": json.dumps(applied)}
        status: dict[str, Any] = {"loadBalancer": {}}
        return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec, "status": status}

    def slice(self, number: int) -> dict[str, Any]:
        """Return the EndpointSlice of a Service."""
        name = f"svc-{number}"
        labels = {
            "app": name,
            "endpointslice.kubernetes.io/managed-by": _MANAGER,
            "kubernetes.io/service-name": name,
        }
        if number >= self.portals:
            labels["service.kubernetes.io/headless"] = ""
        metadata = _metadata(slice_name(number), number, self.services + number, "kube-controller-manager")
        metadata["labels"] = labels
        return {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": metadata,
            "addressType": "IPv4",
            "endpoints": [self._endpoint(number, index) for index in range(self._endpoints_of(number))],
            "ports": [{"name": port, "port": inner, "protocol": "TCP"} for port, _, inner in _PORTS],
        }

    def _endpoints_of(self, number: int) -> int:
        if number < self.portals and self.portal_endpoints is not None:
            return self.portal_endpoints
        return self.endpoints

    def _endpoint(self, number: int, index: int) -> dict[str, Any]:
        pod = f"svc-{number}-{index}"
        serial = number * self.endpoints + index
        endpoint: dict[str, Any] = {
            "addresses": [pod_ip(serial)],
            "conditions": {"ready": True, "serving": True, "terminating": False},
            "nodeName": f"node-{index % 50}",
            "zone": "z1",
            "targetRef": {
                "kind": "Pod",
                "name": pod,
                "namespace": namespace(number),
                "uid": f"0f4a8b1c-aaaa-4bbb-8ccc-{serial:012d}",
            },
        }
        if number >= self.portals:
            endpoint["hostname"] = pod
        return endpoint

    def questions(self, kind: str) -> list[str]:
        """Return questions in dnsperf's form, by kind.

        `hot`: few names again and again; `wide`: every cluster-IP name; `mix`: what pods ask; `cold`:
        names that do not exist, each below a Service that does, none twice; `outside` and `outside new`:
        as OUTSIDE says.
        """
        random = Random(kind)
        if kind in OUTSIDE:
            count = _HOT_NAMES // 2 if kind == "outside" else _COLD_LENGTH
            return [f"{kind.replace(' ', '-')}-{n}.outside.test A" for n in range(count)]
        if kind == "cold":
            return [f"cold-{n}.{self.name(n % self.portals)} A" for n in range(_COLD_LENGTH)]
        if kind == "mix":
            return [self._asked_by_a_pod(random) for _ in range(_MIX_LENGTH)]
        count = self.portals if kind == "wide" else min(_HOT_NAMES, self.portals)
        lines = [f"{self.name(number)} A" for number in range(count)]
        random.shuffle(lines)
        return lines

    def _asked_by_a_pod(self, random: Random) -> str:
        portal = random.randrange(self.portals)
        headless = random.randrange(self.portals, self.services)
        elsewhere = namespace(random.randrange(NAMESPACES))
        kinds: tuple[tuple[int, Callable[[], str]], ...] = (
            (45, lambda: f"{self.name(portal)} A"),
            (15, lambda: f"{self.name(portal)} AAAA"),
            (10, lambda: f"{self.name(portal)}.{elsewhere}.svc.cluster.local A"),
            (10, lambda: f"{self.name(headless)} A"),
            (5, lambda: f"svc-{headless}-{random.randrange(self.endpoints)}.{self.name(headless)} A"),
            (5, lambda: f"_http._tcp.{self.name(portal)} SRV"),
            (5, lambda: f"_http._tcp.{self.name(headless)} SRV"),
            (5, lambda: f"no-such-{random.randrange(5000)}.{namespace(portal)}.svc.cluster.local A"),
        )
        weights = [weight for weight, _ in kinds]
        (chosen,) = random.choices(kinds, weights)
        return chosen[1]()

    def write_objects(self, path: Path) -> None:
        """Write all objects as one List."""
        with path.open("w") as file:
            file.write('{"apiVersion": "v1", "kind": "List", "items": [\n')
            file.write(",\n".join(json.dumps(item) for item in self.objects()))
            file.write("\n]}\n")

    def write_questions(self, directory: Path) -> dict[str, Path]:
        """Write a file of questions for each kind; return them by kind."""
        files = {kind: directory / f"{kind.replace(' ', '-')}.txt" for kind in (*QUESTIONS, *OUTSIDE)}
        for kind, path in files.items():
            path.write_text("\n".join(self.questions(kind)) + "\n")
        return files


def namespace(number: int) -> str:
    """Return the namespace of a Service."""
    return f"ns-{number % NAMESPACES}"


def slice_name(number: int) -> str:
    """Return the name of a Service's EndpointSlice."""
    return f"svc-{number}-x7k2p"


def cluster_ip(number: int) -> str:
    """Return the cluster IP of a Service."""
    return f"10.{96 + (number >> 16)}.{number >> 8 & 255}.{number & 255}"


def pod_ip(serial: int) -> str:
    """Return the address of a pod, by its number in the whole cluster."""
    return f"10.{128 + (serial >> 16) % 64}.{serial >> 8 & 255}.{serial & 255}"


def _metadata(name: str, number: int, serial: int, manager: str) -> dict[str, Any]:
    fields = {"f:metadata": {"f:labels": {".": {}, "f:app": {}}}, "f:spec": {"f:ports": {}, "f:selector": {}}}
    managed = {
        "apiVersion": "v1",
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
        "manager": manager,
        "operation": "Update",
        "time": _BORN,
    }
    return {
        "name": name,
        "namespace": namespace(number),
        "uid": f"d9e3c5f0-0000-4000-8000-{serial:012d}",
        "resourceVersion": str(1000 + serial),
        "creationTimestamp": _BORN,
        "managedFields": [managed],
    }
