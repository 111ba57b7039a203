"""`/status.json` says what the page says."""

import json

from healthz.account import parse_account
from healthz.findings import Watched
from healthz.programs import Program
from healthz.results import Check, Outcome
from healthz.statusdoc import status_json
from healthz.traffic import History, Point
from kubedns.shared.histogram import Histogram


def test_document_holds_state_checks_programs_traffic_and_history():
    check = Check("/healthcheck/kubedns", "kubedns", "asks", stale_after=30, latency=Histogram((1.0,)))
    check.record(Outcome(95.0, 0.25, "SERVFAIL", b"x\xff"))
    kubedns = Program("kubedns", "http://k/status", lambda: 100.0)
    kubedns.account = parse_account(
        b'{"version": "1", "started": 5, "upstreams": [{"server": "a", "up": true}]}'
    )
    nanny = Program("dnsmasq-nanny", "http://n/status", lambda: 100.0)
    nanny.failure = "HTTP 404"
    history = History()
    history.add(100.0, Point(kubedns_seconds=10.0, questions=20, nxdomain=5, wrong=True))
    watched = Watched([check], None, kubedns, nanny, None, history)
    said = json.loads(status_json(watched, "exechealthz", lambda: 100.0)())
    assert said["state"] == "failed"
    assert said["summary"] == "2 things are wrong: check kubedns, dnsmasq-nanny"
    assert {"state": "failed", "about": "dnsmasq-nanny", "text": "can't be read: HTTP 404"} in said[
        "findings"
    ]
    assert said["checks"][0] | {"output": ""} == {
        "path": "/healthcheck/kubedns",
        "title": "kubedns",
        "detail": "asks",
        "state": "failed",
        "reason": "SERVFAIL",
        "output": "",
        "latency": 0.25,
        "age": 5.0,
        "successes": 0,
        "failures": 1,
    }
    assert said["programs"]["kubedns"]["readable"]
    assert said["programs"]["kubedns"]["upstreams"][0]["server"] == "a"
    assert said["programs"]["dnsmasq-nanny"] == {
        "readable": False,
        "reason": "HTTP 404",
        "url": "http://n/status",
        "restarts_seen": 0,
    }
    assert said["programs"]["exechealthz"]["memory"] > 1_000_000
    assert said["traffic"]["now"]["kubedns_questions_per_second"] == 2.0
    assert said["traffic"]["hour"]["nxdomain_share"] == 0.25
    assert said["traffic"]["hour"]["cache_hit_share"] is None
    assert said["history"]["points"][-1]["state"] == "failed"
