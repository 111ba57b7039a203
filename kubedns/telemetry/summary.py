"""The report as lines for the log, which SIGUSR1 asks for."""

from collections.abc import Iterator
from itertools import islice
from time import time
from typing import Final

from kubedns.shared.report import resident_octets
from kubedns.telemetry.counters import CAUSES
from kubedns.telemetry.report import ReportView

_MOST_UPSTREAMS: Final = 50


def summary(view: ReportView) -> Iterator[str]:
    """Yield what was answered, what is held, how the list-watches and the name servers do."""
    systems = view.counters.systems
    answered = ", ".join(f"{system.answered()} {name}" for name, system in systems.items())
    outcomes = zip(*(system.outcomes for system in systems.values()), strict=True)
    causes = zip(CAUSES, map(sum, outcomes), strict=True)
    yield f"questions: {answered}; {', '.join(f'{count} {cause}' for cause, count in causes if cause)}"
    held = ", ".join(f"{count} {kind}s" for kind, count in view.objects().items())
    memory = resident_octets() / (1 << 20)
    yield f"up for {time() - view.started:.0f} s, {memory:.1f} MiB; {held}, {view.records()} records"
    now, failures = view.now(), view.failures()
    for watch in view.watches():
        seen = "never" if watch.last_activity is None else f"{now - watch.last_activity:.0f} s ago"
        yield f"watch of {watch.name}: last heard of {seen}; {failures.get(watch.name) or 'no error'}"
    configuration = view.configuration()
    keys = ", ".join(configuration.in_force) or "none"
    yield f"configuration from {configuration.source}; keys in force: {keys}"
    for refusal in configuration.refused:
        yield f"configuration refused: {refusal.key}: {refusal.reason}"
    for upstream in islice(view.upstreams(), _MOST_UPSTREAMS):
        state = {True: "up", False: "down", None: "not asked yet"}[upstream.up]
        failed = ", ".join(f"{count} {reason}" for reason, count in upstream.failures.items())
        yield f"name server {upstream.server} for {upstream.domain}: {state}; failures: {failed or 'none'}"
