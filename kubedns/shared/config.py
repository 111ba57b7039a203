"""The configuration keys: `federations`, `stubDomains`, `upstreamNameservers` and `hosts`.

In: the keys of a directory or a ConfigMap, each a value of bytes.  Out: a Config in canonical
form: two Configs that are equal have the same effect.  A value that is wrong anywhere refuses the
update as a whole, with every fault named.  Source: the original's JSON values; `hosts` is new.

Differs: the original reads a value with Go's JSON decoder, which takes duplicate keys and JSON
of foreign types in places, and lets through names and ports that dnsmasq then dies of.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from kubedns.shared.hosts import parse_hosts
from kubedns.shared.servers import ServerAddress, parse_dns_name, parse_server, quoted

LARGEST_VALUE: Final = 1 << 20
"""Octets of the largest value, as the API server limits a ConfigMap."""

MOST_UPSTREAMS: Final = 3
_MOST_FAULTS = 10
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_DNS_1123_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


@dataclass(frozen=True)
class Config:
    """What the configuration keys say; all empty without any key.

    `federations`: name -> domain.  `stub_domains`: domain -> its servers in order, at least one.
    `upstream_nameservers`: in order, addresses only.  `hosts`: lines of `address name...`, each
    ended by a newline.  Domains are lower case without final dot.
    """

    federations: Mapping[str, str] = field(default_factory=dict)
    stub_domains: Mapping[str, tuple[ServerAddress, ...]] = field(default_factory=dict)
    upstream_nameservers: tuple[ServerAddress, ...] = ()
    hosts: str = ""


class ConfigError(Exception):
    """One fault: `key` is the configuration key, `reason` what is wrong with its value."""

    def __init__(self, key: str, reason: str) -> None:
        super().__init__(f"{key}: {reason}")
        self.key = key
        self.reason = reason


class InvalidConfigError(Exception):
    """An update is refused; `errors` are its faults, all of them named in the text."""

    def __init__(self, errors: Iterable[ConfigError]) -> None:
        self.errors = tuple(errors)
        super().__init__("; ".join(map(str, self.errors)))


def parse_config(data: Mapping[str, bytes], domain: str) -> tuple[Config, tuple[str, ...]]:
    """Return the configuration that the keys of `data` make, and warnings for a person.

    `domain` is the cluster domain, in any case, with or without final dot; the empty string
    where it is not known.  Raises InvalidConfigError when any value is wrong.
    """
    apex = domain.lower().removesuffix(".")
    parsed: dict[str, Any] = {}
    errors: list[ConfigError] = []
    warnings: list[str] = []
    for key, parse in _PARSERS.items():
        if key not in data:
            continue
        faults: list[str] = []
        try:
            parsed[key] = parse(_text(data[key]), apex, faults, warnings)
        except ValueError as error:
            faults.append(str(error))
        errors += [ConfigError(key, fault) for fault in faults[:_MOST_FAULTS]]
        if len(faults) > _MOST_FAULTS:
            errors.append(ConfigError(key, f"and {len(faults) - _MOST_FAULTS} more faults"))
    if errors:
        raise InvalidConfigError(errors)
    if unknown := sorted(data.keys() - _PARSERS.keys()):
        names = ", ".join(map(_unknown, unknown[:_MOST_FAULTS]))
        more = f" and {len(unknown) - _MOST_FAULTS} more" if len(unknown) > _MOST_FAULTS else ""
        warnings.append(f"unknown keys, which have no effect: {names}{more}")
    config = Config(
        federations=parsed.get("federations", {}),
        stub_domains=parsed.get("stubDomains", {}),
        upstream_nameservers=parsed.get("upstreamNameservers", ()),
        hosts=parsed.get("hosts", ""),
    )
    return config, tuple(warnings)


def _unknown(name: str) -> str:
    meant = next((key for key in _PARSERS if key.lower() == name.lower().removesuffix(".json")), None)
    return f"{quoted(name)} (did you mean {meant}?)" if meant else quoted(name)


def parse_federation(name: str, federation_domain: str) -> tuple[str, str]:
    """Return name and domain of a federation in canonical form, or raise ValueError with the reason."""
    label = name.lower()
    if not _DNS_1123_LABEL.fullmatch(label):
        raise ValueError(f"federation name {quoted(name)} is not one DNS-1123 label")
    try:
        return label, parse_dns_name(federation_domain)
    except ValueError as error:
        raise ValueError(f"domain of federation {quoted(name)}: {error}") from error


def _text(value: bytes) -> str:
    if len(value) > LARGEST_VALUE:
        raise ValueError("is larger than 1 MiB")
    if value.startswith(_BYTE_ORDER_MARK):
        raise ValueError("begins with a byte order mark; save it as UTF-8 without one")
    try:
        return value.decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"is not UTF-8 (octet {error.start})") from error


def _json(text: str) -> Any:
    """Return the JSON value, None where it stands for an absent key; raises ValueError."""
    if not text.strip():
        return None
    try:
        value = json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise ValueError(f"is not JSON: {error}") from error
    except RecursionError as error:
        raise ValueError("is nested too deeply") from error
    return None if value in (None, [], {}) else value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"has the name {quoted(twice)} twice")
    return value


def _no_constant(text: str) -> Any:
    raise ValueError(f"is not JSON: {text} is no JSON number")


def _object(value: Any, form: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"must be a JSON object {form}, not {_json_type(value)}")
    return value


def _json_type(value: Any) -> str:
    names = {bool: "a boolean", str: "a string", list: "an array", dict: "an object", type(None): "null"}
    return names.get(type(value), "a number")


def _federations(text: str, apex: str, faults: list[str], warnings: list[str]) -> dict[str, str]:
    value = _json(text)
    federations: dict[str, str] = {}
    for name, target in _object(value, '{"name": "domain"}').items() if value is not None else ():
        if not isinstance(target, str):
            faults.append(f"domain of federation {quoted(name)} must be a string, not {_json_type(target)}")
            continue
        try:
            label, federation_domain = parse_federation(name, target)
        except ValueError as error:
            faults.append(str(error))
            continue
        if label in federations:
            faults.append(f"federation {quoted(label)} is named twice, in different case")
        federations[label] = federation_domain
    return federations


def _stub_domains(
    text: str, apex: str, faults: list[str], warnings: list[str]
) -> dict[str, tuple[ServerAddress, ...]]:
    value = _json(text)
    stubs: dict[str, tuple[ServerAddress, ...]] = {}
    for name, servers in _object(value, '{"domain": ["server"]}').items() if value is not None else ():
        try:
            stub = _stub_name(name, apex)
        except ValueError as error:
            faults.append(f"stub domain {error}")
            continue
        if stub in stubs:
            faults.append(f"stub domain {quoted(stub)} is named twice, in different spelling")
        stubs[stub] = _servers(servers, f"stub domain {quoted(name)}: ", faults, hostnames=True)
        if servers == []:
            warnings.append(f"stubDomains: stub domain {quoted(name)} has no servers and no effect")
    return {stub: servers for stub, servers in stubs.items() if servers}


def _stub_name(name: str, apex: str) -> str:
    stub = parse_dns_name(name)
    if apex and f".{apex}".endswith(f".{stub}"):
        relation = "is the cluster domain" if stub == apex else f"is a parent of the cluster domain {apex}"
        raise ValueError(f"{quoted(name)} {relation}, which is answered by kube-dns itself")
    if apex and f".{stub}".endswith((f".svc.{apex}", f".pod.{apex}")):
        raise ValueError(f"{quoted(name)} would take names of the cluster away from kube-dns")
    return stub


def _upstreams(text: str, apex: str, faults: list[str], warnings: list[str]) -> tuple[ServerAddress, ...]:
    value = _json(text)
    servers = _servers(value, "", faults, hostnames=False) if value is not None else ()
    if len(servers) > MOST_UPSTREAMS:
        raise ValueError(f"names {len(servers)} servers; at most {MOST_UPSTREAMS} are allowed")
    return servers


def _servers(value: Any, where: str, faults: list[str], *, hostnames: bool) -> tuple[ServerAddress, ...]:
    """Return the servers of a JSON array, each once, in order; faults are added to the list."""
    if not isinstance(value, list):
        faults.append(f'{where}must be a JSON array ["server"], not {_json_type(value)}')
        return ()
    servers: dict[ServerAddress, None] = {}
    for text in value:
        if not isinstance(text, str):
            faults.append(f"{where}a server must be a string, not {_json_type(text)}")
            continue
        try:
            servers[parse_server(text, hostnames=hostnames)] = None
        except ValueError as error:
            faults.append(f"{where}{error}")
    return tuple(servers)


def _hosts(text: str, apex: str, faults: list[str], warnings: list[str]) -> str:
    return parse_hosts(text, apex, faults)


_PARSERS: Final[Mapping[str, Callable[[str, str, list[str], list[str]], Any]]] = {
    "federations": _federations,
    "stubDomains": _stub_domains,
    "upstreamNameservers": _upstreams,
    "hosts": _hosts,
}
"""Key -> parser of (text, cluster domain, faults to add to, warnings to add to)."""
