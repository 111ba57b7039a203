"""API JSON -> objects: the door where shapes are checked and everything else is left behind; pure.

In: decoded JSON of any shape.
Out: Key, version and objects; what was refused, as texts.
Invariant: nothing that a server sends raises anything but MalformedError; a part that cannot be used
is left out and named, the rest of the object is kept.
Source: the API reference of Service v1 and EndpointSlice discovery.k8s.io/v1.  An endpoint is
kept when its `ready` is true, null or absent; `serving` and `terminating` do not count.
"""

import base64
import binascii
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from socket import AF_INET, AF_INET6, inet_pton
from typing import Any, Final, TypeVar

from kubedns.dns.names import is_dns_1123_label
from kubedns.objects import Endpoint, EndpointSlice, Key, Port, Service

T = TypeVar("T")
Projection = Callable[[Key, dict[str, Any], list[str]], T]
"""From an object's key and JSON to what is kept; reasons for what is not are added to the list."""

SERVICE_NAME_LABEL = "kubernetes.io/service-name"
_PROTOCOLS = {"TCP": "tcp", "UDP": "udp", "SCTP": "sctp"}
_MOST_SHARED = 4096


class MalformedError(Exception):
    """An object has no usable name or namespace; the text says which and why."""


def key_of(body: dict[str, Any]) -> Key:
    """Return namespace and name of an object; raises MalformedError."""
    metadata = _mapping(body.get("metadata"))
    namespace, name = metadata.get("namespace"), metadata.get("name")
    if not isinstance(namespace, str) or not is_dns_1123_label(namespace):
        raise MalformedError(f"namespace {_shown(namespace)} of object {_shown(name)} is not a DNS label")
    if not isinstance(name, str) or not 0 < len(name) <= 253:
        raise MalformedError(f"name {_shown(name)} of an object in namespace {namespace} is not a name")
    return sys.intern(namespace), sys.intern(name)


def version_text(body: dict[str, Any]) -> str:
    """Return the resource version as the API has it, empty when there is none."""
    text = _mapping(body.get("metadata")).get("resourceVersion")
    return text if isinstance(text, str) else ""


