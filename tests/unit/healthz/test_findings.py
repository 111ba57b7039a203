"""The banner is green only without any fault; each fault is found, by name, and as bad as it is."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from healthz.account import parse_account
from healthz.findings import Finding, Level, Watched, findings, summary, worst
from healthz.programs import Program
from healthz.results import Check, Outcome
from healthz.traffic import History, Point
from kubedns.shared.histogram import Histogram

NOW = 1000.0
UP = {"server": "192.0.2.1:53", "domain": ".", "up": True}


def account(**said) -> dict[str, Any]:
    return {"upstreams": [UP]} | said


def program(name: str, said: dict[str, Any] | None, failure: str = "") -> Program:
    one = Program(name, "http://127.0.0.1/status", lambda: NOW)
    one.account = None if said is None else parse_account(json.dumps(said).encode())
    one.failure = failure
    return one


def healthy_check() -> Check:
    check = Check("/healthcheck/kubedns", "kubedns", "asks", stale_after=30, latency=Histogram((1.0,)))
    check.record(Outcome(NOW - 1, 0.001))
    return check


def found(
    kubedns: Program | None = None,
    nanny: Program | None = None,
    readiness: Check | None = None,
    history: History | None = None,
) -> Sequence[Finding]:
    watched = Watched(
        [healthy_check()],
        readiness,
        kubedns or program("kubedns", account(watch={"synced": True})),
        nanny or program("dnsmasq-nanny", account(dnsmasq={"started": 5.0})),
        None,
        history or History(),
    )
    return findings(watched, NOW)


def only(found: Sequence[Finding]) -> Finding:
    assert len(found) == 1, found
    return found[0]


def test_nothing_wrong_is_green():
    assert list(found()) == []
    assert (worst([]), summary([])) == (Level.HEALTHY, "All is well")


def test_configuration_refused_by_one_program_or_both():
    refused = account(configuration={"refused": [{"key": "stubDomains", "reason": "is not JSON"}]})
    one = found(kubedns=program("kubedns", refused))
    assert only(one) == Finding(
        Level.WARNING, "configuration of kubedns", "refused: stubDomains: is not JSON"
    )
    both = found(kubedns=program("kubedns", refused), nanny=program("dnsmasq-nanny", refused))
    assert [finding.about for finding in both] == [
        "configuration of kubedns",
        "configuration of dnsmasq-nanny",
    ]
    assert summary(both) == ("2 things are wrong: configuration of kubedns, configuration of dnsmasq-nanny")


@pytest.mark.parametrize(
    ("upstreams", "level", "text"),
    [
        (
            [UP, UP | {"server": "192.0.2.2:53", "up": False, "reason": "timeout"}],
            Level.WARNING,
            "1 of 2 for all other names don't answer: 192.0.2.2:53 (timeout)",
        ),
        (
            [UP | {"up": False, "reason": "timeout"}],
            Level.FAILED,
            "no server for all other names answers: 192.0.2.1:53 (timeout)",
        ),
        (
            [
                UP,
                {
                    "server": "ns.corp.test:53",
                    "domain": "corp.test",
                    "up": False,
                    "reason": "does not resolve",
                },
            ],
            Level.FAILED,
            "no server for corp.test answers: ns.corp.test:53 (does not resolve)",
        ),
        ([], Level.WARNING, "there is none for names outside the cluster: they fail"),
    ],
    ids=["one of two", "all", "stub server without address", "none"],
)
def test_name_servers_that_are_down(upstreams, level, text):
    nanny = program("dnsmasq-nanny", {"upstreams": upstreams, "dnsmasq": {"started": 5.0}})
    assert only(found(nanny=nanny)) == Finding(level, "name servers of dnsmasq-nanny", text)


def test_name_server_that_was_not_asked_yet_is_no_fault():
    assert list(found(kubedns=program("kubedns", {"upstreams": [UP | {"up": None}]}))) == []


def test_watch_with_an_error_or_long_silence():
    watch = {
        "synced": True,
        "resources": [
            {"name": "services", "age": 10, "error": "cannot list services: refused"},
            {"name": "slices", "age": 400, "error": ""},
        ],
    }
    bad = found(kubedns=program("kubedns", account(watch=watch)))
    assert [(finding.level, finding.about, finding.text) for finding in bad] == [
        (Level.FAILED, "watch of services", "cannot list services: refused"),
        (Level.FAILED, "watch of slices", "nothing heard for 6m40s"),
    ]


def test_program_that_cannot_be_read_and_one_that_was_not_read_yet():
    hung = found(kubedns=program("kubedns", None, "no answer within 2 s"))
    assert only(hung) == Finding(Level.FAILED, "kubedns", "can't be read: no answer within 2 s")
    fresh = found(kubedns=program("kubedns", None))
    assert only(fresh).level is Level.WAITING
    assert summary(fresh) == "Waiting for the first results"


def test_pod_that_is_not_ready():
    readiness = Check("url", "kubedns is ready", "GET", stale_after=15, latency=Histogram((1.0,)))
    readiness.record(Outcome(NOW - 1, 0.001, "HTTP 503", b"waiting for the first sync\n"))
    assert only(found(readiness=readiness)) == Finding(
        Level.FAILED, "readiness", "HTTP 503: waiting for the first sync"
    )


def test_dnsmasq_that_is_not_up():
    nanny = program("dnsmasq-nanny", account(dnsmasq={"started": None}))
    assert only(found(nanny=nanny)) == Finding(Level.FAILED, "dnsmasq-nanny", "no dnsmasq is up")


def test_restart_is_told_for_a_quarter_of_an_hour():
    nanny = program("dnsmasq-nanny", account(dnsmasq={"started": 5.0}))
    nanny.restarts.extend([NOW - 500, NOW - 60])
    assert only(found(nanny=nanny)) == Finding(
        Level.WARNING, "dnsmasq-nanny", "restarted 1m ago, 2 times in the last 15m"
    )
    nanny.restarts.clear()
    nanny.restarts.append(NOW - 901)
    assert list(found(nanny=nanny)) == []


def test_many_servfail_answers():
    history = History()
    history.add(NOW, Point(kubedns_seconds=15, questions=100, servfail=10))
    assert only(found(history=history)).text == "10% of kubedns's latest answers are SERVFAIL"
    few = History()
    few.add(NOW, Point(kubedns_seconds=15, questions=2, servfail=1))
    assert list(found(history=few)) == []


def test_worst_comes_first():
    bad = found(
        kubedns=program("kubedns", account(configuration={"refused": [{"key": "hosts", "reason": "x"}]})),
        nanny=program("dnsmasq-nanny", None, "HTTP 404"),
    )
    assert [finding.level for finding in bad] == [Level.FAILED, Level.WARNING]
