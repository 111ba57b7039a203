"""Questions in flight at a cache server on loopback: rows of a table, and every way in which a row ends."""

import asyncio
from typing import Any

import dns.flags
import dns.message
import dns.rcode
import pytest

from kubedns.dns.query import Query, parse_query
from kubedns.shared.reply import Later
from kubedns.telemetry.counters import Outcome
from tests.later import Mailbox, forwarded, passed_on
from tests.protocol.upstream.test_failover import malformed

NAME = "www.example.org."
GOOD = (NAME, 300, "IN", "A", "192.0.2.53")
VERSION = b"\7version\4bind\0"


def query(name: str = NAME, **options) -> bytes:
    return dns.message.make_query(name, "A", **options).to_wire()


def addresses(wire: bytes) -> list[str]:
    return [rdata.address for rrset in dns.message.from_wire(wire).answer for rdata in rrset]


async def test_equal_questions_share_one_datagram_and_each_client_gets_its_own_id(forwarder, upstreams, says):
    cache = await upstreams.start(says(GOOD))
    forwarder.use_cache(cache.address)
    queries = [query() for _ in range(20)]
    replies = await asyncio.gather(*(forwarded(forwarder, wire) for wire in queries))
    assert [reply[:2] for reply in replies] == [wire[:2] for wire in queries]
    assert all(addresses(reply) == ["192.0.2.53"] for reply in replies)
    assert len(cache.seen) == 1
    (traffic,) = forwarder.traffic().values()
    assert (traffic.requests, traffic.in_flight) == (1, 0)


async def test_questions_in_another_spelling_do_not_share_and_keep_their_spelling(forwarder, upstreams, says):
    cache = await upstreams.start(says(GOOD))
    forwarder.use_cache(cache.address)
    lower, mixed = await asyncio.gather(*(forwarded(forwarder, query(n)) for n in (NAME, "wWw.eXample.ORG.")))
    assert b"www\7example\3org" in lower
    assert b"wWw\7eXample\3ORG" in mixed
    assert len(cache.seen) == 2


async def test_many_questions_at_once_all_have_their_own_answers(forwarder, upstreams, says):
    refuses = says(rcode=dns.rcode.REFUSED)

    def script(wire: bytes, tcp: bool) -> Any:
        asked = dns.message.from_wire(wire)
        if VERSION in wire:
            return refuses(wire, tcp)
        reply = dns.message.make_response(asked)
        number = int(asked.question[0].name.labels[0][1:])
        text = f"192.0.{number // 250}.{number % 250}"
        reply.answer = [dns.rrset.from_text(asked.question[0].name, 300, "IN", "A", text)]
        return reply.to_wire()

    cache = await upstreams.start(script)
    forwarder.use_cache(cache.address)
    replies = await asyncio.gather(*(forwarded(forwarder, query(f"n{n}.example.org.")) for n in range(200)))
    assert [addresses(reply) for reply in replies] == [[f"192.0.{n // 250}.{n % 250}"] for n in range(200)]


async def test_question_without_a_reply_is_servfail_and_leaves_nothing_behind(forwarder, upstreams, counters):
    cache = await upstreams.start(
        lambda wire, tcp: wire[:2] + b"\x84\x05" + wire[4:] if VERSION in wire else None
    )
    forwarder.use_cache(cache.address)
    reply = dns.message.from_wire(await forwarded(forwarder, query()))
    assert reply.rcode() == dns.rcode.SERVFAIL
    (traffic,) = forwarder.traffic().values()
    assert (traffic.in_flight, traffic.failures["timeout"]) == (0, 1)
    assert counters["recursive"].outcomes[Outcome.SERVFAIL] == 1


async def test_lost_datagram_is_sent_once_more(forwarder, upstreams, says):
    answers = says(GOOD)
    lost: list[bytes] = []

    def script(wire: bytes, tcp: bool) -> Any:
        if VERSION in wire or lost:
            return answers(wire, tcp)
        lost.append(wire)
        return None

    cache = await upstreams.start(script)
    forwarder.use_cache(cache.address)
    assert addresses(await forwarded(forwarder, query())) == ["192.0.2.53"]
    assert [wire for wire in cache.seen if VERSION not in wire] == lost * 2


