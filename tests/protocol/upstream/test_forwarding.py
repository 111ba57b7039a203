"""A query in, the reply out, with upstreams that behave: what passes and what is shared."""

import asyncio
import logging
from typing import Any

import dns.edns
import dns.flags
import dns.message
import dns.rcode
import dns.rdatatype
import pytest

from kubedns.dns.names import Labels
from kubedns.shared.servers import ServerAddress
from kubedns.telemetry.counters import Outcome
from kubedns.upstream.forward import Forwarder
from tests.later import forwarded

CLUSTER = (b"cluster", b"local")
NAME = "www.Example.org."
LABELS = (b"www", b"example", b"org")
A_RECORD = (NAME, 300, "IN", "A", "192.0.2.53")


def query(name: str = NAME, rdtype: str = "A", **options: Any) -> bytes:
    return dns.message.make_query(name, rdtype, **options).to_wire()


async def ask(
    forwarder: Forwarder,
    wire: bytes | None = None,
    labels: Labels = LABELS,
    *,
    tcp: bool = False,
    limit: int = 1232,
) -> dns.message.Message:
    wire = query() if wire is None else wire
    reply = await forwarded(forwarder, wire, tcp=tcp)
    assert reply is not None
    assert reply[:2] == wire[:2]
    return dns.message.from_wire(reply)


def addresses(reply: dns.message.Message) -> list[str]:
    return [rdata.address for rrset in reply.answer for rdata in rrset]


async def test_query_goes_on_with_an_option_record_of_ours(forwarder, upstreams, says):
    upstream = await upstreams.start(says(A_RECORD))
    forwarder.configure([upstream.address], {})
    unknown = dns.edns.GenericOption(dns.edns.OptionType.make(65001), b"what is this")
    wire = query(use_edns=0, ednsflags=dns.flags.DO, payload=4000, options=[unknown])
    wire = wire[:3] + bytes([wire[3] | 0x30]) + wire[4:]  # AD and CD
    await ask(forwarder, wire)
    ours = query(use_edns=0, ednsflags=dns.flags.DO, payload=1232)
    assert upstream.seen[0][2:] == wire[2:4] + ours[4:]
    await ask(forwarder, query())
    assert upstream.seen[1][2:] == query()[2:]


async def test_reply_keeps_flags_and_records_and_has_an_option_record_of_ours(forwarder, upstreams, says):
    sent = []

    def script(wire, tcp):
        records = (A_RECORD, (NAME, 5, "IN", "TYPE65280", r"\# 3 010203"))
        reply = dns.message.from_wire(says(*records, flags=dns.flags.AD)(wire, tcp))
        sent.append(reply.to_wire())
        cookie = dns.edns.GenericOption(dns.edns.OptionType.COOKIE, b"12345678abcdefgh")
        reply.use_edns(0, payload=4096, options=[cookie])
        return reply.to_wire()

    upstream = await upstreams.start(script)
    forwarder.configure([upstream.address], {})
    plain = await forwarded(forwarder, query())
    assert plain[2:] == sent[0][2:]
    extended = await forwarded(forwarder, query(use_edns=0, payload=4096))
    parsed = dns.message.from_wire(extended)
    assert (parsed.edns, parsed.payload, parsed.options) == (0, 1232, ())
    assert (extended[2:10], extended[12 : len(plain)]) == (plain[2:10], plain[12:])


@pytest.mark.parametrize("rcode", [dns.rcode.FORMERR, dns.rcode.NOTIMP])
async def test_upstream_that_knows_no_edns_is_asked_once_without(forwarder, upstreams, says, rcode):
    def script(wire, tcp):
        old = dns.message.from_wire(wire).edns >= 0
        return (says(rcode=rcode) if old else says(A_RECORD))(wire, tcp)

    upstream = await upstreams.start(script)
    forwarder.configure([upstream.address], {})
    reply = await ask(forwarder, query(use_edns=0))
    assert addresses(reply) == ["192.0.2.53"]
    assert reply.edns == 0
    assert len(upstream.seen) == 2


def lower_question(reply: bytes) -> bytes:
    return reply.replace(b"\3wWw\7eXample\3oRg", b"\3www\7example\3org")


async def test_client_gets_its_own_spelling_back_from_an_upstream_that_lower_cases(
    forwarder, upstreams, says
):
    upstream = await upstreams.start(lambda wire, tcp: lower_question(says(A_RECORD)(wire, tcp)))
    forwarder.configure([upstream.address], {})
    wire = query("wWw.eXample.oRg.")
    reply = await forwarded(forwarder, wire, tcp=False)
    assert reply is not None
    assert reply[12 : len(wire)] == wire[12:]


