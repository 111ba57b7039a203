"""Kubernetes objects for the pod-level tests, as the API holds them."""

from collections.abc import Iterator
from typing import Any


def service(name: str, namespace: str, cluster_ip: str, *ports: tuple[str, int, str]) -> dict[str, Any]:
    """Return a Service; `cluster_ip` may be `None`, a port is name, number and protocol."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "clusterIP": cluster_ip,
            "clusterIPs": [cluster_ip],
            "ports": [
                {"name": port, "port": number, "protocol": protocol} for port, number, protocol in ports
            ]
            or [{"name": "http", "port": 80, "protocol": "TCP"}],
        },
    }


def headless_slice(service_name: str, namespace: str, *endpoints: tuple[str, str]) -> dict[str, Any]:
    """Return the slice of a headless Service; an endpoint is hostname and address."""
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "name": f"{service_name}-slice",
            "namespace": namespace,
            "labels": {
                "kubernetes.io/service-name": service_name,
                "service.kubernetes.io/headless": "",
                "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
            },
        },
        "addressType": "IPv4",
        "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}],
        "endpoints": [
            {"addresses": [address], "hostname": hostname, "conditions": {"ready": True}}
            for hostname, address in endpoints
        ],
    }


def sample_cluster() -> list[dict[str, Any]]:
    """Return what every cluster has, one ClusterIP Service and one headless Service."""
    return [
        service("kubernetes", "default", "10.96.0.1", ("https", 443, "TCP")),
        service("kube-dns", "kube-system", "10.96.0.10", ("dns", 53, "UDP"), ("dns-tcp", 53, "TCP")),
        service("web", "shop", "10.96.1.1"),
        service("db", "shop", "None"),
        headless_slice("db", "shop", ("db-0", "10.244.0.10"), ("db-1", "10.244.0.11")),
    ]


def large_cluster(services: int, headless: int, endpoints: int) -> Iterator[dict[str, Any]]:
    """Yield `services` Services in 100 namespaces, the last `headless` of them with slices."""
    for number in range(services):
        name, namespace = f"svc-{number}", f"ns-{number % 100}"
        if number < services - headless:
            yield service(name, namespace, f"10.{97 + number // 65536}.{number // 256 % 256}.{number % 256}")
            continue
        yield service(name, namespace, "None")
        first = number * endpoints
        yield headless_slice(
            name,
            namespace,
            *(
                (f"{name}-{k}", f"10.128.{(first + k) // 256 % 256}.{(first + k) % 256}")
                for k in range(endpoints)
            ),
        )
