"""Defaults that do not depend on other objects.

In: an object with the fields of its kind.  Out: the same object, completed in place as the
server completes it when it reads a request.

Source: kubernetes pkg/apis/core/v1/defaults.go, pkg/apis/discovery/v1/defaults.go.
"""

from typing import Any

from kubedns.local.api.kinds import (
    ENDPOINT_SLICES,
    ENDPOINTS,
    NAMESPACES,
    NODES,
    SERVICES,
    Resource,
    empty_node_info,
)

_Object = dict[str, Any]


def apply_defaults(resource: Resource, value: _Object) -> None:
    """Complete an object of a kind."""
    if resource is SERVICES:
        _service(value["spec"])
    elif resource is ENDPOINT_SLICES:
        for port in value["ports"] or ():
            port.setdefault("name", "")
            port.setdefault("protocol", "TCP")
    elif resource is ENDPOINTS:
        for subset in value.get("subsets", ()):
            for port in subset.get("ports", ()):
                port.setdefault("protocol", "TCP")
    elif resource is NAMESPACES:
        _namespace(value)
    elif resource is NODES:
        value["status"]["daemonEndpoints"]["kubeletEndpoint"].setdefault("Port", 0)
        value["status"]["nodeInfo"] = {**empty_node_info(), **value["status"]["nodeInfo"]}


def _service(spec: _Object) -> None:
    spec.setdefault("sessionAffinity", "None")
    if spec["sessionAffinity"] == "ClientIP":
        client_ip = spec.setdefault("sessionAffinityConfig", {}).setdefault("clientIP", {})
        client_ip.setdefault("timeoutSeconds", 10800)
    kind = spec.setdefault("type", "ClusterIP")
    for port in spec.get("ports", ()):
        port.setdefault("protocol", "TCP")
        if port.get("targetPort") in {None, 0, ""} and "port" in port:
            port["targetPort"] = port["port"]
    if kind in {"NodePort", "LoadBalancer"}:
        spec.setdefault("externalTrafficPolicy", "Cluster")
    if kind in {"ClusterIP", "NodePort", "LoadBalancer"}:
        spec.setdefault("internalTrafficPolicy", "Cluster")
    if kind == "LoadBalancer":
        spec.setdefault("allocateLoadBalancerNodePorts", True)


def _namespace(value: _Object) -> None:
    if name := value["metadata"].get("name"):
        value["metadata"].setdefault("labels", {}).setdefault("kubernetes.io/metadata.name", name)
    value["spec"].setdefault("finalizers", ["kubernetes"])
    value["status"].setdefault("phase", "Active")
