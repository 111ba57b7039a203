"""What the API says about itself, so that kubectl finds its way.

Out: the documents at /api, /apis and /version.  Kinds that are not served are not listed.

Source: recorded discovery and version documents.
"""

from typing import Any, Final

from kubedns.local.api.kinds import DISCOVERY_GROUP, RESOURCES, Resource

_GROUP_VERSION: Final = {"groupVersion": f"{DISCOVERY_GROUP}/v1", "version": "v1"}
_GROUP: Final = {
    "name": DISCOVERY_GROUP,
    "versions": [_GROUP_VERSION],
    "preferredVersion": _GROUP_VERSION,
}
OPENAPI_V2_TYPE: Final = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
"""An empty body of this type satisfies kubectl, which then validates nothing by itself."""

VERSION: Final[dict[str, Any]] = {
    "major": "1",
    "minor": "36",
    "emulationMajor": "1",
    "emulationMinor": "36",
    "minCompatibilityMajor": "1",
    "minCompatibilityMinor": "35",
    "gitVersion": "v1.36.0+local",
    "gitCommit": "",
    "gitTreeState": "",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "",
    "compiler": "",
    "platform": "",
}


def api_versions(server: str) -> dict[str, Any]:
    """Return the document at /api; `server` is this server's host and port."""
    address = {"clientCIDR": "0.0.0.0/0", "serverAddress": server}
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": [address]}


def api_groups() -> dict[str, Any]:
    """Return the document at /apis."""
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_GROUP]}


def api_group() -> dict[str, Any]:
    """Return the document at /apis/discovery.k8s.io."""
    return {"kind": "APIGroup", "apiVersion": "v1", **_GROUP}


def api_resources(group: str) -> dict[str, Any]:
    """Return the document at /api/v1 or /apis/discovery.k8s.io/v1."""
    document: dict[str, Any] = {"kind": "APIResourceList"}
    if group:
        document["apiVersion"] = "v1"
    document["groupVersion"] = f"{group}/v1" if group else "v1"
    served = [resource for resource in RESOURCES if resource.group == group]
    document["resources"] = [entry for resource in served for entry in _entries(resource)]
    return document


def _entries(resource: Resource) -> list[dict[str, Any]]:
    entry: dict[str, Any] = {
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": list(resource.verbs),
    }
    if resource.short_names:
        entry["shortNames"] = list(resource.short_names)
    if resource.categories:
        entry["categories"] = list(resource.categories)
    if resource.storage_hash:
        entry["storageVersionHash"] = resource.storage_hash
    if not resource.has_status:
        return [entry]
    status = {
        "name": f"{resource.plural}/status",
        "singularName": "",
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": ["get", "patch", "update"],
    }
    return [entry, status]
