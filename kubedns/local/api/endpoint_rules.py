"""Which EndpointSlices and Endpoints a real server refuses.

Source: kubernetes pkg/apis/discovery/validation, pkg/apis/core/validation.
"""

from collections.abc import Iterator
from typing import Any, Final

from kubedns.local.api.errors import Cause, duplicate, invalid_value, not_supported, required
from kubedns.local.api.rules import (
    LABEL_1123,
    PROTOCOLS,
    SUBDOMAIN,
    address_causes,
    name_causes,
    port_causes,
)

_Object = dict[str, Any]
_ADDRESS_TYPES: Final = ("FQDN", "IPv4", "IPv6")
_MOST_ENDPOINTS: Final = 1000


def endpoint_slice_causes(value: _Object, old: _Object | None) -> Iterator[Cause]:
    """Yield what is wrong with an EndpointSlice; `old` is what it replaces."""
    kind = value.get("addressType", "")
    if not kind:
        yield required("addressType")
    elif kind not in _ADDRESS_TYPES:
        yield not_supported("addressType", kind, _ADDRESS_TYPES)
    elif old is not None and old["addressType"] != kind:
        yield invalid_value("addressType", kind, "field is immutable")
    endpoints = value["endpoints"] or []
    if len(endpoints) > _MOST_ENDPOINTS:
        detail = f"must have at most {_MOST_ENDPOINTS} items"
        yield Cause("FieldValueTooMany", f"Too many: {len(endpoints)}", "endpoints", detail)
    for index, endpoint in enumerate(endpoints):
        yield from _endpoint(f"endpoints[{index}]", endpoint, kind)
    yield from _slice_ports(value["ports"] or [])


def _endpoint(field: str, endpoint: _Object, kind: str) -> Iterator[Cause]:
    if not endpoint["addresses"]:
        yield required(f"{field}.addresses", "must contain at least 1 address")
    for index, address in enumerate(endpoint["addresses"] or ()):
        yield from _endpoint_address(f"{field}.addresses[{index}]", address, kind)
    if (hostname := endpoint.get("hostname")) is not None:
        yield from name_causes(f"{field}.hostname", hostname, LABEL_1123)


def _slice_ports(ports: list[_Object]) -> Iterator[Cause]:
    names: set[str] = set()
    for index, port in enumerate(ports):
        if port["name"]:
            yield from name_causes(f"ports[{index}].name", port["name"], LABEL_1123)
        if port["name"] in names:
            yield duplicate("ports", port["name"])
        if port["protocol"] not in PROTOCOLS:
            yield not_supported(f"ports[{index}].protocol", port["protocol"], PROTOCOLS)
        names.add(port["name"])


def _endpoint_address(field: str, address: str, kind: str) -> Iterator[Cause]:
    if kind == "FQDN":
        yield from name_causes(field, address.removesuffix("."), SUBDOMAIN)
    elif kind in {"IPv4", "IPv6"}:
        yield from address_causes(field, address, 4 if kind == "IPv4" else 6)


def endpoints_causes(value: _Object) -> Iterator[Cause]:
    """Yield what is wrong with an Endpoints object."""
    for index, subset in enumerate(value.get("subsets", [])):
        field = f"subsets[{index}]"
        if not subset.get("addresses") and not subset.get("notReadyAddresses"):
            yield required(field, "must specify `addresses` or `notReadyAddresses`")
        for name in ("addresses", "notReadyAddresses"):
            for at, address in enumerate(subset.get(name, [])):
                yield from address_causes(f"{field}.{name}[{at}].ip", address.get("ip", ""))
        for at, port in enumerate(subset.get("ports", [])):
            yield from port_causes(f"{field}.ports[{at}].port", port.get("port", 0))
