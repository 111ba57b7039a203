"""Names outside of the cluster that are answered here: those of the key `hosts`, and resolver.arpa."""

import dns.message
import pytest

from kubedns.shared.servers import ServerAddress
from tests.protocol.reading import Record
from tests.protocol.upstream.conftest import FakeUpstream

HOSTS = "10.9.9.9 db.corp.test both.corp.test\n2001:db8::9 both.corp.test\n"
DB, BELOW = "db.corp.test.", "a.db.corp.test."


@pytest.fixture
async def upstream(forwarder, upstreams, says):
    """Tell of one address for the name below, whatever is asked."""
    upstream = await upstreams.start(says((BELOW, 300, "IN", "A", "192.0.2.1")))
    forwarder.configure([upstream.address], {})
    return upstream


@pytest.fixture
def with_hosts(name_server):
    name_server.set_hosts(HOSTS)
    return name_server


def names_seen(upstream: FakeUpstream) -> list[str]:
    queries = map(dns.message.from_wire, (*upstream.seen, *upstream.seen_tcp))
    return [query.question[0].name.to_text() for query in queries]


@pytest.mark.parametrize("spelling", [DB, "DB.Corp.test."])
async def test_name_of_hosts_has_its_address_for_thirty_seconds(with_hosts, upstream, spelling):
    reply = await with_hosts.ask(spelling)
    (record,) = reply.answer
    assert (record.ttl, record.rdtype, record.rdata) == (30, "A", "10.9.9.9")
    assert not names_seen(upstream)


async def test_name_of_hosts_with_both_families_has_both(with_hosts, upstream):
    assert (await with_hosts.ask("both.corp.test.")).rdatas("A") == {"10.9.9.9"}
    assert (await with_hosts.ask("both.corp.test.", "AAAA")).rdatas("AAAA") == {"2001:db8::9"}
    assert not names_seen(upstream)


@pytest.mark.parametrize("rdtype", ["AAAA", "HTTPS", "SVCB", "TXT", "MX", "CNAME", "SOA"])
async def test_other_type_of_a_name_of_hosts_is_nodata_at_once(with_hosts, upstream, rdtype):
    reply = await with_hosts.ask(DB, rdtype)
    assert (reply.rcode, reply.answer) == ("NOERROR", ())
    assert [record.rdtype for record in reply.authority] == ["SOA"]
    assert not names_seen(upstream)


async def test_name_below_one_of_hosts_is_forwarded(with_hosts, upstream):
    assert (await with_hosts.ask(BELOW)).answer == (Record(BELOW, 300, "A", "192.0.2.1"),)
    assert names_seen(upstream) == [BELOW]


async def test_address_of_hosts_has_the_first_name_as_its_reverse_name(with_hosts, upstream):
    assert (await with_hosts.ask("9.9.9.10.in-addr.arpa.", "PTR")).rdatas("PTR") == {DB}
    assert not names_seen(upstream)


@pytest.mark.parametrize(("rdtype", "addresses"), [("A", {"10.9.9.9"}), ("AAAA", set())])
async def test_external_name_to_a_name_of_hosts_stays_here(with_hosts, upstream, rdtype, addresses):
    with_hosts.add_alias("db", "db.corp.test")
    reply = await with_hosts.ask("db.shop.svc.cluster.local.", rdtype)
    assert (reply.rcode, reply.rdatas("CNAME"), reply.rdatas(rdtype)) == ("NOERROR", {DB}, addresses)
    assert not names_seen(upstream)


async def test_stub_server_named_in_hosts_is_asked_at_its_address(name_server, forwarder, upstreams, says):
    others = await upstreams.silent()
    stub = await upstreams.start(says(("www.stub.test.", 60, "IN", "A", "192.0.2.3")))
    forwarder.configure([others.address], {})
    name_server.set_hosts(f"{stub.address.host} ns.corp.test\n")
    by_name = {(b"stub", b"test"): (ServerAddress("ns.corp.test", stub.address.port),)}
    found = await name_server.stub_servers.with_addresses(by_name)
    forwarder.configure([others.address], found)
    assert (await name_server.ask("www.stub.test.")).rdatas("A") == {"192.0.2.3"}
    assert not names_seen(others)


@pytest.mark.parametrize("name", ["resolver.arpa.", "_dns.resolver.arpa.", "_DNS.Resolver.ARPA."])
@pytest.mark.parametrize("rdtype", ["SVCB", "A", "AAAA", "TXT", "PTR", "HTTPS", "SRV", "TYPE65280"])
async def test_resolver_arpa_is_nodata_for_every_type(name_server, upstream, name, rdtype):
    reply = await name_server.ask(name, rdtype)
    assert (reply.rcode, reply.answer) == ("NOERROR", ())
    assert [record.rdtype for record in reply.authority] == ["SOA"]
    assert not names_seen(upstream)
