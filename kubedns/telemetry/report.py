"""kubedns's own account of itself, served as JSON at `/status` of the health port.

In: functions that look at the state.  Out: one object per request, made from what is known already.
The shapes common to all programs are those of `shared.report`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kubedns import __version__
from kubedns.shared.report import Configuration, UpstreamReport, as_json, process_report
from kubedns.telemetry.counters import Outcome, ServerCounters
from kubedns.telemetry.watches import ResourceStatistics


@dataclass(frozen=True, slots=True)
class ReportView:
    """Where the report looks; each function is called per request.

    `failures` returns what stands in the way of each list-watch by its name, empty where nothing
    does; `why_not_ready` is empty when ready; `now` is the clock of the watches; `started` is a
    Unix time.
    """

    program: str
    started: float
    configuration: Callable[[], Configuration]
    upstreams: Callable[[], Sequence[UpstreamReport]]
    why_not_ready: Callable[[], str]
    synced: Callable[[], bool]
    objects: Callable[[], Mapping[str, int]]
    records: Callable[[], int]
    watches: Callable[[], Sequence[ResourceStatistics]]
    failures: Callable[[], Mapping[str, str]]
    counters: ServerCounters
    now: Callable[[], float]


def report(view: ReportView) -> dict[str, Any]:
    """Return the account as it stands."""
    return {
        **process_report(view.program, __version__, view.started),
        "not_ready": view.why_not_ready(),
        "configuration": as_json(view.configuration()),
        "upstreams": [as_json(upstream) for upstream in view.upstreams()],
        "watch": {
            "synced": view.synced(),
            "objects": dict(view.objects()),
            "records": view.records(),
            "resources": _resources(view),
        },
        "traffic": _traffic(view.counters),
    }


def _resources(view: ReportView) -> list[dict[str, Any]]:
    """Return each list-watch: seconds since its last sign of life, None before one; its error text."""
    now, failures = view.now(), view.failures()
    return [
        {
            "name": watch.name,
            "age": None if watch.last_activity is None else now - watch.last_activity,
            "error": failures.get(watch.name, ""),
        }
        for watch in view.watches()
    ]


def _traffic(counters: ServerCounters) -> dict[str, int]:
    """Return how many questions were answered since the start, and with which rcodes that matter."""
    systems = counters.systems.values()
    return {
        "questions": sum(system.answered() for system in systems),
        "nxdomain": sum(system.outcomes[Outcome.NXDOMAIN] for system in systems),
        "servfail": sum(system.outcomes[Outcome.SERVFAIL] for system in systems),
        "refused": sum(system.outcomes[Outcome.REFUSED] for system in systems),
    }
