"""The JSON of a program's `/status` -> an Account; what does not fit the shape is refused.

Pure.  Source: `kubedns.shared.report` and what kubedns and the nanny add to it.  A key that is
missing counts as empty, so that a program of another version can be read.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kubedns.shared.report import Configuration, Refusal, UpstreamReport

_MOST_ENTRIES: Final = 500
"""Entries of each list that are taken: the page is for people."""


@dataclass(frozen=True, slots=True)
class WatchAccount:
    """One list-watch: seconds since its last sign of life, None before one; its error, empty if none."""

    name: str
    age: float | None
    error: str


@dataclass(frozen=True, slots=True)
class ClusterAccount:
    """How far kubedns follows the cluster."""

    synced: bool
    objects: Mapping[str, int]
    records: int
    watches: Sequence[WatchAccount]


@dataclass(frozen=True, slots=True)
class Traffic:
    """What kubedns has answered since its start, by rcode where that matters."""

    questions: int
    nxdomain: int
    servfail: int


@dataclass(frozen=True, slots=True)
class DnsmasqAccount:
    """The nanny's dnsmasq: Unix time since which it is up, None without one; restarts by reason."""

    started: float | None
    restarts: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Account:
    """What a program says of itself; the last four are None where it has no such thing to tell.

    `started` is a Unix time, `memory` in octets.
    """

    version: str
    started: float
    memory: int
    configuration: Configuration | None
    upstreams: Sequence[UpstreamReport]
    cluster: ClusterAccount | None
    traffic: Traffic | None
    dnsmasq: DnsmasqAccount | None


def parse_account(body: bytes) -> Account:
    """Return the account that a body holds; raises ValueError that says what is wrong with it."""
    said = json.loads(body)
    if not isinstance(said, dict):
        raise ValueError("it is no JSON object")
    configuration, watch = _optional(said, "configuration"), _optional(said, "watch")
    traffic, dnsmasq = _optional(said, "traffic"), _optional(said, "dnsmasq")
    return Account(
        version=_text(said, "version"),
        started=_number(said, "started") or 0.0,
        memory=_count(said, "memory"),
        configuration=None if configuration is None else _configuration(configuration),
        upstreams=[_upstream(one) for one in _objects(said, "upstreams")],
        cluster=None if watch is None else _cluster(watch),
        traffic=None
        if traffic is None
        else Traffic(*(_count(traffic, key) for key in ("questions", "nxdomain", "servfail"))),
        dnsmasq=None
        if dnsmasq is None
        else DnsmasqAccount(_number(dnsmasq, "started") or None, _counts(dnsmasq, "restarts")),
    )


def _configuration(said: Mapping[str, Any]) -> Configuration:
    return Configuration(
        _text(said, "source"),
        _mapping(said, "in_force"),
        [Refusal(_text(one, "key"), _text(one, "reason")) for one in _objects(said, "refused")],
        _number(said, "last_success"),
    )


def _upstream(said: Mapping[str, Any]) -> UpstreamReport:
    up = said.get("up")
    if not (up is None or isinstance(up, bool)):
        raise ValueError("up is neither true, false nor null")
    return UpstreamReport(
        _text(said, "server"),
        _text(said, "domain") or ".",
        up,
        _number(said, "latency"),
        _counts(said, "failures"),
        _text(said, "reason"),
    )


def _cluster(said: Mapping[str, Any]) -> ClusterAccount:
    return ClusterAccount(
        said.get("synced") is True,
        _counts(said, "objects"),
        _count(said, "records"),
        [
            WatchAccount(_text(one, "name"), _number(one, "age"), _text(one, "error"))
            for one in _objects(said, "resources")
        ],
    )


def _text(said: Mapping[str, Any], key: str) -> str:
    value = said.get(key, "")
    if not isinstance(value, str):
        raise ValueError(f"{key} is no text")
    return value


def _number(said: Mapping[str, Any], key: str) -> float | None:
    value = said.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e15:
        raise ValueError(f"{key} is no number")
    return float(value)


def _count(said: Mapping[str, Any], key: str) -> int:
    return int(_number(said, key) or 0)


def _mapping(said: Mapping[str, Any], key: str) -> dict[str, Any]:
    value = said.get(key, {})
    if not isinstance(value, dict):
        raise ValueError(f"{key} is no JSON object")
    return value


def _optional(said: Mapping[str, Any], key: str) -> dict[str, Any] | None:
    return None if said.get(key) is None else _mapping(said, key)


def _counts(said: Mapping[str, Any], key: str) -> dict[str, int]:
    counts = _mapping(said, key)
    return {name: _count(counts, name) for name in list(counts)[:_MOST_ENTRIES]}


def _objects(said: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    value = said.get(key, [])
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        raise ValueError(f"{key} is no list of JSON objects")
    return value[:_MOST_ENTRIES]
