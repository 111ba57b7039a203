"""Upstreams that are dead, slow, lame or wrong: who is asked next, and what the client gets."""

import asyncio
import time
from typing import Any

import dns.flags
import dns.message
import dns.rcode
import pytest

from kubedns.telemetry.counters import Outcome
from kubedns.upstream.forward import Forwarder
from tests.later import forwarded

NAME = "www.example.org."
LABELS = (b"www", b"example", b"org")
GOOD = (NAME, 300, "IN", "A", "192.0.2.53")
BIG = [(NAME, 300, "IN", "TXT", f'"{number:0200}"') for number in range(20)]


def query(rdtype: str = "A", **options: Any) -> bytes:
    return dns.message.make_query(NAME, rdtype, **options).to_wire()


async def ask(
    forwarder: Forwarder, wire: bytes | None = None, *, tcp: bool = False, limit: int = 1232
) -> dns.message.Message:
    wire = query() if wire is None else wire
    reply = await forwarded(forwarder, wire, tcp=tcp)
    assert reply is not None
    assert reply[:2] == wire[:2]
    assert tcp or len(reply) <= limit
    return dns.message.from_wire(reply)


def answers(reply: dns.message.Message) -> list[str]:
    return [rdata.to_text() for rrset in reply.answer for rdata in rrset]


def malformed(query: bytes, tcp: bool) -> bytes:
    return query[:2] + b"\x81\x80\0\1\0\5\0\0\0\0" + query[12:] + b"\xc0\x0c\0\1"


async def test_silent_upstream_is_left_behind_and_goes_last(forwarder, upstreams, says):
    silent, good = await upstreams.silent(), await upstreams.start(says(GOOD))
    forwarder.configure([silent.address, good.address], {})
    assert answers(await ask(forwarder)) == ["192.0.2.53"]
    for _ in range(5):
        assert answers(await ask(forwarder)) == ["192.0.2.53"]
    assert len(silent.seen) == 1
    assert len(good.seen) == 6


async def test_late_reply_of_an_earlier_upstream_is_taken_while_a_later_one_is_asked(
    forwarder, upstreams, says
):
    early = await upstreams.silent()

    def remind_the_other(wire, tcp):
        early.send(says(GOOD)(early.seen[0], False), early.peers[0])

    later = await upstreams.start(remind_the_other)
    forwarder.configure([early.address, later.address], {})
    assert answers(await ask(forwarder)) == ["192.0.2.53"]
    assert len(later.seen) == 1


async def test_lost_datagram_is_sent_again(forwarder, upstreams, says):
    lossy = await upstreams.silent()
    lossy.script = lambda wire, tcp: says(GOOD)(wire, tcp) if len(lossy.seen) > 1 else None
    forwarder.configure([lossy.address], {})
    assert answers(await ask(forwarder)) == ["192.0.2.53"]
    assert lossy.seen[0] == lossy.seen[1]


async def test_all_upstreams_silent_is_servfail_within_two_seconds(forwarder, upstreams):
    silent = [await upstreams.silent() for _ in range(3)]
    forwarder.configure([upstream.address for upstream in silent], {})
    begun = time.monotonic()
    reply = await ask(forwarder)
    assert time.monotonic() - begun < 2
    assert reply.rcode() == dns.rcode.SERVFAIL
    assert [len(upstream.seen) for upstream in silent] == [1, 1, 1]


async def test_upstream_that_is_not_there_is_left_at_once(forwarder, upstreams, says):
    good = await upstreams.start(says(GOOD))
    forwarder.configure([upstreams.refusing(), good.address], {})
    assert answers(await ask(forwarder)) == ["192.0.2.53"]
    assert answers(await ask(forwarder, tcp=True)) == ["192.0.2.53"]


