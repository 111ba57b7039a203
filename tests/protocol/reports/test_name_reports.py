"""Which names exist and what they have: faults of servers of this kind (tests/README.md lists them)."""

import pytest

from tests.protocol.reading import ask
from tests.protocol.reports.apicluster import Cluster, D, endpoint, is_nodata, is_nxdomain


@pytest.mark.parametrize("rdtype", ["AAAA", "MX", "TXT", "HTTPS", "CAA", "TYPE65280"])
def test_name_with_a_only_is_nodata_for_every_other_type(cluster, rdtype):
    cluster.service("shop", "web", "10.0.0.10")
    cluster.service("shop", "peer")
    cluster.slice("shop", "s", "peer", endpoint("10.1.0.1"))
    for name in ("web.shop.svc", "peer.shop.svc", "10-0-0-9.shop.pod"):
        assert is_nodata(cluster.ask(f"{name}.{D}", rdtype))
    assert is_nxdomain(cluster.ask(f"nope.shop.svc.{D}", rdtype))


def test_alias_without_the_asked_type_keeps_its_cname(cluster):
    cluster.service("shop", "web", "10.0.0.10")
    cluster.alias("shop", "ext", f"web.shop.svc.{D}")
    reply = cluster.ask(f"ext.shop.svc.{D}", "MX")
    assert reply.rcode == "NOERROR"
    assert reply.rdatas("CNAME") == {f"web.shop.svc.{D}."}
    assert [record.rdtype for record in reply.authority] == ["SOA"]


def test_names_in_between_exist_and_never_list_what_is_below(cluster):
    cluster.service("shop", "web", "10.0.0.10", ports=[{"name": "http", "port": 80}])
    cluster.alias("shop", "ip", "192.0.2.7")
    cluster.alias("shop", "ext", "up.example.test")
    for name in (D, f"svc.{D}", f"shop.svc.{D}", f"_tcp.web.shop.svc.{D}", f"pod.{D}", f"dns.{D}"):
        for rdtype in ("A", "AAAA", "SRV", "CNAME", "TXT"):
            assert is_nodata(cluster.ask(name, rdtype)), (name, rdtype)


def test_mixed_case_is_answered_alike_and_echoed(cluster):
    cluster.service("shop", "web", "10.0.0.10", ports=[{"name": "http", "port": 80}])
    cluster.alias("shop", "ext", f"web.shop.svc.{D}")
    for name, rdtype in (
        ("wEb.sHoP.SvC.ClUsTeR.LoCaL.", "A"),
        ("_HTTP._Tcp.web.shop.SVC.cluster.local.", "SRV"),
        ("10.0.0.10.IN-ADDR.ARPA.", "PTR"),
        ("10-0-0-9.SHOP.Pod.cluster.LOCAL.", "A"),
        ("EXT.shop.svc.cluster.local.", "CNAME"),
        ("EXT.shop.svc.cluster.local.", "A"),
    ):
        reply = cluster.ask(name, rdtype)
        same = cluster.ask(name.lower(), rdtype)
        assert {r.rdata for r in reply.answer} == {r.rdata for r in same.answer} != set(), name
        assert name in {record.owner for record in reply.answer}


def test_domain_in_capitals_is_the_same_domain(loop):
    cluster = Cluster(loop, domain="Cluster.Local")
    cluster.service("shop", "web", "10.0.0.10")
    assert cluster.addresses(f"web.shop.svc.{D}") == {"10.0.0.10"}


def test_pods_that_share_a_hostname_have_all_their_addresses(cluster):
    cluster.service("shop", "peer")
    pods = [endpoint(f"10.1.0.{last}", "db") for last in (1, 2, 3)]
    cluster.slice("shop", "four", "peer", *pods, ports=[{"name": "pg", "port": 5432}])
    everyone = {"10.1.0.1", "10.1.0.2", "10.1.0.3"}
    assert cluster.addresses(f"db.peer.shop.svc.{D}") == everyone
    assert cluster.addresses(f"peer.shop.svc.{D}") == everyone
    reply = cluster.ask(f"_pg._tcp.peer.shop.svc.{D}", "SRV")
    assert reply.rdatas("SRV") == {f"10 33 5432 db.peer.shop.svc.{D}."}
    assert {record.rdata for record in reply.additional} == everyone
    cluster.slice("shop", "six", "peer", endpoint("fd00::1", "db"), family="IPv6")
    assert cluster.addresses(f"db.peer.shop.svc.{D}") == everyone
    assert cluster.addresses(f"db.peer.shop.svc.{D}", "AAAA") == {"fd00::1"}


