"""Targets of aliases: what upstreams say of a name, as values."""

import dns.flags
import dns.message
import dns.rcode
import dns.rdatatype

from kubedns.dns.names import to_wire
from kubedns.dns.records import UNRESOLVED, UpstreamRecord

LABELS = (b"db", b"corp", b"test")
SOA = ("corp.test.", 60, "IN", "SOA", "ns.corp.test. admin.corp.test. 1 2 3 4 5")
A, CNAME = 1, 5


async def test_chain_comes_with_owners_ttls_and_uncompressed_rdata(forwarder, upstreams, says):
    upstream = await upstreams.start(
        says(
            ("db.corp.test.", 7, "IN", "CNAME", "Real.corp.test."),
            ("Real.corp.test.", 300, "IN", "A", "192.0.2.1", "192.0.2.2"),
        )
    )
    forwarder.configure([upstream.address], {})
    found = await forwarder.resolve(LABELS, A)
    real = (b"Real", b"corp", b"test")
    assert found.rcode == dns.rcode.NOERROR
    assert found.records[0] == UpstreamRecord(LABELS, CNAME, 7, to_wire(real))
    assert set(found.records[1:]) == {
        UpstreamRecord(real, A, 300, bytes((192, 0, 2, 1))),
        UpstreamRecord(real, A, 300, bytes((192, 0, 2, 2))),
    }


async def test_question_recurses_and_offers_edns(forwarder, upstreams, says):
    upstream = await upstreams.start(says())
    forwarder.configure([upstream.address], {})
    await forwarder.resolve(LABELS, 28)
    asked = dns.message.from_wire(upstream.seen[0])
    assert asked.question[0].to_text() == "db.corp.test. IN AAAA"
    assert asked.flags == dns.flags.RD
    assert asked.payload == 1232


async def test_negative_answers_keep_their_soa(forwarder, upstreams, says):
    for rcode in (dns.rcode.NXDOMAIN, dns.rcode.NOERROR):
        upstream = await upstreams.start(says(rcode=rcode, authority=[SOA]))
        forwarder.configure([upstream.address], {})
        found = await forwarder.resolve(LABELS, A)
        assert (found.rcode, found.records) == (rcode, ())
        assert found.soa is not None
        assert (found.soa.owner, found.soa.ttl) == ((b"corp", b"test"), 60)
        assert found.soa.rdata.startswith(to_wire((b"ns", b"corp", b"test")))


async def test_server_without_edns_is_asked_without(forwarder, upstreams, says):
    def script(wire, tcp):
        old = dns.message.from_wire(wire).edns >= 0
        return says(rcode=dns.rcode.FORMERR)(wire, tcp) if old else good(wire, tcp)

    good = says(("db.corp.test.", 7, "IN", "A", "192.0.2.1"))
    upstream = await upstreams.start(script)
    forwarder.configure([upstream.address], {})
    assert len((await forwarder.resolve(LABELS, A)).records) == 1


async def test_truncated_answer_is_completed_over_tcp(forwarder, upstreams, says):
    many = [("db.corp.test.", 7, "IN", "A", f"192.0.2.{n}") for n in range(200)]
    upstream = await upstreams.start(
        lambda wire, tcp: says(*many)(wire, tcp) if tcp else says(many[0], flags=dns.flags.TC)(wire, tcp)
    )
    forwarder.configure([upstream.address], {})
    assert len((await forwarder.resolve(LABELS, A)).records) == 200


async def test_every_failure_is_servfail(forwarder, upstreams, says):
    assert await forwarder.resolve(LABELS, A) == UNRESOLVED
    forwarder.configure([upstreams.refusing()], {})
    assert await forwarder.resolve(LABELS, A) == UNRESOLVED
    half = await upstreams.start(
        says(("db.corp.test.", 7, "IN", "A", "192.0.2.1"), flags=dns.flags.TC), tcp=False
    )
    forwarder.configure([half.address], {})
    assert await forwarder.resolve(LABELS, A) == UNRESOLVED
    assert await forwarder.resolve((b"a" * 64, b"test"), A) == UNRESOLVED
    assert await forwarder.resolve((b"a" * 63,) * 4, A) == UNRESOLVED


async def test_stub_domain_is_asked(forwarder, upstreams, says):
    stub = await upstreams.start(says(("db.corp.test.", 7, "IN", "A", "192.0.2.1")))
    others = await upstreams.silent()
    forwarder.configure([others.address], {(b"corp", b"test"): [stub.address]})
    assert (await forwarder.resolve(LABELS, A)).rcode == dns.rcode.NOERROR
    assert not others.seen
