"""Which objects a real server refuses, and with which words.

In: an object with static defaults and, for an update, its previous state.  Out: the causes of
a 422, none when it can stand.

Source: kubernetes pkg/apis/core/validation; apimachinery pkg/api/validation.
"""

from collections.abc import Iterator
from typing import Any, Final

from kubedns.local.api.endpoint_rules import endpoint_slice_causes, endpoints_causes
from kubedns.local.api.errors import Cause, forbidden_field, required
from kubedns.local.api.kinds import CONFIG_MAPS, ENDPOINT_SLICES, ENDPOINTS, NAMESPACES, SERVICES, Resource
from kubedns.local.api.rules import (
    CONFIG_KEY,
    LABEL_1035,
    LABEL_1123,
    LABEL_VALUE,
    PATH_SEGMENT,
    SUBDOMAIN,
    NameRule,
    name_causes,
)
from kubedns.local.api.service_rules import service_causes

_Object = dict[str, Any]
_NAME_RULES: Final[dict[Resource, NameRule]] = {
    SERVICES: LABEL_1035,
    NAMESPACES: LABEL_1123,
    ENDPOINTS: PATH_SEGMENT,
}


def validate(resource: Resource, value: _Object, old: _Object | None = None) -> list[Cause]:
    """Return why an object can't be stored; `old` is what it replaces."""
    causes = list(_metadata(resource, value["metadata"]))
    if resource is SERVICES:
        causes += service_causes(value["spec"])
    elif resource is ENDPOINT_SLICES:
        causes += endpoint_slice_causes(value, old)
    elif resource is ENDPOINTS:
        causes += endpoints_causes(value)
    elif resource is CONFIG_MAPS:
        causes += _config_map(value, old)
    return causes


def _metadata(resource: Resource, metadata: _Object) -> Iterator[Cause]:
    if name := metadata.get("name", ""):
        yield from name_causes("metadata.name", name, _NAME_RULES.get(resource, SUBDOMAIN))
    else:
        yield required("metadata.name", "name or generateName is required")
    for label in metadata.get("labels", {}).values():
        yield from name_causes("metadata.labels", label, LABEL_VALUE)


def _config_map(value: _Object, old: _Object | None) -> Iterator[Cause]:
    for kind in ("data", "binaryData"):
        for key in value.get(kind, {}):
            yield from name_causes(f"{kind}[{key}]", key, CONFIG_KEY)
    if old is not None and old.get("immutable"):
        if not value.get("immutable"):
            yield forbidden_field("immutable", "field is immutable when `immutable` is set")
        if any(value.get(kind) != old.get(kind) for kind in ("data", "binaryData")):
            yield forbidden_field("data", "field is immutable when `immutable` is set")
