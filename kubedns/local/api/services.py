"""What the server decides about a Service: cluster IPs, IP families and node ports.

In: a Service with static defaults, its previous state, what other Services hold.  Out: the
Service completed in place.  Nothing is recorded here, so that a dry run leaves no trace.

Source: kubernetes pkg/registry/core/service/storage/alloc.go, pkg/registry/core/service/strategy.go.
"""

from typing import Any, Final

from kubedns.local.api.allocation import IPV4, IPV6, Allocations, family_of
from kubedns.local.api.errors import Cause, invalid_value

_Spec = dict[str, Any]
HEADLESS: Final = "None"
_SINGLE: Final = "SingleStack"
_EXTERNAL: Final = frozenset({"NodePort", "LoadBalancer"})


def is_headless(spec: _Spec) -> bool:
    """Whether a Service has said that it wants no cluster IP."""
    return bool(spec.get("clusterIP") == HEADLESS)


def addresses_of(spec: _Spec) -> list[str]:
    """Return the cluster IPs that a Service holds."""
    return [address for address in spec.get("clusterIPs", []) if address != HEADLESS]


def node_ports_of(spec: _Spec) -> list[int]:
    """Return the node ports that a Service holds."""
    return [port["nodePort"] for port in spec.get("ports", ()) if port.get("nodePort")]


def inherit(spec: _Spec, old: _Spec) -> None:
    """Fill what an update left out from the previous state, and drop what its new type forbids.

    Fields that the old type brought and that the user did not touch go away with it.
    """
    if spec["type"] not in _EXTERNAL:
        _drop_unchanged(spec, old, ("externalTrafficPolicy", "allocateLoadBalancerNodePorts"))
        if node_ports_of(spec) == node_ports_of(old):
            for port in spec.get("ports", ()):
                port.pop("nodePort", None)
    if spec["type"] == "ExternalName":
        addresses = ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy")
        _drop_unchanged(spec, old, addresses)
        return
    if old["type"] != "ExternalName":
        _inherit_addresses(spec, old)
    if spec["type"] in _EXTERNAL and old["type"] in _EXTERNAL:
        _inherit_node_ports(spec, old)


def _drop_unchanged(spec: _Spec, old: _Spec, names: tuple[str, ...]) -> None:
    for name in names:
        if spec.get(name) == old.get(name):
            spec.pop(name, None)


def _inherit_node_ports(spec: _Spec, old: _Spec) -> None:
    known = {(port["port"], port["protocol"]): port.get("nodePort") for port in old.get("ports", ())}
    taken = set(node_ports_of(spec))
    for port in spec.get("ports", ()):
        number = known.get((port.get("port"), port["protocol"]))
        if number and not port.get("nodePort") and number not in taken:
            port["nodePort"] = number


def _inherit_addresses(spec: _Spec, old: _Spec) -> None:
    same_list = spec.get("clusterIPs") == old.get("clusterIPs")
    if spec.get("clusterIP") != old.get("clusterIP") and same_list:
        spec.pop("clusterIPs", None)
    if not spec.get("clusterIP") and not spec.get("clusterIPs"):
        spec["clusterIP"], spec["clusterIPs"] = old.get("clusterIP"), list(old.get("clusterIPs", ()))
    elif spec.get("clusterIP") == old.get("clusterIP") and not spec.get("clusterIPs"):
        spec["clusterIPs"] = list(old.get("clusterIPs", ()))
    for name in ("ipFamilies", "ipFamilyPolicy"):
        if not spec.get(name) and name in old:
            spec[name] = old[name]
    if spec.get("ipFamilyPolicy") == _SINGLE and old.get("ipFamilyPolicy") != _SINGLE:
        for name in ("clusterIPs", "ipFamilies"):
            if spec.get(name) == old.get(name):
                spec[name] = spec[name][:1]


def complete(spec: _Spec, allocations: Allocations, owner: str) -> list[Cause]:
    """Choose families, cluster IPs and node ports; return what makes that impossible.

    The spec has passed validation.  `owner` is the Service's key: what it holds already is
    not taken.  Raises PoolFullError.
    """
    if spec["type"] == "ExternalName":
        return []
    if spec.get("clusterIP") and not spec.get("clusterIPs"):
        spec["clusterIPs"] = [spec["clusterIP"]]
    causes = _families(spec) or _cluster_ips(spec, allocations, owner)
    if not causes and spec["type"] in _EXTERNAL:
        causes = _node_ports(spec, allocations, owner)
    return causes


def _families(spec: _Spec) -> list[Cause]:
    headless_without_selector = is_headless(spec) and not spec.get("selector")
    policy = spec.setdefault("ipFamilyPolicy", "RequireDualStack" if headless_without_selector else _SINGLE)
    given = addresses_of(spec)
    families = spec.setdefault("ipFamilies", [])
    if policy == _SINGLE and (len(given) > 1 or len(families) > 1):
        several = "clusterIPs" if len(given) > 1 else "ipFamilies"
        detail = f"must be RequireDualStack or PreferDualStack when multiple {several} are specified"
        return [invalid_value("spec.ipFamilyPolicy", policy, detail)]
    for index, address in enumerate(given):
        family = family_of(address)
        if index == len(families):
            families.append(family)
        elif families[index] != family:
            detail = f"expected an {families[index]} value as indicated by `ipFamilies[{index}]`"
            return [invalid_value(f"spec.clusterIPs[{index}]", address, detail)]
    if not families:
        families.append(IPV4)
    if policy != _SINGLE and len(families) == 1:
        families.append(IPV6 if families[0] == IPV4 else IPV4)
    return []


def _cluster_ips(spec: _Spec, allocations: Allocations, owner: str) -> list[Cause]:
    if is_headless(spec):
        return []
    addresses = spec.setdefault("clusterIPs", [])
    for address in addresses:
        if allocations.ip_taken(address, owner):
            detail = f"failed to allocate IP {address}: provided IP is already allocated"
            return [invalid_value("spec.clusterIPs", addresses, detail)]
    addresses += [allocations.pick_ip(family) for family in spec["ipFamilies"][len(addresses) :]]
    spec["clusterIP"] = addresses[0]
    return []


def _node_ports(spec: _Spec, allocations: Allocations, owner: str) -> list[Cause]:
    pool = allocations.node_ports
    for index, port in enumerate(spec.get("ports", ())):
        number = port.get("nodePort")
        field = f"spec.ports[{index}].nodePort"
        if number and number not in pool:
            detail = "provided port is not in the valid range. The range of valid ports is 30000-32767"
            return [invalid_value(field, number, detail)]
        if number and pool.held_by_other(number, owner):
            return [invalid_value(field, number, "provided port is already allocated")]
    if spec["type"] == "NodePort" or spec.get("allocateLoadBalancerNodePorts"):
        for port in spec.get("ports", ()):
            if not port.get("nodePort"):
                port["nodePort"] = pool.pick(node_ports_of(spec))
    return []
