"""kubedns's account of itself: what `/status` says."""

import json

from kubedns.shared.report import Configuration, Refusal, UpstreamReport
from kubedns.telemetry.counters import Outcome, ServerCounters
from kubedns.telemetry.report import ReportView, report
from kubedns.telemetry.watches import ResourceStatistics


def test_report_tells_configuration_upstreams_watches_and_traffic():
    watch = ResourceStatistics("services", last_activity=70.0)
    counters = ServerCounters()
    counters.systems["auth"].count(Outcome.NXDOMAIN, 100)
    counters.systems["recursive"].count(Outcome.SERVFAIL, 100)
    counters.systems["stub"].count(Outcome.ANSWERED, 100)
    view = ReportView(
        program="kube-dns",
        started=1700000000.0,
        configuration=lambda: Configuration(
            "directory x", {"stubDomains": {"corp.test": ["192.0.2.9:53"]}}, [Refusal("hosts", "wrong")], 5.0
        ),
        upstreams=lambda: [UpstreamReport("192.0.2.1:53", ".", up=False, reason="timeout")],
        why_not_ready=lambda: "stopping",
        synced=lambda: True,
        objects=lambda: {"service": 3},
        records=lambda: 7,
        watches=lambda: [watch, ResourceStatistics("endpointslices")],
        failures=lambda: {"services": "cannot list", "endpointslices": ""},
        counters=counters,
        now=lambda: 100.0,
    )
    said = json.loads(json.dumps(report(view)))
    assert (said["program"], said["started"], said["not_ready"]) == ("kube-dns", 1700000000.0, "stopping")
    assert said["memory"] > 1_000_000
    assert said["configuration"] == {
        "source": "directory x",
        "in_force": {"stubDomains": {"corp.test": ["192.0.2.9:53"]}},
        "refused": [{"key": "hosts", "reason": "wrong"}],
        "last_success": 5.0,
    }
    assert said["upstreams"] == [
        {
            "server": "192.0.2.1:53",
            "domain": ".",
            "up": False,
            "latency": None,
            "failures": {},
            "reason": "timeout",
        }
    ]
    assert said["watch"] == {
        "synced": True,
        "objects": {"service": 3},
        "records": 7,
        "resources": [
            {"name": "services", "age": 30.0, "error": "cannot list"},
            {"name": "endpointslices", "age": None, "error": ""},
        ],
    }
    assert said["traffic"] == {"questions": 3, "nxdomain": 1, "servfail": 1, "refused": 0}
