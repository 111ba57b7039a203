"""Which collections of the API are read, and what one request for them says.

In: nothing but constants.
Out: paths, query parameters, and the words an error message names a request by.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Resource:
    """A kind of object in the API: `group` is empty for the core group."""

    group: str
    version: str
    plural: str
    kind: str

    def path(self, namespace: str = "") -> str:
        """Return the path of the collection; an empty namespace means all of them."""
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        return f"{root}/namespaces/{namespace}/{self.plural}" if namespace else f"{root}/{self.plural}"


SERVICES = Resource("", "v1", "services", "Service")
ENDPOINT_SLICES = Resource("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice")
CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
NODES = Resource("", "v1", "nodes", "Node")


@dataclass(frozen=True, slots=True)
class Selection:
    """What one list-watch is about: a collection, a namespace (empty: all) and selectors.

    `name` is what logs and metrics call it.
    """

    name: str
    resource: Resource
    namespace: str = ""
    labels: str = ""
    fields: str = ""

    def request(self, verb: str, params: Mapping[str, str], answer_within: float) -> "Request":
        """Return a request of this selection; `verb` is `list` or `watch`, as RBAC has it."""
        selectors = {"labelSelector": self.labels, "fieldSelector": self.fields}
        given = {key: text for key, text in selectors.items() if text}
        return Request(verb, self.resource, {**given, **params}, self.namespace, answer_within)


@dataclass(frozen=True, slots=True)
class Request:
    """A GET of a collection; the head of the answer must come within `answer_within` seconds."""

    verb: str
    resource: Resource
    params: Mapping[str, str] = field(default_factory=dict)
    namespace: str = ""
    answer_within: float = 60.0

    @property
    def path(self) -> str:
        """The path of the collection."""
        return self.resource.path(self.namespace)

    def __str__(self) -> str:
        group = f" in API group {self.resource.group}" if self.resource.group else ""
        scope = f" in namespace {self.namespace}" if self.namespace else ""
        return f"{self.verb} {self.resource.plural}{group}{scope}"
