"""What a program says of itself is taken when it has the shape, else refused with the reason."""

import json

import pytest

from healthz.account import Traffic, parse_account
from kubedns.shared.report import Configuration, Refusal, UpstreamReport, as_json, process_report


def test_what_the_programs_write_is_read_as_it_was_meant():
    configuration = Configuration("x", {"hosts": "1.2.3.4 a\n"}, [Refusal("hosts", "wrong")], 5.0)
    upstream = UpstreamReport("192.0.2.1:53", "corp.test", False, 0.5, {"timeout": 3}, "timeout")
    written = {
        **process_report("kube-dns", "1.2.3", 1700000000.0),
        "configuration": as_json(configuration),
        "upstreams": [as_json(upstream)],
        "watch": {
            "synced": True,
            "objects": {"service": 3},
            "records": 4,
            "resources": [{"name": "services", "age": None, "error": "e"}],
        },
        "traffic": {"questions": 10, "nxdomain": 3, "servfail": 2, "new": 1},
        "dnsmasq": {"started": 1700000001.5, "restarts": {"config": 2}},
    }
    account = parse_account(json.dumps(written).encode())
    assert (account.version, account.started) == ("1.2.3", 1700000000.0)
    assert account.memory > 1_000_000
    assert account.configuration == configuration
    assert account.upstreams == [upstream]
    assert account.cluster is not None
    assert account.cluster.synced
    assert account.cluster.watches[0].age is None
    assert account.traffic == Traffic(10, 3, 2)
    assert account.dnsmasq is not None
    assert (account.dnsmasq.started, account.dnsmasq.restarts) == (1700000001.5, {"config": 2})


def test_missing_parts_count_as_empty():
    account = parse_account(b"{}")
    for part in (account.configuration, account.cluster, account.traffic, account.dnsmasq):
        assert part is None
    assert account.upstreams == []


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>",
        b"[]",
        b"null",
        b'"text"',
        b'{"version": 3}',
        b'{"started": "now"}',
        b'{"started": true}',
        b'{"started": NaN}',
        b'{"started": 1e400}',
        b'{"upstreams": {}}',
        b'{"upstreams": [3]}',
        b'{"upstreams": [{"up": "yes"}]}',
        b'{"watch": []}',
        b'{"watch": {"objects": {"service": "many"}}}',
        b'{"configuration": {"refused": "all"}}',
        b'{"dnsmasq": {"restarts": [1]}}',
        b"\xff\xfe",
    ],
)
def test_what_does_not_fit_is_refused(body):
    with pytest.raises(ValueError):  # noqa: PT011 - whatever json says, too
        parse_account(body)


def test_long_lists_are_cut():
    body = json.dumps({"upstreams": [{"server": str(number)} for number in range(100_000)]})
    assert len(parse_account(body.encode()).upstreams) == 500