async def test_forgeries_are_passed_over_and_counted(forwarder, upstreams, says):
    answer = says(GOOD)

    def script(wire: bytes, tcp: bool) -> list[bytes]:
        good = answer(wire, tcp)
        other_id = bytes(255 - octet for octet in wire[:2])
        other_name = good.replace(b"\3www", b"\3wwx")
        return [other_id + good[2:], other_name, good[:2] + wire[2:], b"", good[:5], good, good]

    cache = await upstreams.start(script)
    forwarder.use_cache(cache.address)
    assert addresses(await forwarded(forwarder, query())) == ["192.0.2.53"]
    (traffic,) = forwarder.traffic().values()
    assert traffic.failures["mismatch"] == 3, "another name, no response, half a header"


async def test_truncated_reply_is_had_over_tcp(forwarder, upstreams, says):
    big = [(NAME, 300, "IN", "TXT", f'"{number:0200}"') for number in range(20)]
    whole, cut = says(*big), says(flags=dns.flags.RA | dns.flags.TC)
    cache = await upstreams.start(lambda wire, tcp: whole(wire, tcp) if tcp else cut(wire, tcp))
    forwarder.use_cache(cache.address)
    wire = dns.message.make_query(NAME, "TXT").to_wire()
    reply = dns.message.from_wire(await forwarded(forwarder, wire, tcp=True))
    assert len(reply.answer[0]) == 20
    assert len(cache.seen_tcp) == 1


async def test_malformed_reply_is_not_passed_on(forwarder, upstreams, says):
    cache, own = await upstreams.start(malformed), await upstreams.start(says(GOOD))
    forwarder.use_cache(cache.address)
    forwarder.configure([own.address], {})
    assert addresses(await forwarded(forwarder, query())) == ["192.0.2.53"]
    assert forwarder.traffic()[str(cache.address)].failures["malformed"] >= 1


@pytest.mark.parametrize("rcode", [dns.rcode.FORMERR, dns.rcode.NOTIMP])
async def test_cache_that_knows_no_edns_is_asked_once_without(forwarder, upstreams, says, rcode):
    refuses, answers = says(rcode=rcode), says(GOOD)

    def script(wire: bytes, tcp: bool) -> Any:
        return refuses(wire, tcp) if dns.message.from_wire(wire).edns >= 0 else answers(wire, tcp)

    cache = await upstreams.start(script)
    forwarder.use_cache(cache.address)
    assert addresses(await forwarded(forwarder, query(use_edns=0))) == ["192.0.2.53"]
    assert len(cache.seen) == 2


async def test_error_without_a_question_is_passed_on_with_ours(forwarder, upstreams):
    cache = await upstreams.start(lambda wire, tcp: wire[:2] + b"\x81\x85" + bytes(8))
    forwarder.use_cache(cache.address)
    reply = dns.message.from_wire(await forwarded(forwarder, query()))
    assert reply.rcode() == dns.rcode.REFUSED
    assert reply.question[0].name.to_text() == NAME


async def test_those_who_wait_when_the_server_dies_are_answered_by_the_own_servers(
    forwarder, upstreams, says
):
    cache, own = await upstreams.silent(), await upstreams.start(says(GOOD))
    forwarder.use_cache(cache.address)
    forwarder.configure([own.address], {})
    waiting = [asyncio.create_task(forwarded(forwarder, query())) for _ in range(50)]
    await cache.asked.wait()
    forwarder.cache.fail("killed by the test")
    assert all(addresses(reply) == ["192.0.2.53"] for reply in await asyncio.gather(*waiting))
    assert len(own.seen) == 1, "they are equal, so they share one"


async def test_log_learns_who_answered(forwarder, upstreams, says):
    cache, own = await upstreams.start(says(GOOD)), await upstreams.start(says(GOOD))
    forwarder.use_cache(cache.address)
    forwarder.configure([own.address], {})
    for client, server in ((("192.0.2.9", 4000), cache), ((cache.address.host, cache.address.port), own)):
        asked = parse_query(query())
        assert isinstance(asked, Query)
        later: Later = forwarder.forward(asked, tcp=False, revise=passed_on)
        mailbox = Mailbox(client)
        later.begin(mailbox, None)
        await mailbox.reply
        assert later.by == str(server.address)
