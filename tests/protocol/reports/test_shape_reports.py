"""How answers are shaped, turned and refused: faults of servers of this kind (tests/README.md lists them)."""

import pytest

from kubedns.objects import Topology
from kubedns.skydns.answers import Policy
from kubedns.zone.clusterzone import ClusterZone
from tests.protocol.reading import ask, read
from tests.protocol.reports.apicluster import Cluster, D, crowd, endpoint, is_nxdomain
from tests.protocol.served import Served


@pytest.mark.parametrize(
    ("payload", "limit"), [(None, 512), (100, 512), (512, 512), (1232, 1232), (4096, 1232)]
)
def test_answer_of_200_addresses_is_cut_at_whole_records(cluster, payload, limit):
    cluster.service("shop", "crowd")
    cluster.slice("shop", "s", "crowd", *crowd(200))
    for _ in range(3):
        reply = cluster.ask(f"crowd.shop.svc.{D}", tcp=False, payload=payload)
        assert reply.truncated
        assert limit - 16 < reply.size <= limit
        assert reply.answer
    assert len(cluster.addresses(f"crowd.shop.svc.{D}")) == 200


def test_answer_of_3500_addresses_fits_one_message_over_tcp(cluster):
    cluster.service("shop", "crowd")
    for part in range(35):
        cluster.slice("shop", f"s{part}", "crowd", *crowd(3500)[part * 100 : part * 100 + 100])
    for _ in range(2):
        reply = cluster.ask(f"crowd.shop.svc.{D}")
        assert not reply.truncated
        assert len(reply.rdatas("A")) == 3500


def test_answer_beyond_64_kib_over_tcp_is_cut_and_counted(cluster):
    cluster.service("shop", "crowd")
    cluster.slice("shop", "s", "crowd", *crowd(3500), ports=[{"name": "http", "port": 80}])
    reply = cluster.ask(f"_http._tcp.crowd.shop.svc.{D}", "SRV")
    assert reply.truncated
    assert reply.size > 65000
    counters = cluster.served.counters.systems["auth"]
    assert counters.outcomes[5] == 1


def test_additional_records_go_without_tc(cluster):
    cluster.service("shop", "some")
    cluster.slice("shop", "s", "some", *crowd(7), ports=[{"name": "http", "port": 80}])
    name = f"_http._tcp.some.shop.svc.{D}"
    whole = cluster.ask(name, "SRV")
    assert len(whole.additional) == 7
    reply = cluster.ask(name, "SRV", tcp=False)
    assert not reply.truncated
    assert len(reply.answer) == 7
    assert reply.additional == ()
    assert len(cluster.ask(name, "SRV", tcp=False, payload=1232).additional) == 7


def test_federation_takes_no_ordinary_name_over(cluster):
    federations = {"prod": "fed.example.test"}
    cluster.service("shop", "web", "10.0.0.10")
    cluster.service("prod", "web", "10.0.0.11")
    cluster.service("prod", "db")
    cluster.slice("prod", "s", "db", endpoint("10.1.0.1", "db-0"), ports=[{"name": "pg", "port": 5432}])
    federated = f"web.shop.prod.svc.{D}"
    assert is_nxdomain(cluster.ask(federated))
    cluster.zone.configure_federations(federations, None)
    assert cluster.addresses(federated) == {"10.0.0.10"}
    missing = cluster.ask(f"nope.shop.prod.svc.{D}")
    assert (missing.rcode, missing.answer) == ("SERVFAIL", ())
    cluster.zone.configure_federations(federations, Topology("z1", "r1"))
    elsewhere = cluster.ask(f"nope.shop.prod.svc.{D}")
    assert elsewhere.rdatas("CNAME") == {"nope.shop.prod.svc.z1.r1.fed.example.test."}
    assert cluster.addresses(f"web.prod.svc.{D}") == {"10.0.0.11"}
    assert cluster.addresses(f"db-0.db.prod.svc.{D}") == {"10.1.0.1"}
    reply = cluster.ask(f"_pg._tcp.db.prod.svc.{D}", "SRV")
    assert {record.rdata for record in reply.additional} == {"10.1.0.1"}
    assert is_nxdomain(cluster.ask(f"*.shop.prod.svc.{D}"))
    assert is_nxdomain(cluster.ask(f"web.shop.other.svc.{D}"))
    cluster.zone.configure_federations({}, None)
    assert is_nxdomain(cluster.ask(federated))