async def test_ids_and_source_ports_are_not_those_of_the_client_and_differ(forwarder, upstreams, says):
    upstream = await upstreams.start(says(A_RECORD))
    forwarder.configure([upstream.address], {})
    for number in range(30):
        wire = bytes([0, number]) + query()[2:]
        await ask(forwarder, wire)
    assert len({seen[:2] for seen in upstream.seen}) > 25
    assert len({port for _, port in upstream.peers}) > 20


async def test_equal_questions_in_flight_share_one_exchange(forwarder, upstreams, says):
    upstream = await upstreams.silent()
    forwarder.configure([upstream.address], {})
    wire = query()
    waiting = [asyncio.create_task(ask(forwarder, bytes([number, 7]) + wire[2:])) for number in range(10)]
    await upstream.asked.wait()
    waiting.pop().cancel()
    await asyncio.sleep(0)
    upstream.send(says(A_RECORD)(upstream.seen[0], False), upstream.peers[0])
    for reply in await asyncio.gather(*waiting):
        assert addresses(reply) == ["192.0.2.53"]
    assert len(upstream.seen) == 1


async def test_questions_that_differ_in_one_bit_do_not_share(forwarder, upstreams, says):
    upstream = await upstreams.start(says(A_RECORD))
    forwarder.configure([upstream.address], {})
    wire = query()
    without_rd = wire[:2] + bytes([wire[2] & ~1]) + wire[3:]
    await asyncio.gather(
        ask(forwarder, wire), ask(forwarder, without_rd), ask(forwarder, query(want_dnssec=True))
    )
    assert len(upstream.seen) == 3


async def test_tcp_query_is_forwarded_over_tcp_and_shares_nothing_with_udp(forwarder, upstreams, says):
    upstream = await upstreams.start(says(A_RECORD))
    forwarder.configure([upstream.address], {})
    wire = query()
    await asyncio.gather(ask(forwarder, wire, tcp=True), ask(forwarder, wire))
    assert len(upstream.seen_tcp) == len(upstream.seen) == 1


async def test_longest_stub_domain_gets_the_name(forwarder, upstreams, says, counters):
    corp, europe = await upstreams.start(says(A_RECORD)), await upstreams.start(says(A_RECORD))
    others = await upstreams.start(says(rcode=dns.rcode.NXDOMAIN))
    forwarder.configure(
        [others.address],
        {(b"corp", b"test"): [corp.address], (b"eu", b"corp", b"test"): [europe.address]},
    )
    for name in ("db.corp.test.", "corp.test.", "db.eu.corp.test.", "a.b.eu.corp.test.", "xcorp.test."):
        await ask(forwarder, query(name), tuple(name.encode().split(b".")[:-1]))
    assert (len(corp.seen), len(europe.seen), len(others.seen)) == (2, 2, 1)
    assert counters["stub"].outcomes[Outcome.ANSWERED] == 4
    assert counters["recursive"].outcomes[Outcome.NXDOMAIN] == 1


async def test_stub_domain_whose_servers_cannot_be_asked_leaks_nothing(forwarder, upstreams, says):
    others = await upstreams.start(says(A_RECORD))
    forwarder.configure([others.address], {(b"corp", b"test"): [ServerAddress("ns.corp.test")]})
    reply = await ask(forwarder, query("db.corp.test."), (b"db", b"corp", b"test"))
    assert reply.rcode() == dns.rcode.SERVFAIL
    assert not others.seen


async def test_without_any_upstream_it_is_servfail_with_opt(forwarder):
    reply = await ask(forwarder, query(use_edns=0, ednsflags=dns.flags.DO))
    assert reply.rcode() == dns.rcode.SERVFAIL
    assert reply.flags & ~0xF == dns.flags.QR | dns.flags.RD | dns.flags.RA
    assert reply.payload == 1232
    assert reply.ednsflags == dns.flags.DO
    assert (await ask(forwarder)).edns == -1


async def test_name_of_one_label_is_servfail(forwarder, upstreams, says):
    upstream = await upstreams.start(says(A_RECORD))
    forwarder.configure([upstream.address], {})
    assert (await ask(forwarder, query("host."), (b"host",))).rcode() == dns.rcode.SERVFAIL
    assert (await ask(forwarder, query(".", "NS"), ())).rcode() == dns.rcode.SERVFAIL
    assert not upstream.seen


