"""What is counted of each name server: questions, failures by reason, times, what is in flight."""

import asyncio

import dns.message
import pytest
from prometheus_client import CollectorRegistry, generate_latest

from kubedns.telemetry.upstreams import UpstreamCollector
from tests.later import forwarded

NAME = "www.example.org."
GOOD = (NAME, 300, "IN", "A", "192.0.2.53")


def query(name: str = NAME) -> bytes:
    return dns.message.make_query(name, "A").to_wire()


async def test_answer_is_one_request_with_its_time_and_nothing_stays_in_flight(forwarder, upstreams, says):
    good = await upstreams.start(says(GOOD))
    forwarder.configure([good.address], {})
    for _ in range(3):
        await forwarded(forwarder, query())
    (traffic,) = forwarder.traffic().values()
    assert (traffic.requests, traffic.in_flight, sum(traffic.seconds.counts)) == (3, 0, 3)
    assert not traffic.failures


async def test_question_is_in_flight_until_its_reply_comes(forwarder, upstreams):
    slow = await upstreams.silent()
    forwarder.configure([slow.address], {})
    asking = asyncio.create_task(forwarded(forwarder, query()))
    await slow.asked.wait()
    (traffic,) = forwarder.traffic().values()
    assert traffic.in_flight == 1
    await asking
    assert traffic.in_flight == 0
    assert traffic.failures["timeout"] >= 1


@pytest.mark.parametrize(("rcode", "reason"), [(2, "servfail"), (5, "refused")])
async def test_refusal_is_counted_by_its_rcode(forwarder, upstreams, says, rcode, reason):
    bad = await upstreams.start(says(rcode=rcode))
    forwarder.configure([bad.address], {})
    await forwarded(forwarder, query())
    (traffic,) = forwarder.traffic().values()
    assert dict(traffic.failures) == {reason: 1}


async def test_closed_port_is_refused_and_a_forgery_is_a_mismatch(forwarder, upstreams, says):
    answer = says(GOOD)

    def forge_first(wire: bytes, tcp: bool) -> list[bytes]:
        other_id = bytes(255 - octet for octet in wire[:2])
        return [other_id + answer(wire, tcp)[2:], answer(wire, tcp)]

    forging = await upstreams.start(forge_first)
    forwarder.configure([upstreams.refusing(), forging.address], {})
    await forwarded(forwarder, query())
    closed, open_ = forwarder.traffic().values()
    assert closed.failures["refused"] == 1
    assert open_.failures["mismatch"] == 1


async def test_page_has_a_series_for_each_server(forwarder, upstreams, says):
    good = await upstreams.start(says(GOOD))
    forwarder.configure([good.address], {})
    await forwarded(forwarder, query())
    registry = CollectorRegistry()
    registry.register(UpstreamCollector(forwarder.traffic))
    page = generate_latest(registry).decode()
    label = f'server="{good.address}"'
    assert f"kubedns_upstream_requests_total{{{label}}} 1.0" in page
    assert f'kubedns_upstream_failures_total{{reason="timeout",{label}}} 0.0' in page
    assert f"kubedns_upstream_request_duration_seconds_count{{{label}}} 1.0" in page
    assert f"kubedns_upstream_in_flight{{{label}}} 0.0" in page
