"""Which Services a real server refuses.

Differs: the host name of an ExternalName may be in upper case and may end with a dot.

Source: kubernetes pkg/apis/core/validation.
"""

from collections.abc import Iterator
from typing import Any, Final

from kubedns.local.api.errors import Cause, duplicate, forbidden_field, invalid_value, not_supported, required
from kubedns.local.api.rules import (
    LABEL_1123,
    PROTOCOLS,
    SUBDOMAIN,
    address_causes,
    name_causes,
    port_causes,
)

_Object = dict[str, Any]
_TYPES: Final = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_POLICIES: Final = ("PreferDualStack", "RequireDualStack", "SingleStack")


def service_causes(spec: _Object) -> Iterator[Cause]:
    """Yield what is wrong with the spec of a Service that has its static defaults."""
    kind, ports = spec["type"], spec.get("ports", [])
    if kind not in _TYPES:
        yield not_supported("spec.type", kind, _TYPES)
    headless = spec.get("clusterIP") == "None"
    if not ports and not headless and kind != "ExternalName":
        yield required("spec.ports")
    for index, port in enumerate(ports):
        yield from _service_port(f"spec.ports[{index}]", port, kind, named=len(ports) > 1)
    yield from _doubles(ports)
    if kind == "ExternalName":
        yield from _external_name(spec)
    else:
        yield from _addresses(spec, headless=headless)
    if (
        kind in {"ClusterIP", "ExternalName"}
        and "externalTrafficPolicy" in spec
        and not spec.get("externalIPs")
    ):
        yield invalid_value(
            "spec.externalTrafficPolicy",
            spec["externalTrafficPolicy"],
            "may only be set for externally-accessible services",
        )
    if spec["sessionAffinity"] not in {"ClientIP", "None"}:
        yield not_supported("spec.sessionAffinity", spec["sessionAffinity"], ("ClientIP", "None"))


def _service_port(field: str, port: _Object, kind: str, *, named: bool) -> Iterator[Cause]:
    if name := port.get("name"):
        yield from name_causes(f"{field}.name", name, LABEL_1123)
    elif named:
        yield required(f"{field}.name")
    yield from port_causes(f"{field}.port", port.get("port", 0))
    target = port.get("targetPort")
    if isinstance(target, int) and target != port.get("port"):
        yield from port_causes(f"{field}.targetPort", target)
    if port["protocol"] not in PROTOCOLS:
        yield not_supported(f"{field}.protocol", port["protocol"], PROTOCOLS)
    if port.get("nodePort") and kind not in {"NodePort", "LoadBalancer"}:
        yield forbidden_field(f"{field}.nodePort", f"may not be used when `type` is '{kind}'")


def _doubles(ports: list[_Object]) -> Iterator[Cause]:
    names: set[str] = set()
    numbers: set[tuple[Any, Any]] = set()
    for index, port in enumerate(ports):
        name, number = port.get("name"), (port.get("port"), port["protocol"])
        if name and name in names:
            yield duplicate(f"spec.ports[{index}].name", name)
        if number in numbers:
            yield Cause(
                "FieldValueDuplicate",
                f'Duplicate value: {{"port":{number[0]},"protocol":"{number[1]}"}}',
                f"spec.ports[{index}]",
            )
        names.add(name or "")
        numbers.add(number)


def _external_name(spec: _Object) -> Iterator[Cause]:
    name = spec.get("externalName", "").lower().removesuffix(".")
    if name:
        yield from name_causes("spec.externalName", name, SUBDOMAIN)
    else:
        yield required("spec.externalName")
    if spec.get("clusterIP") or spec.get("clusterIPs"):
        given = spec.get("clusterIPs") or [spec["clusterIP"]]
        yield forbidden_field(
            "spec.clusterIPs", f"may not be set for ExternalName services: {', '.join(given)}"
        )
    for name in ("ipFamilies", "ipFamilyPolicy"):
        if spec.get(name):
            yield forbidden_field(f"spec.{name}", "may not be set for ExternalName services")


def _addresses(spec: _Object, *, headless: bool) -> Iterator[Cause]:
    several, first = spec.get("clusterIPs", []), spec.get("clusterIP")
    if headless and spec["type"] != "ClusterIP":
        detail = f"may not be set to 'None' for {spec['type']} services"
        yield invalid_value("spec.clusterIPs[0]", "None", detail)
    if several and not first:
        yield invalid_value("spec.clusterIPs", several, "must be empty when `clusterIP` is not specified")
    elif several and several[0] != first:
        yield invalid_value("spec.clusterIPs", several, "first value must match `clusterIP`")
    for index, address in enumerate(several or ([first] if first else [])):
        if address != "None":
            yield from address_causes(f"spec.clusterIPs[{index}]", address)
    if len(several) > 2:
        yield invalid_value("spec.clusterIPs", several, "may only hold up to 2 values")
    yield from _families(spec)


def _families(spec: _Object) -> Iterator[Cause]:
    policy, families = spec.get("ipFamilyPolicy"), spec.get("ipFamilies", [])
    if policy is not None and policy not in _POLICIES:
        yield not_supported("spec.ipFamilyPolicy", policy, _POLICIES)
    for index, family in enumerate(families):
        if family not in {"IPv4", "IPv6"}:
            yield not_supported(f"spec.ipFamilies[{index}]", family, ("IPv4", "IPv6"))
        elif family in families[:index]:
            yield duplicate(f"spec.ipFamilies[{index}]", family)


def immutable_address(spec: _Object, old: _Object) -> list[Cause]:
    """Return the cause of a cluster IP that would change, which only a new Service can."""
    before, after = old.get("clusterIPs", []), spec.get("clusterIPs", [])
    if "ExternalName" in {spec["type"], old.get("type")} or not before or before[:1] == after[:1]:
        return []
    return [invalid_value("spec.clusterIPs[0]", after, "may not change once set")]
