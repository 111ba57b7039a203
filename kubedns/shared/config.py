"""The configuration keys: what a ConfigMap or a directory of files may say.

In: the keys of a directory or a ConfigMap, each a value of bytes.  Out: a Config in canonical
form: two Configs that are equal have the same effect.  A value that is wrong anywhere refuses the
update as a whole, with every fault named.  Source: the original's values: JSON, and for
`federations` the form of its flag as well; all other keys are new.

Differs: the original reads a value with Go's JSON decoder, which takes duplicate keys and JSON
of foreign types in places, and lets through names and ports that dnsmasq then dies of; it takes
stub domains inside the cluster domain, whose answers kube-dns does not accept from anybody.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from kubedns.dns.names import quoted
from kubedns.shared.hosts import parse_hosts
from kubedns.shared.keyforms import Findings
from kubedns.shared.querylogging import QueryLogging, log_queries
from kubedns.shared.routekeys import federations, stub_domains, upstream_nameservers
from kubedns.shared.servers import ServerAddress

LARGEST_VALUE: Final = 1 << 20
"""Octets of the largest value, as the API server limits a ConfigMap."""

_MOST_FAULTS = 10
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Config:
    """What the configuration keys say; all empty without any key.

    `federations`: name -> domain.  `stub_domains`: domain -> its servers in order, at least one.
    `upstream_nameservers`: in order, addresses only.  `hosts`: lines of `address name...`, each
    ended by a newline.  `log_queries`: None for no query log.  Domains are lower case without final dot.
    """

    federations: Mapping[str, str] = field(default_factory=dict)
    stub_domains: Mapping[str, tuple[ServerAddress, ...]] = field(default_factory=dict)
    upstream_nameservers: tuple[ServerAddress, ...] = ()
    hosts: str = ""
    log_queries: QueryLogging | None = None

    def as_keys(self) -> dict[str, Any]:
        """Return the keys that say the same, in their JSON form, without the absent ones."""
        keys = {
            "federations": dict(self.federations),
            "stubDomains": {domain: list(map(str, servers)) for domain, servers in self.stub_domains.items()},
            "upstreamNameservers": list(map(str, self.upstream_nameservers)),
            "hosts": self.hosts,
            "logQueries": str(self.log_queries) if self.log_queries else "",
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
    for key, (attribute, parse) in _PARSERS.items():
        if key not in data:
            continue
        found = Findings()
        try:
            parsed[attribute] = parse(_text(data[key]), apex, found)
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
    return Config(**parsed), tuple(warnings)


def _few(findings: list[str]) -> list[str]:
    more = len(findings) - _MOST_FAULTS
    return findings[:_MOST_FAULTS] + ([f"and {more} more"] if more > 0 else [])


def _meant(name: str) -> str:
    meant = next((key for key in _PARSERS if key.lower() == name.lower().removesuffix(".json")), None)
    return f" (did you mean {meant}?)" if meant else ""


def _text(value: bytes) -> str:
    if len(value) > LARGEST_VALUE:
        raise ValueError("is larger than 1 MiB")
    if value.startswith(_BYTE_ORDER_MARK):
        raise ValueError("begins with a byte order mark; save it as UTF-8 without one")
    try:
        return value.decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"is not UTF-8 (octet {error.start})") from error


def _hosts(text: str, apex: str, found: Findings) -> str:
    return parse_hosts(text, apex, found.faults)


_PARSERS: Final[Mapping[str, tuple[str, Callable[[str, str, Findings], Any]]]] = {
    "federations": ("federations", federations),
    "stubDomains": ("stub_domains", stub_domains),
    "upstreamNameservers": ("upstream_nameservers", upstream_nameservers),
    "hosts": ("hosts", _hosts),
    "logQueries": ("log_queries", log_queries),
}
"""Key -> its attribute of Config, and its parser of (text, cluster domain, findings to add to)."""