async def test_configuration_at_run_time_leaves_questions_in_flight_alone(forwarder, upstreams, says):
    before, after = await upstreams.silent(), await upstreams.start(says((NAME, 1, "IN", "A", "192.0.2.2")))
    forwarder.configure([before.address], {})
    wire = query()
    first = asyncio.create_task(ask(forwarder, wire))
    await before.asked.wait()
    forwarder.configure([after.address], {})
    assert addresses(await ask(forwarder, wire)) == ["192.0.2.2"]
    before.send(says(A_RECORD)(before.seen[0], False), before.peers[0])
    assert addresses(await first) == ["192.0.2.53"]


async def test_more_questions_than_may_be_in_flight_are_servfail_at_once(counters, upstreams, says):
    forwarder = Forwarder(counters, domain=CLUSTER, most_in_flight=4)  # three quarters of them for one server
    upstream = await upstreams.silent()
    forwarder.configure([upstream.address], {})
    waiting = [
        asyncio.create_task(ask(forwarder, query(f"{n}.example.org."), (b"%d" % n, b"example", b"org")))
        for n in range(3)
    ]
    while len(upstream.seen) < 3:
        await upstream.asked.wait()
        upstream.asked.clear()
    assert (await ask(forwarder)).rcode() == dns.rcode.SERVFAIL
    assert forwarder.overloads == 1
    for seen, peer in zip(upstream.seen, upstream.peers, strict=True):
        upstream.send(says()(seen, False), peer)
    assert [reply.rcode() for reply in await asyncio.gather(*waiting)] == [dns.rcode.NOERROR] * 3
    upstream.script = says(A_RECORD)
    assert addresses(await ask(forwarder)) == ["192.0.2.53"]


async def test_own_address_is_left_out_with_a_warning(counters, upstreams, says, caplog):
    upstream = await upstreams.start(says(A_RECORD))
    own = (upstream.address.host, upstream.address.port)
    for listener in (own, ("0.0.0.0", own[1]), ("::", own[1])):
        caplog.clear()
        forwarder = Forwarder(counters, domain=CLUSTER, own=[listener])
        with caplog.at_level(logging.WARNING):
            forwarder.configure([upstream.address], {})
        assert f"{upstream.address} is left out, it is this server itself" in caplog.text
        assert (await ask(forwarder)).rcode() == dns.rcode.SERVFAIL
    assert not upstream.seen


async def test_loopback_upstream_on_another_port_is_asked(counters, upstreams, says):
    upstream = await upstreams.start(says(A_RECORD))
    forwarder = Forwarder(counters, domain=CLUSTER, own=[("0.0.0.0", upstream.address.port + 1)])
    forwarder.configure([upstream.address], {})
    assert addresses(await ask(forwarder)) == ["192.0.2.53"]


async def test_upstream_may_have_an_ipv6_address(forwarder, upstreams, says):
    upstream = await upstreams.start(says(A_RECORD), "::1")
    forwarder.configure([upstream.address], {})
    for tcp in (False, True):
        assert addresses(await ask(forwarder, tcp=tcp)) == ["192.0.2.53"]


async def test_outcomes_are_counted(forwarder, upstreams, says, counters):
    for script in (
        says(A_RECORD),
        says(),
        says(rcode=dns.rcode.NXDOMAIN),
        says(rcode=dns.rcode.REFUSED),
        says(rcode=dns.rcode.SERVFAIL),
    ):
        upstream = await upstreams.start(script)
        forwarder.configure([upstream.address], {})
        await ask(forwarder)
    recursive = counters["recursive"]
    counted = {outcome.name: recursive.outcomes[outcome] for outcome in Outcome}
    once = ("ANSWERED", "NODATA", "NXDOMAIN", "REFUSED", "SERVFAIL")
    assert counted == {name: int(name in once) for name in counted}
    assert recursive.timed == recursive.answered() == 5


async def test_silent_server_leaves_places_to_the_others(counters, upstreams, says):
    forwarder = Forwarder(counters, domain=CLUSTER, most_in_flight=8)
    silent, lively = await upstreams.silent(), await upstreams.start(says(A_RECORD))
    forwarder.configure([lively.address], {(b"dead", b"test"): [silent.address]})
    waiting = [
        asyncio.create_task(ask(forwarder, query(f"{n}.dead.test."), (b"%d" % n, b"dead", b"test")))
        for n in range(20)
    ]
    await asyncio.sleep(0)
    assert addresses(await ask(forwarder)) == ["192.0.2.53"]
    replies = await asyncio.gather(*waiting)
    assert {reply.rcode() for reply in replies} == {dns.rcode.SERVFAIL}
    assert forwarder.overloads == 14
