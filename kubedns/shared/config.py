"""The configuration keys: `federations`, `stubDomains`, `upstreamNameservers` and `hosts`.

In: the keys of a directory or a ConfigMap, each a value of bytes.  Out: a Config in canonical
form: two Configs that are equal have the same effect.  A value that is wrong anywhere refuses the
update as a whole, with every fault named.  Source: the original's values: JSON, and for
`federations` the form of its flag as well; `hosts` is new.

Differs: the original reads a value with Go's JSON decoder, which takes duplicate keys and JSON
of foreign types in places, and lets through names and ports that dnsmasq then dies of; it takes
stub domains inside the cluster domain, whose answers kube-dns does not accept from anybody.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from kubedns.shared.hosts import parse_hosts
from kubedns.shared.keyforms import Form, type_name
from kubedns.shared.servers import ServerAddress, doubt_about_port, parse_dns_name, parse_server, quoted

LARGEST_VALUE: Final = 1 << 20
"""Octets of the largest value, as the API server limits a ConfigMap."""

MOST_UPSTREAMS: Final = 3
_MOST_FAULTS = 10
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_UPSTREAMS: Final = Form(list, '["192.0.2.53", "[2001:db8::53]:5353"]')
_STUBS: Final = Form(dict, '{"corp.example": ["192.0.2.53"]}')
_FEDERATIONS: Final = Form(dict, '{"name": "domain.example"}, or name=domain.example,name=domain.example')
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

    def as_keys(self) -> dict[str, Any]:
        """Return the keys that say the same, in their JSON form, without the absent ones."""
        keys = {
            "federations": dict(self.federations),
            "stubDomains": {domain: list(map(str, servers)) for domain, servers in self.stub_domains.items()},
            "upstreamNameservers": list(map(str, self.upstream_nameservers)),
            "hosts": self.hosts,
        }
        return {key: value for key, value in keys.items() if value}


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


@dataclass(slots=True)
class _Findings:
    """What is wrong with the value of one key: `faults` refuse it, `idle` has no effect, `doubts` may be meant."""

    faults: list[str] = field(default_factory=list)
    idle: list[str] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)


def parse_config(
    data: Mapping[str, bytes], domain: str, *, strict: bool = False
) -> tuple[Config, tuple[str, ...]]:
    """Return the configuration that the keys of `data` make, and warnings for a person.

    `domain` is the cluster domain, in any case, with or without final dot; the empty string
    where it is not known.  `strict` refuses what has no effect as well, instead of warning of it.
    Raises InvalidConfigError when any value is wrong.
    """
    apex = domain.lower().removesuffix(".")
    parsed: dict[str, Any] = {}
    errors: list[ConfigError] = []
    warnings: list[str] = []
    for key, parse in _PARSERS.items():
        if key not in data:
            continue
        found = _Findings()
        try:
            parsed[key] = parse(_text(data[key]), apex, found)
        except ValueError as error:
            found.faults.append(str(error))
        errors += [
            ConfigError(key, fault) for fault in _few([*found.faults, *(found.idle if strict else ())])
        ]
        warnings += [f"{key}: {text}" for text in _few([*found.idle, *found.doubts])]
    unknown = sorted(data.keys() - _PARSERS.keys())
    if strict:
        errors += [ConfigError(name, f"unknown key{_meant(name)}") for name in unknown]
    if errors:
        raise InvalidConfigError(errors)
    if unknown:
        names = ", ".join(_few([quoted(name) + _meant(name) for name in unknown]))
        warnings.append(f"unknown keys, which have no effect: {names}")
    config = Config(
        federations=parsed.get("federations") or {},
        stub_domains=parsed.get("stubDomains") or {},
        upstream_nameservers=parsed.get("upstreamNameservers") or (),
        hosts=parsed.get("hosts", ""),
    )
    return config, tuple(warnings)


def _few(findings: list[str]) -> list[str]:
    more = len(findings) - _MOST_FAULTS
    return findings[:_MOST_FAULTS] + ([f"and {more} more"] if more > 0 else [])


def _meant(name: str) -> str:
    meant = next((key for key in _PARSERS if key.lower() == name.lower().removesuffix(".json")), None)
    return f" (did you mean {meant}?)" if meant else ""


def parse_federations(text: str) -> dict[str, str]:
    """Return name -> domain of `name=domain,name=domain`, the original's form, of which the last wins.

    Raises ValueError with the reason.
    """
    federations: dict[str, str] = {}
    for pair in text.split(",") if text.strip() else ():
        name, equals, federation_domain = (word.strip() for word in pair.partition("="))
        if not equals:
            raise ValueError(f"{quoted(pair.strip())} is not name=domain; write name=domain,name=domain")
        label, target = parse_federation(name, federation_domain)
        federations[label] = target
    return federations


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


def _federations(text: str, apex: str, found: _Findings) -> dict[str, str]:
    if "=" in text and not text.lstrip().startswith(("{", "[", '"')):
        return parse_federations(text)
    federations: dict[str, str] = {}
    for name, target in (_FEDERATIONS.parse(text) or {}).items():
        if not isinstance(target, str):
            found.faults.append(
                f"domain of federation {quoted(name)} must be a string, not {type_name(target)}"
            )
            continue
        try:
            label, federation_domain = parse_federation(name, target)
        except ValueError as error:
            found.faults.append(str(error))
            continue
        if label in federations:
            found.faults.append(f"federation {quoted(label)} is named twice, in different case")
        federations[label] = federation_domain
    return federations


def _stub_domains(text: str, apex: str, found: _Findings) -> dict[str, tuple[ServerAddress, ...]]:
    stubs: dict[str, tuple[ServerAddress, ...]] = {}
    for name, servers in (_STUBS.parse(text) or {}).items():
        try:
            stub = _stub_name(name, apex)
        except ValueError as error:
            found.faults.append(f"stub domain {error}")
            continue
        if stub in stubs:
            found.faults.append(f"stub domain {quoted(stub)} is named twice, in different spelling")
        stubs[stub] = _servers(servers, f"stub domain {quoted(name)}: ", found, hostnames=True)
        if servers == []:
            found.idle.append(f"stub domain {quoted(name)} has no servers and no effect")
    return {stub: servers for stub, servers in stubs.items() if servers}


def _stub_name(name: str, apex: str) -> str:
    """Return the canonical name of a stub domain, which may be above the cluster domain: the longer one wins."""
    stub = parse_dns_name(name)
    if apex and stub == apex:
        raise ValueError(f"{quoted(name)} is the cluster domain, which is answered by kube-dns itself")
    if apex and stub.endswith(f".{apex}"):
        raise ValueError(f"{quoted(name)} is inside the cluster domain {apex}, where only kube-dns answers")
    return stub


def _upstreams(text: str, apex: str, found: _Findings) -> tuple[ServerAddress, ...]:
    servers = _servers(_UPSTREAMS.parse(text) or [], "", found, hostnames=False)
    if len(servers) > MOST_UPSTREAMS:
        raise ValueError(f"names {len(servers)} servers; at most {MOST_UPSTREAMS} are allowed")
    return servers


def _servers(value: Any, where: str, found: _Findings, *, hostnames: bool) -> tuple[ServerAddress, ...]:
    """Return the servers of a JSON array, each once, in order."""
    if not isinstance(value, list):
        advice = _UPSTREAMS.of_servers(value)
        found.faults.append(f"{where}must be a JSON array, not {type_name(value)}; write {advice}")
        return ()
    servers: dict[ServerAddress, None] = {}
    for text in value:
        if not isinstance(text, str):
            found.faults.append(f"{where}a server must be a string, not {type_name(text)}")
            continue
        try:
            servers[parse_server(text, hostnames=hostnames)] = None
        except ValueError as error:
            several = f"; write {_UPSTREAMS.of_servers(text)}" if "," in text else ""
            found.faults.append(f"{where}{error}{several}")
            continue
        if doubt := doubt_about_port(text):
            found.doubts.append(f"{where}{doubt}")
    return tuple(servers)


def _hosts(text: str, apex: str, found: _Findings) -> str:
    return parse_hosts(text, apex, found.faults)


_PARSERS: Final[Mapping[str, Callable[[str, str, _Findings], Any]]] = {
    "federations": _federations,
    "stubDomains": _stub_domains,
    "upstreamNameservers": _upstreams,
    "hosts": _hosts,
}
"""Key -> parser of (text, cluster domain, findings to add to)."""
