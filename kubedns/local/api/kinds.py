"""The kinds that the local API serves: names, verbs and shape of each.

Source: a recorded discovery document of a real API server; bookmarks as it sends them.
"""

from dataclasses import dataclass
from typing import Final

from kubedns.local.api import shapes
from kubedns.local.api.schema import Json, Struct

DISCOVERY_GROUP: Final = "discovery.k8s.io"
SERVICE_NAME_LABEL: Final = "kubernetes.io/service-name"
_VERBS: Final = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


@dataclass(frozen=True, slots=True, eq=False)
class Resource:
    """One kind of object and how it is served.

    `bookmark` is what an object without content looks like on the wire beside its metadata;
    `create_on_update` says that PUT may create; `has_status` that there is a `/status`.
    """

    group: str
    plural: str
    singular: str
    kind: str
    short_names: tuple[str, ...]
    schema: Struct
    namespaced: bool = True
    verbs: tuple[str, ...] = _VERBS
    categories: tuple[str, ...] = ()
    storage_hash: str = ""
    create_on_update: bool = False
    has_status: bool = False
    warning: str = ""
    bookmark: str = ""

    @property
    def api_version(self) -> str:
        """Group and version as objects name them: `v1`, `discovery.k8s.io/v1`."""
        return f"{self.group}/v1" if self.group else "v1"

    @property
    def qualified(self) -> str:
        """Plural with the group, as error messages name it: `endpointslices.discovery.k8s.io`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def list_kind(self) -> str:
        """Kind of a list of these."""
        return f"{self.kind}List"


NAMESPACES: Final = Resource(
    "",
    "namespaces",
    "namespace",
    "Namespace",
    ("ns",),
    shapes.NAMESPACE,
    namespaced=False,
    verbs=tuple(verb for verb in _VERBS if verb != "deletecollection"),
    storage_hash="Q3oi5N2YM8M=",
    has_status=True,
    bookmark='"spec":{},"status":{}',
)
SERVICES: Final = Resource(
    "",
    "services",
    "service",
    "Service",
    ("svc",),
    shapes.SERVICE,
    categories=("all",),
    storage_hash="0/CO1lhkEBI=",
    create_on_update=True,
    has_status=True,
    bookmark='"spec":{},"status":{"loadBalancer":{}}',
)
ENDPOINTS: Final = Resource(
    "",
    "endpoints",
    "endpoints",
    "Endpoints",
    ("ep",),
    shapes.ENDPOINTS,
    storage_hash="fWeeMqaN/OA=",
    create_on_update=True,
    warning="v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
)
ENDPOINT_SLICES: Final = Resource(
    DISCOVERY_GROUP,
    "endpointslices",
    "endpointslice",
    "EndpointSlice",
    (),
    shapes.ENDPOINT_SLICE,
    bookmark='"addressType":"","endpoints":null,"ports":null',
)
CONFIG_MAPS: Final = Resource(
    "", "configmaps", "configmap", "ConfigMap", ("cm",), shapes.CONFIG_MAP, storage_hash="qFsyl6wFWjQ="
)
_EMPTY_NODE_STATUS: Final = (
    '"status":{"daemonEndpoints":{"kubeletEndpoint":{"Port":0}},"nodeInfo":{'
    + ",".join(f'"{name}":""' for name in shapes.NODE_INFO)
    + "}}"
)
NODES: Final = Resource(
    "",
    "nodes",
    "node",
    "Node",
    ("no",),
    shapes.NODE,
    namespaced=False,
    storage_hash="XwShjMxG9Fs=",
    has_status=True,
    bookmark=f'"spec":{{}},{_EMPTY_NODE_STATUS}',
)
RESOURCES: Final = (CONFIG_MAPS, ENDPOINTS, NAMESPACES, NODES, SERVICES, ENDPOINT_SLICES)

_BY_PLURAL: Final = {(resource.group, resource.plural): resource for resource in RESOURCES}
_BY_KIND: Final = {(resource.api_version, resource.kind): resource for resource in RESOURCES}


def resource_at(group: str, plural: str) -> Resource | None:
    """Return the resource at a path, or None when it is not served."""
    return _BY_PLURAL.get((group, plural))


def resource_of(value: Json) -> Resource | None:
    """Return the resource whose apiVersion and kind an object names, or None."""
    return _BY_KIND.get((value.get("apiVersion"), value.get("kind")))


def empty_node_info() -> dict[str, str]:
    """Return the node information of a node that never reported."""
    return dict.fromkeys(shapes.NODE_INFO, "")