def test_wildcards_answer_by_default_and_nothing_when_off(loop):
    for policy, found in ((Policy(), True), (Policy(wildcards=False), False)):
        cluster = Cluster(loop, policy=policy)
        cluster.service("shop", "web", "10.0.0.10", ports=[{"name": "http", "port": 80}])
        for name in (f"*.*.*.svc.{D}", f"*.web.shop.svc.{D}", f"web.*.svc.{D}", f"_http._tcp.*.shop.svc.{D}"):
            assert cluster.addresses(name) == ({"10.0.0.10"} if found else set())
            assert (cluster.ask(name).rcode == "NXDOMAIN") != found
        for name in (f"*.shop.svc.{D}", f"*.*.svc.{D}", f"*.shop.*.{D}"):
            assert is_nxdomain(cluster.ask(name))
        assert cluster.addresses(f"web.shop.svc.{D}") == {"10.0.0.10"}


def test_of_several_aliases_under_a_wildcard_one_is_given_whatever_came_first(loop):
    answers = []
    for order in (("a", "b"), ("b", "a")):
        cluster = Cluster(loop)
        for name in order:
            cluster.alias("shop", name, f"{name}.example.test")
        answers.append(cluster.ask(f"*.shop.svc.{D}", "CNAME").answer)
    assert answers[0] == answers[1]
    assert len(answers[0]) == 1


def test_answers_turn_from_one_question_to_the_next_also_when_kept(cluster):
    cluster.service("shop", "peer")
    cluster.slice("shop", "s", "peer", *crowd(5))
    query = ask(f"peer.shop.svc.{D}")
    replies = [cluster.served.ask(query) for _ in range(300)]
    assert len(set(replies)) == 5
    assert len({read(query, reply).answer for reply in replies}) == 1


@pytest.mark.parametrize(("count", "weight"), [(3, 33), (100, 1), (101, 1), (250, 1)])
def test_srv_weights_share_100_and_none_is_0(cluster, count, weight):
    cluster.service("shop", "peer")
    cluster.slice("shop", "s", "peer", *crowd(count), ports=[{"name": "x", "port": 1}])
    for name in (f"_x._tcp.peer.shop.svc.{D}", f"peer.shop.svc.{D}"):
        query = ask(name, "SRV")
        reply = read(query, cluster.served.ask(query, tcp=True), tcp=True)
        assert {record.rdata.split()[1] for record in reply.answer} == {str(weight)}
        assert len(reply.answer) == count


def test_before_the_first_sync_own_names_are_refused(loop):
    zone = ClusterZone((b"cluster", b"local"))
    served = Served(zone, loop)
    query = ask(f"web.shop.svc.{D}")
    assert read(query, served.ask(query)).rcode == "REFUSED"
    reverse = ask("1.0.0.10.in-addr.arpa", "PTR")
    assert read(reverse, served.ask(reverse)).rcode == "REFUSED"
    assert served.forwarder.forwarded == []
    zone.mark_synced()
    assert read(query, served.ask(query)).rcode == "NXDOMAIN"


def test_negative_answers_carry_the_smaller_of_ttl_and_minimum(loop):
    cluster = Cluster(loop, policy=Policy(negative_ttl=5))
    (soa,) = cluster.ask(f"nope.shop.svc.{D}").authority
    assert soa.ttl == 5 == int(soa.rdata.split()[-1])
    assert cluster.ask(D, "SOA").answer[0].ttl == 3600
