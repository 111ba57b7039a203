"""The shapes of the JSON that kubedns and the nanny serve at `/status`; exechealthz reads it.

In: what a program knows of itself.  Out: objects that `json` writes, without any secret: the values
of configuration keys and the addresses of name servers are as public as the metrics.  Times are
Unix times in seconds, durations are in seconds, sizes in octets.
"""

import resource
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

_STATM: Final = Path("/proc/self/statm")
_PAGE_OCTETS: Final = resource.getpagesize()


@dataclass(frozen=True, slots=True)
class Refusal:
    """One fault of a refused configuration; `key` is empty when the keys could not be read at all."""

    key: str
    reason: str


@dataclass(frozen=True, slots=True)
class Configuration:
    """What is in force, and why the latest update is not.

    `in_force` holds the configuration keys in their JSON form, without the absent ones.  `refused`
    is empty while what is configured is in force.  `last_success` is the time of the last update
    that was taken, None before the first.
    """

    source: str
    in_force: Mapping[str, Any] = field(default_factory=dict)
    refused: Sequence[Refusal] = ()
    last_success: float | None = None


@dataclass(frozen=True, slots=True)
class UpstreamReport:
    """One name server in force.

    `domain` is the stub domain that it serves, `.` for all other names.  `up` is None until it was
    asked for the first time.  `latency` is that of its last answer; `failures` counts by reason;
    `reason` says what its last failure was, empty while it is up.
    """

    server: str
    domain: str
    up: bool | None
    latency: float | None = None
    failures: Mapping[str, int] = field(default_factory=dict)
    reason: str = ""


def process_report(program: str, version: str, started: float) -> dict[str, Any]:
    """Return what every program says of itself; `started` is a Unix time."""
    return {
        "program": program,
        "version": version,
        "started": started,
        "now": time.time(),
        "memory": resident_octets(),
    }


def as_json(report: Configuration | UpstreamReport) -> dict[str, Any]:
    """Return the JSON object of a report."""
    return asdict(report)


def resident_octets() -> int:
    """Return the memory of this process that is in RAM (RSS)."""
    return int(_STATM.read_text().split()[1]) * _PAGE_OCTETS