def test_slice_written_by_hand_resolves_by_its_label_alone(cluster):
    cluster.service("default", "global")
    cluster.service("default", "other")
    nodes = [endpoint("10.0.0.1", "node-0", ready=True), endpoint("10.0.0.2", "node-1", ready=True)]
    cluster.slice("default", "zzz-random", "global", *nodes)
    assert cluster.addresses(f"global.default.svc.{D}") == {"10.0.0.1", "10.0.0.2"}
    assert cluster.addresses(f"node-0.global.default.svc.{D}") == {"10.0.0.1"}
    cluster.slice("default", "zzz-random", "other", *nodes)
    assert is_nxdomain(cluster.ask(f"global.default.svc.{D}"))
    assert cluster.addresses(f"other.default.svc.{D}") == {"10.0.0.1", "10.0.0.2"}
    cluster.slice("default", "zzz-random", None, *nodes)
    assert is_nxdomain(cluster.ask(f"other.default.svc.{D}"))
    cluster.slice("default", "zzz-random", "global", *nodes)
    cluster.delete_slice("default", "zzz-random")
    assert is_nxdomain(cluster.ask(f"node-0.global.default.svc.{D}"))


def test_only_ready_decides_and_absent_means_ready(cluster):
    cluster.service("shop", "peer")
    states = [
        endpoint("10.1.0.1"),
        endpoint("10.1.0.2", ready=None),
        endpoint("10.1.0.3", ready=False),
        endpoint("10.1.0.4", ready=False, serving=True, terminating=True),
        endpoint("10.1.0.5", ready=True, serving=False, terminating=True),
    ]
    cluster.slice("shop", "s", "peer", *states)
    assert cluster.addresses(f"peer.shop.svc.{D}") == {"10.1.0.1", "10.1.0.2", "10.1.0.5"}
    cluster.slice("shop", "s", "peer", *states[:2], endpoint("10.1.0.3", ready=True))
    assert "10.1.0.3" in cluster.addresses(f"peer.shop.svc.{D}")
    cluster.slice("shop", "s", "peer", endpoint("10.1.0.1", ready=False))
    assert is_nxdomain(cluster.ask(f"peer.shop.svc.{D}"))


def test_reverse_name_has_the_hostname_and_never_a_hashed_one_beside_it(cluster):
    cluster.service("shop", "all")
    cluster.service("shop", "peer")
    cluster.service("shop", "front", "10.96.0.9")
    cluster.slice("shop", "a", "all", endpoint("10.1.0.5"))
    cluster.slice("shop", "p", "peer", endpoint("10.1.0.5", "db-0"))
    cluster.slice("shop", "f", "front", endpoint("10.1.0.5"))
    for _ in range(50):
        assert cluster.ask("5.0.1.10.in-addr.arpa", "PTR").rdatas("PTR") == {f"db-0.peer.shop.svc.{D}."}
    cluster.service("shop", "x")
    cluster.slice("shop", "x", "x", endpoint("10.1.0.5", "db-0"))
    first = cluster.served.ask(ask("5.0.1.10.in-addr.arpa", "PTR"))
    assert first == cluster.served.ask(ask("5.0.1.10.in-addr.arpa", "PTR"))
    cluster.delete_service("shop", "peer")
    assert cluster.ask("5.0.1.10.in-addr.arpa", "PTR").rdatas("PTR") == {f"db-0.x.shop.svc.{D}."}


def test_reverse_name_has_no_record_of_another_type(cluster):
    cluster.service("shop", "six", "fd00::a")
    name = "a.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.d.f.ip6.arpa."
    assert cluster.ask(name, "PTR").rdatas("PTR") == {f"six.shop.svc.{D}."}
    reply = cluster.ask(name, "A")
    assert is_nodata(reply)
    assert reply.authority[0].owner == name