async def test_no_upstream_there_is_servfail_without_waiting(forwarder, upstreams, counters):
    forwarder.configure([upstreams.refusing(), upstreams.refusing()], {})
    async with asyncio.timeout(1.5):
        assert (await ask(forwarder)).rcode() == dns.rcode.SERVFAIL
        assert (await ask(forwarder, tcp=True)).rcode() == dns.rcode.SERVFAIL
    assert counters["recursive"].outcomes[Outcome.SERVFAIL] == 2


async def test_unhelpful_reply_makes_the_next_upstream_be_asked(forwarder, upstreams, says):
    referral = [(".", 300, "IN", "NS", "a.root-servers.net.")]
    for unhelpful in (
        says(rcode=dns.rcode.REFUSED),
        says(rcode=dns.rcode.SERVFAIL),
        says(flags=0, authority=referral),
        malformed,
        lambda wire, tcp: wire[:2] + b"\x81\x81" + bytes(8),
    ):
        first, second = await upstreams.start(unhelpful), await upstreams.start(says(GOOD))
        for tcp in (False, True):
            forwarder.configure([first.address, second.address], {})
            assert answers(await ask(forwarder, tcp=tcp)) == ["192.0.2.53"]
        assert len(first.seen) == len(first.seen_tcp) == 1


async def test_refusal_of_one_name_does_not_put_an_upstream_last(forwarder, upstreams, says):
    refusing, good = await upstreams.start(says(rcode=dns.rcode.REFUSED)), await upstreams.start(says(GOOD))
    forwarder.configure([refusing.address, good.address], {})
    for _ in range(3):
        await ask(forwarder)
    assert len(refusing.seen) == 3


@pytest.mark.parametrize("rcode", [dns.rcode.REFUSED, dns.rcode.SERVFAIL])
async def test_last_refusal_is_passed_on_as_it_is(forwarder, upstreams, says, rcode):
    malformed_one = await upstreams.start(malformed)
    other = await upstreams.start(says(rcode=dns.rcode.SERVFAIL))
    last = await upstreams.start(says(rcode=rcode, flags=dns.flags.AA))
    forwarder.configure([other.address, last.address, malformed_one.address], {})
    reply = await ask(forwarder)
    assert reply.rcode() == rcode
    assert reply.flags & dns.flags.AA


async def test_answers_that_are_no_failures_are_passed_on(forwarder, upstreams, says):
    never = await upstreams.start(says(GOOD))
    for rcode in (dns.rcode.NXDOMAIN, dns.rcode.FORMERR, dns.rcode.NOTIMP, dns.rcode.NOTAUTH):
        first = await upstreams.start(says(rcode=rcode))
        forwarder.configure([first.address, never.address], {})
        assert (await ask(forwarder)).rcode() == rcode
    assert not never.seen


async def test_error_without_question_gets_the_clients_question(forwarder, upstreams):
    terse = await upstreams.start(lambda wire, tcp: wire[:2] + b"\x81\x81" + bytes(8))
    forwarder.configure([terse.address], {})
    reply = await ask(forwarder)
    assert reply.rcode() == dns.rcode.FORMERR
    assert reply.question[0].name.to_text() == NAME


async def test_truncated_reply_is_asked_for_over_tcp(forwarder, upstreams, says):
    def script(wire: bytes, tcp: bool) -> bytes:
        chosen: bytes = says(*BIG)(wire, tcp) if tcp else says(flags=dns.flags.TC)(wire, tcp)
        return chosen

    upstream = await upstreams.start(script)
    forwarder.configure([upstream.address], {})
    over_udp = await ask(forwarder, query("TXT", use_edns=0))
    assert over_udp.flags & dns.flags.TC
    assert over_udp.edns == 0
    assert len(upstream.seen) == len(upstream.seen_tcp) == 1
    assert len(answers(await ask(forwarder, query("TXT"), tcp=True))) == len(BIG)
    few = await upstreams.start(lambda wire, tcp: script(wire, tcp) if not tcp else says(*BIG[:4])(wire, tcp))
    forwarder.configure([few.address], {})
    whole = await ask(forwarder, query("TXT", use_edns=0))
    assert not whole.flags & dns.flags.TC
    assert len(answers(whole)) == 4


