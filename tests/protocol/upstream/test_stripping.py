"""Name servers that speak of names that are not theirs: of the cluster, of its addresses, of `hosts`."""

import dns.rcode
import pytest

from tests.protocol.reading import Record

EVIL = "cnto.evil.test."
WEB, MISSING = "web.shop.svc.cluster.local.", "nothing.shop.svc.cluster.local."
WEB_REVERSE = "20.0.96.10.in-addr.arpa."
FORGED = {"A": "6.6.6.6", "AAAA": "2001:db8::666"}
HONEST = Record("www.evil.test.", 60, "A", "192.0.2.1")


def spellings(name: str) -> list[str]:
    return [name, name.upper(), name.title()]


@pytest.fixture
async def attacker(forwarder, upstreams, says):
    """Make a server that answers everything alike the one that is asked."""

    async def start(*records, **sections):
        upstream = await upstreams.start(says(*records, **sections))
        forwarder.configure([upstream.address], {})
        return upstream

    return start


@pytest.mark.parametrize("target", spellings(WEB))
@pytest.mark.parametrize(("rdtype", "addresses"), [("A", {"10.96.0.20"}), ("AAAA", set())])
async def test_alias_into_the_cluster_has_the_service_and_no_forged_address(
    name_server, attacker, target, rdtype, addresses
):
    await attacker((EVIL, 60, "IN", "CNAME", target), (target, 60, "IN", rdtype, FORGED[rdtype]))
    reply = await name_server.ask(EVIL, rdtype)
    assert reply.rcode == "NOERROR"
    assert reply.rdatas("CNAME") == {target}
    assert reply.rdatas(rdtype) == addresses
    assert [record.rdtype for record in reply.authority] == ([] if addresses else ["SOA"])


@pytest.mark.parametrize("target", spellings(MISSING))
@pytest.mark.parametrize("rdtype", ["A", "AAAA"])
async def test_alias_to_a_missing_cluster_name_is_nxdomain(name_server, attacker, target, rdtype):
    await attacker((EVIL, 60, "IN", "CNAME", target), (target, 60, "IN", rdtype, FORGED[rdtype]))
    reply = await name_server.ask(EVIL, rdtype)
    assert reply.rcode == "NXDOMAIN"
    assert [(record.rdtype, record.rdata) for record in reply.answer] == [("CNAME", target)]
    assert [record.owner for record in reply.authority] == ["cluster.local."]


async def test_alias_asked_for_as_such_comes_without_what_is_beside_it(name_server, attacker):
    await attacker((EVIL, 60, "IN", "CNAME", WEB), (WEB, 60, "IN", "A", FORGED["A"]))
    reply = await name_server.ask(EVIL, "CNAME")
    assert reply.answer == (Record(EVIL, 60, "CNAME", WEB),)
    assert not reply.additional


@pytest.mark.parametrize("rcode", [dns.rcode.NXDOMAIN, dns.rcode.SERVFAIL])
async def test_rcode_beside_an_alias_into_the_cluster_is_not_the_attackers_to_say(
    name_server, attacker, rcode
):
    await attacker((EVIL, 60, "IN", "CNAME", WEB), rcode=rcode)
    reply = await name_server.ask(EVIL)
    assert (reply.rcode, reply.rdatas("A")) == ("NOERROR", {"10.96.0.20"})


@pytest.mark.parametrize("section", ["authority", "additional"])
@pytest.mark.parametrize(
    ("owner", "rdtype", "data"),
    [
        *((owner, "A", FORGED["A"]) for name in (WEB, MISSING) for owner in spellings(name)),
        (WEB.upper(), "AAAA", FORGED["AAAA"]),
        ("CLUSTER.LOCAL.", "NS", "ns.evil.test."),
        *((owner, "PTR", "evil.test.") for owner in spellings(WEB_REVERSE)),
    ],
)
async def test_record_that_is_ours_is_stripped_and_the_honest_rest_comes(
    name_server, attacker, section, owner, rdtype, data
):
    honest = Record("ns.evil.test.", 60, "A", "192.0.2.5")
    forged = (owner, 60, "IN", rdtype, data)
    kept = (honest.owner, honest.ttl, "IN", honest.rdtype, honest.rdata)
    await attacker((HONEST.owner, HONEST.ttl, "IN", HONEST.rdtype, HONEST.rdata), **{section: [forged, kept]})
    reply = await name_server.ask("www.evil.test.")
    assert reply.answer == (HONEST,)
    assert (reply.authority, reply.additional) == (
        ((honest,), ()) if section == "authority" else ((), (honest,))
    )


@pytest.mark.parametrize(
    ("name", "rdtype", "data"), [(WEB, "A", {"10.96.0.20"}), (WEB_REVERSE, "PTR", {WEB})]
)
async def test_own_name_is_answered_without_asking_the_attacker(name_server, attacker, name, rdtype, data):
    upstream = await attacker((name, 60, "IN", "A", FORGED["A"]))
    assert (await name_server.ask(name, rdtype)).rdatas(rdtype) == data
    assert not (upstream.seen)
    assert not (upstream.seen_tcp)


@pytest.mark.parametrize("target", spellings("db.corp.test."))
@pytest.mark.parametrize(("rdtype", "addresses"), [("A", {"10.9.9.9"}), ("AAAA", set())])
async def test_alias_to_a_name_of_hosts_has_the_address_there(
    name_server, attacker, target, rdtype, addresses
):
    name_server.set_hosts("10.9.9.9 db.corp.test\n")
    await attacker((EVIL, 60, "IN", "CNAME", target), (target, 60, "IN", rdtype, FORGED[rdtype]))
    reply = await name_server.ask(EVIL, rdtype)
    assert reply.rcode == "NOERROR"
    assert {alias.lower() for alias in reply.rdatas("CNAME")} == {"db.corp.test."}
    assert reply.rdatas(rdtype) == addresses


@pytest.mark.parametrize("owner", spellings("db.corp.test."))
async def test_record_of_a_name_of_hosts_is_stripped(name_server, attacker, owner):
    name_server.set_hosts("10.9.9.9 db.corp.test\n")
    honest = (HONEST.owner, HONEST.ttl, "IN", HONEST.rdtype, HONEST.rdata)
    await attacker(honest, additional=[(owner, 60, "IN", "A", FORGED["A"])])
    reply = await name_server.ask(HONEST.owner)
    assert (reply.answer, reply.additional) == ((HONEST,), ())
