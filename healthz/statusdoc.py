"""What the page shows, as JSON: live objects -> the document at `/status.json`.

Times are Unix times in seconds, durations in seconds, sizes in octets; null is what is not known.
"""

import json
import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from healthz.findings import Watched, findings, summary, worst
from healthz.programs import HOUR, Program
from healthz.results import Check
from healthz.schedule import Clock
from healthz.traffic import POINT_SECONDS, Point, share
from kubedns import __version__
from kubedns.shared.report import process_report


def status_json(watched: Watched, program: str, clock: Clock) -> Callable[[], bytes]:
    """Return what writes the document of a moment; `program` is the name of this one."""
    started = time.time()

    def write() -> bytes:
        document = _document(watched, clock())
        document["programs"][program] = {"readable": True} | process_report(program, __version__, started)
        return json.dumps(document, allow_nan=False).encode() + b"\n"

    return write


def _document(watched: Watched, now: float) -> dict[str, Any]:
    found = findings(watched, now)
    checks = [*watched.checks, *([watched.readiness] if watched.readiness else [])]
    history = watched.history
    return {
        "state": worst(found).word,
        "summary": summary(found),
        "findings": [
            {"state": finding.level.word, "about": finding.about, "text": finding.text} for finding in found
        ],
        "checks": [_check(check, now) for check in checks],
        "programs": {one.name: _program(one, now) for one in watched.programs},
        "traffic": {"now": _traffic(history.recent()), "hour": _traffic(history.hour())},
        "history": {
            "seconds": POINT_SECONDS,
            "points": [_traffic(point) | {"state": _state(point)} for point in history.points],
        },
    }


def _check(check: Check, now: float) -> dict[str, Any]:
    verdict, last = check.verdict(now), check.last
    return {
        "path": check.path,
        "title": check.title,
        "detail": check.detail,
        "state": verdict.state,
        "reason": verdict.reason,
        "output": last.output.decode(errors="replace") if last else "",
        "latency": last.duration if last else None,
        "age": now - last.finished if last else None,
        "successes": check.successes,
        "failures": check.failures,
    }


def _program(program: Program, now: float) -> dict[str, Any]:
    account = program.account
    return {
        "readable": account is not None,
        "reason": program.failure,
        "url": program.url,
        "restarts_seen": program.restarts_within(HOUR, now),
        **(asdict(account) if account is not None else {}),
    }


def _traffic(point: Point) -> dict[str, Any]:
    return {
        "kubedns_questions_per_second": point.kubedns_rate,
        "nxdomain_share": share(point.nxdomain, point.questions),
        "servfail_share": share(point.servfail, point.questions),
        "dnsmasq_questions_per_second": point.dnsmasq_rate,
        "cache_hit_share": point.hit_ratio,
    }


def _state(point: Point) -> str:
    return "failed" if point.wrong else "warning" if point.doubtful else "healthy"