def test_alias_is_in_the_answer_whatever_becomes_of_its_target(cluster):
    for target, rcode, addresses in (
        ("up.example.test", "NOERROR", {"192.0.2.9"}),
        ("UP.Example.Test.", "NOERROR", {"192.0.2.9"}),
        ("gone.example.test", "NXDOMAIN", set()),
        ("dead.example.test", "SERVFAIL", set()),
    ):
        cluster.alias("shop", "ext", target)
        reply = cluster.ask(f"ext.shop.svc.{D}")
        assert (reply.rcode, reply.rdatas("A")) == (rcode, addresses)
        assert reply.rdatas("CNAME") == {target.lower().rstrip(".") + "."}
        assert {record.rdtype for record in cluster.ask(f"ext.shop.svc.{D}", "CNAME").answer} == {"CNAME"}


def test_every_type_of_a_service_is_exact_after_it_changes(cluster):
    name = f"ext.shop.svc.{D}"
    cluster.service("shop", "ext", "10.0.0.5")
    assert cluster.addresses(name) == {"10.0.0.5"}
    cluster.alias("shop", "ext", "192.0.2.7")
    assert cluster.addresses(name) == {"192.0.2.7"}
    cluster.slice("shop", "s", "ext", endpoint("10.1.0.1"))
    cluster.alias("shop", "ext", "up.example.test")
    assert cluster.ask(name).rdatas("CNAME") == {"up.example.test."}
    cluster.service("shop", "ext")
    assert cluster.addresses(name) == {"10.1.0.1"}
    assert cluster.ask("5.0.0.10.in-addr.arpa", "PTR").rcode == "REFUSED"
    cluster.service("shop", "ext", "10.0.0.6")
    assert cluster.addresses(name) == {"10.0.0.6"}
    cluster.alias("shop", "ext", "up.example.test")
    cluster.delete_service("shop", "ext")
    assert is_nxdomain(cluster.ask(name))
    cluster.delete_slice("shop", "s")
    assert '"svc":{"ChildNodes":{},"Entries":{}}' in "".join(cluster.zone.dump())


def test_aliases_in_a_ring_and_long_chains_end(cluster):
    cluster.alias("shop", "a", f"b.shop.svc.{D}")
    cluster.alias("shop", "b", f"a.shop.svc.{D}")
    assert cluster.ask(f"a.shop.svc.{D}").rcode == "SERVFAIL"
    for number in range(10):
        cluster.alias("shop", f"c{number}", f"c{number + 1}.shop.svc.{D}")
    cluster.service("shop", "c10", "10.0.0.10")
    eight = cluster.ask(f"c2.shop.svc.{D}")
    assert len(eight.rdatas("CNAME")) == 8
    assert eight.rdatas("A") == {"10.0.0.10"}
    nine = cluster.ask(f"c1.shop.svc.{D}")
    assert (nine.rcode, nine.answer) == ("SERVFAIL", ())


def test_srv_names_only_named_ports_with_their_own_numbers(cluster):
    cluster.service("shop", "mq")
    cluster.slice(
        "shop",
        "s",
        "mq",
        endpoint("10.1.0.1", "db-0"),
        endpoint("10.1.0.2"),
        ports=[
            {"name": "amqp", "port": 5672, "protocol": "TCP"},
            {"name": "", "port": 9090},
            {"name": "null", "port": None},
            {"name": "dns", "port": 53, "protocol": "UDP"},
        ],
    )
    reply = cluster.ask(f"_amqp._tcp.mq.shop.svc.{D}", "SRV")
    targets = {rdata.split()[3] for rdata in reply.rdatas("SRV")}
    assert {rdata.split()[2] for rdata in reply.rdatas("SRV")} == {"5672"}
    assert f"db-0.mq.shop.svc.{D}." in targets
    (hashed,) = targets - {f"db-0.mq.shop.svc.{D}."}
    assert cluster.addresses(hashed) == {"10.1.0.2"}
    assert {record.rdata for record in reply.additional} == {"10.1.0.1", "10.1.0.2"}
    for nothing in ("_9090._tcp", "_null._tcp", "_dns._tcp", "_amqp._udp"):
        assert is_nxdomain(cluster.ask(f"{nothing}.mq.shop.svc.{D}", "SRV"))
    cluster.service("shop", "web", "10.0.0.1", ports=[{"name": "http", "port": 80, "targetPort": 8080}])
    assert cluster.ask(f"_http._tcp.web.shop.svc.{D}", "SRV").rdatas("SRV") == {
        f"10 100 80 web.shop.svc.{D}."
    }