async def test_truncated_reply_is_passed_on_when_tcp_fails(forwarder, upstreams, says):
    upstream = await upstreams.start(says(GOOD, flags=dns.flags.TC), tcp=False)
    forwarder.configure([upstream.address], {})
    reply = await ask(forwarder)
    assert reply.flags & dns.flags.TC
    assert answers(reply) == ["192.0.2.53"]


async def test_truncated_reply_is_passed_on_when_tcp_hangs(forwarder, upstreams, says):
    upstream = await upstreams.start(lambda wire, tcp: None if tcp else says(flags=dns.flags.TC)(wire, tcp))
    forwarder.configure([upstream.address], {})
    async with asyncio.timeout(2):
        reply = await ask(forwarder)
    assert reply.flags & dns.flags.TC
    assert reply.rcode() == dns.rcode.NOERROR


async def test_connection_is_used_again_while_it_is_open(forwarder, upstreams, says):
    upstream = await upstreams.start(says(GOOD))
    forwarder.configure([upstream.address], {})
    for _ in range(20):
        assert answers(await ask(forwarder, tcp=True)) == ["192.0.2.53"]
    assert len(upstream.streams) == 1
    upstream.streams[0].close()
    await upstream.streams[0].wait_closed()
    assert answers(await ask(forwarder, tcp=True)) == ["192.0.2.53"]
    assert len(upstream.streams) == 2


async def test_connection_closed_by_the_next_question_is_replaced(forwarder, upstreams, says):
    upstream = await upstreams.start(says(GOOD))
    forwarder.configure([upstream.address], {})
    await ask(forwarder, tcp=True)

    def hang_up_once(wire: bytes, tcp: bool) -> None:
        upstream.script = says(GOOD)
        upstream.streams[0].transport.abort()

    upstream.script = hang_up_once
    assert answers(await ask(forwarder, tcp=True)) == ["192.0.2.53"]
    assert len(upstream.streams) == 2


async def test_connection_that_says_more_than_asked_is_not_used_again(forwarder, upstreams, says):
    upstream = await upstreams.start(lambda wire, tcp: [says(GOOD)(wire, tcp), b"something unasked for"])
    forwarder.configure([upstream.address], {})
    for _ in range(2):
        assert answers(await ask(forwarder, tcp=True)) == ["192.0.2.53"]
    assert len(upstream.streams) == 2


async def test_tcp_connection_closed_early_makes_the_next_upstream_be_asked(forwarder, upstreams, says):
    async def hang_up(reader, writer):
        writer.write(b"\0\xff" + b"half")
        writer.close()

    listener = await asyncio.start_server(hang_up, "127.0.0.1", 0)
    good = await upstreams.start(says(GOOD))
    host, port = listener.sockets[0].getsockname()
    forwarder.configure([type(good.address)(host, port), good.address], {})
    assert answers(await ask(forwarder, tcp=True)) == ["192.0.2.53"]
    listener.close()


async def test_upstream_that_came_back_is_first_again(forwarder, upstreams, says):
    flaky, good = await upstreams.start(says(GOOD)), await upstreams.silent()
    forwarder.configure([flaky.address, good.address], {})
    await ask(forwarder)
    flaky.script = lambda wire, tcp: None
    good.script = says((NAME, 1, "IN", "A", "192.0.2.2"))
    assert answers(await ask(forwarder)) == ["192.0.2.2"]
    good.script, flaky.script = flaky.script, says(GOOD)
    assert answers(await ask(forwarder)) == ["192.0.2.53"]
    count = len(good.seen)
    assert answers(await ask(forwarder)) == ["192.0.2.53"]
    assert len(good.seen) == count
