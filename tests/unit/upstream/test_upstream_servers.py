"""The order of upstreams, with time passed in, and which servers a name goes to."""

import logging

import pytest

from kubedns.shared.servers import ServerAddress
from kubedns.upstream.servers import RECURSIVE, STUB, Routes, Upstream, in_order, make_upstreams

A, B, C = (ServerAddress(f"192.0.2.{number}") for number in (1, 2, 3))


@pytest.fixture
def upstreams():
    return [Upstream(server) for server in (A, B, C)]


def order(upstreams: list[Upstream], now: float) -> list[ServerAddress]:
    return [upstream.server for upstream in in_order(upstreams, now)]


def test_healthy_servers_are_asked_as_configured(upstreams):
    assert order(upstreams, 0) == order(upstreams, 100) == [A, B, C]


def test_failed_server_goes_last_for_ten_seconds(upstreams):
    upstreams[0].failed("no reply", 100)
    assert order(upstreams, 100) == order(upstreams, 109.9) == [B, C, A]
    assert order(upstreams, 110) == [A, B, C]


def test_after_its_time_one_question_tries_the_failed_server_and_others_do_not(upstreams):
    upstreams[0].failed("no reply", 100)
    assert order(upstreams, 110) == [A, B, C]
    assert order(upstreams, 110) == order(upstreams, 119.9) == [B, C, A]
    upstreams[0].answered()
    assert order(upstreams, 110.1) == [A, B, C]


def test_server_whose_time_passed_unasked_comes_before_one_that_fails_now(upstreams):
    upstreams[1].failed("no reply", 100)
    upstreams[0].failed("no reply", 500)
    assert order(upstreams, 500) == [B, C, A]


def test_all_failed_servers_are_asked_as_configured(upstreams):
    for upstream in upstreams:
        upstream.failed("no reply", 100)
    assert order(upstreams, 101) == [A, B, C]


def test_failing_and_recovering_are_logged_once_a_minute(upstreams, caplog):
    with caplog.at_level(logging.INFO):
        for _ in range(5):
            upstreams[0].failed("no reply within 0.63 s", 100)
        for _ in range(5):
            upstreams[0].answered()
        upstreams[0].failed("no reply within 0.63 s", 120)
        upstreams[0].answered()
    assert [record.message for record in caplog.records] == [
        "upstream 192.0.2.1:53 fails: no reply within 0.63 s",
        "upstream 192.0.2.1:53 answers again",
    ]


def test_name_goes_to_its_longest_stub_domain():
    plain, corp, europe = ([Upstream(server)] for server in (A, B, C))
    routes = Routes(plain, {(b"corp",): corp, (b"eu", b"corp"): europe})
    assert routes.route((b"a", b"corp")) == (STUB, corp)
    assert routes.route((b"corp",)) == (STUB, corp)
    assert routes.route((b"a", b"b", b"eu", b"corp")) == (STUB, europe)
    assert routes.route((b"eu", b"corp", b"org")) == (RECURSIVE, plain)
    assert routes.route((b"org",)) == routes.route(()) == (RECURSIVE, ())


def test_server_named_twice_is_asked_once():
    assert len(make_upstreams([A, B, A], (), {}, "name servers")) == 2


def test_server_in_use_keeps_what_is_known_of_it(upstreams):
    known = {A: upstreams[0]}
    assert make_upstreams([A, B], (), known, "name servers")[0] is upstreams[0]
    assert set(known) == {A, B}


@pytest.mark.parametrize("host", ["ns.example.org", "fe80::1%no-such-interface"])
def test_server_that_cannot_be_asked_is_left_out_with_a_warning(host, caplog):
    assert make_upstreams([ServerAddress(host)], (), {}, "stub domain corp.") == ()
    assert f"stub domain corp.: {ServerAddress(host)} is left out" in caplog.text


@pytest.mark.parametrize(
    ("server", "own", "left_out"),
    [
        ("127.0.0.1", ("127.0.0.1", 53), True),
        ("127.0.0.1", ("127.0.0.1", 10053), False),
        ("127.0.0.1", ("0.0.0.0", 53), True),
        ("127.0.0.1", ("::", 53), True),
        ("::1", ("::", 53), True),
        ("::1", ("0.0.0.0", 53), False),
        ("::ffff:127.0.0.1", ("0.0.0.0", 53), True),
        ("127.0.0.2", ("127.0.0.1", 53), False),
        ("192.0.2.1", ("0.0.0.0", 53), False),
        ("192.0.2.1", ("192.0.2.1", 53), True),
    ],
)
def test_own_listener_is_left_out(server, own, left_out):
    assert (make_upstreams([ServerAddress(server)], [own], {}, "name servers") == ()) is left_out