def version_number(text: str) -> int:
    """Return a resource version as a number, 0 when it is none."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else 0


def service(key: Key, body: dict[str, Any], refused: list[str]) -> Service:
    """Return a Service."""
    namespace, name = key
    if not is_dns_1123_label(name):
        raise MalformedError(f"name {name!r} of a Service in namespace {namespace} is not a DNS label")
    spec = _mapping(body.get("spec"))
    if spec.get("type") == "ExternalName":
        target = spec.get("externalName")
        if isinstance(target, str) and 0 < len(target) <= 254:
            return Service(namespace, name, external_name=target)
        refused.append(f"externalName {_shown(target)} is not a name")
        return Service(namespace, name)
    ports = _ports(spec.get("ports"), refused)
    texts = spec.get("clusterIPs")
    if not isinstance(texts, list) or not texts:
        texts = [spec.get("clusterIP")]
    if "None" in texts:
        return Service(namespace, name, headless=True, ports=ports)
    given = [text for text in texts if text not in ("", None)]
    return Service(namespace, name, cluster_ips=_addresses(given, "cluster IP", refused), ports=ports)


def endpoint_slice(key: Key, body: dict[str, Any], refused: list[str]) -> EndpointSlice:
    """Return an EndpointSlice with its ready endpoints."""
    labels = _mapping(_mapping(body.get("metadata")).get("labels"))
    owner = labels.get(SERVICE_NAME_LABEL)
    if owner is None:
        owner = ""
    elif not isinstance(owner, str) or not is_dns_1123_label(owner):
        if owner != "":
            refused.append(f"label {SERVICE_NAME_LABEL} {_shown(owner)} is not a DNS label")
        owner = ""
    entries = (
        [] if body.get("addressType") == "FQDN" else _sequence(body.get("endpoints"), "endpoints", refused)
    )
    endpoints = dict.fromkeys(ready for entry in entries if (ready := _endpoint(entry, refused)) is not None)
    ports = _ports(body.get("ports"), refused)
    return EndpointSlice(key[0], key[1], sys.intern(owner), tuple(endpoints), ports)


def config_data(key: Key, body: dict[str, Any], refused: list[str]) -> Mapping[str, bytes]:
    """Return the data of a ConfigMap: `data` in UTF-8, and `binaryData` decoded."""
    data: dict[str, bytes] = {}
    for name, text in _mapping(body.get("data")).items():
        if isinstance(text, str):
            data[name] = text.encode()
        else:
            refused.append(f"data {name!r} is not a string")
    for name, text in _mapping(body.get("binaryData")).items():
        try:
            data[name] = base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError, TypeError):
            refused.append(f"binaryData {name!r} is not base64")
    return data


def _endpoint(entry: Any, refused: list[str]) -> Endpoint | None:
    if not isinstance(entry, dict):
        refused.append(f"endpoint {_shown(entry)} is not an object")
        return None
    conditions = entry.get("conditions")
    ready = conditions.get("ready") if isinstance(conditions, dict) else None
    if ready is not None and ready is not True:
        return None
    addresses = _addresses(_sequence(entry.get("addresses"), "addresses", refused), "address", refused)
    if not addresses:
        return None
    hostname = entry.get("hostname")
    if hostname is None or hostname == "":
        return Endpoint(addresses)
    if not isinstance(hostname, str) or not is_dns_1123_label(hostname):
        refused.append(f"hostname {_shown(hostname)} is not a DNS label")
        return Endpoint(addresses)
    return Endpoint(addresses, hostname)


_IPV6_OCTETS: Final = 16
_IPV4_NUMBERS: Final = 4
_MAPPED: Final = bytes(10) + b"\xff\xff"
"""What an IPv4-mapped IPv6 address begins with (RFC 4291 2.5.5.2): the address behind it is meant."""
_DECIMAL: Final = re.compile(r"[0-9]{1,3}")


def _addresses(texts: Iterable[Any], what: str, refused: list[str]) -> tuple[bytes, ...]:
    packed: dict[bytes, None] = {}
    for text in texts:
        # Ten times as fast as `names.pack_address`, and there may be 100,000 of them.
        try:
            address = inet_pton(AF_INET6 if ":" in text else AF_INET, text)
        except (OSError, ValueError, TypeError):
            decimal = _with_leading_zeros(text)
            if decimal is None:
                refused.append(f"{what} {_shown(text)} is not an IP address")
                continue
            address = decimal
        packed[address.removeprefix(_MAPPED) if len(address) == _IPV6_OCTETS else address] = None
    return tuple(packed)


def _with_leading_zeros(text: Any) -> bytes | None:
    """Return an IPv4 address whose numbers begin with zeros, read as decimal, as API servers do; else None."""
    parts = text.split(".") if isinstance(text, str) else []
    if len(parts) != _IPV4_NUMBERS or not all(_DECIMAL.fullmatch(part) for part in parts):
        return None
    numbers = [int(part) for part in parts]
    return bytes(numbers) if max(numbers) < 256 else None


def _ports(value: Any, refused: list[str]) -> tuple[Port, ...]:
    ports: list[Port] = []
    for entry in _sequence(value, "ports", refused):
        if not isinstance(entry, dict):
            refused.append(f"port {_shown(entry)} is not an object")
            continue
        name, number, protocol = entry.get("name"), entry.get("port"), entry.get("protocol", "TCP")
        if name is None or name == "" or number is None:
            continue
        if not isinstance(name, str) or type(number) is not int or not isinstance(protocol, str | None):
            refused.append(f"port {_shown(entry)} has a name, number or protocol of the wrong type")
            continue
        if not is_dns_1123_label(name):
            refused.append(f"port name {_shown(name)} is not a DNS label")
        elif not 0 < number < 65536:
            refused.append(f"port {name}: {_shown(number)} is not a port number")
        elif (protocol or "TCP") not in _PROTOCOLS:
            refused.append(f"port {name}: protocol {_shown(protocol)} is not TCP, UDP or SCTP")
        else:
            ports.append(_port(name, _PROTOCOLS[protocol or "TCP"], number))
    return _shared(tuple(ports))


_port = lru_cache(maxsize=_MOST_SHARED)(Port)
"""Equal ports are one object: there are few of them in a cluster."""


@lru_cache(maxsize=_MOST_SHARED)
def _shared(ports: tuple[Port, ...]) -> tuple[Port, ...]:
    """Return one tuple for equal ones: most Services have one of a few sets of ports."""
    return ports


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _sequence(value: Any, what: str, refused: list[str]) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list):
        refused.append(f"{what} is not a list")
        return []
    return value


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
