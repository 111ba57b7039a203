"""What has broken in servers of this kind, each as a test; tests/README.md has the list."""

import pytest

from kubedns.cluster import project
from kubedns.objects import Topology
from kubedns.skydns.answers import Policy
from kubedns.zone.clusterzone import ClusterZone
from tests.protocol.oracle import Rr
from tests.protocol.reading import Reply, ask, read
from tests.protocol.served import Served, own_loop

D = "cluster.local"
OUTSIDE = {
    ("up.example.test", "A"): ("NOERROR", [Rr("up.example.test", "A", "192.0.2.9")]),
    ("gone.example.test", "A"): ("NXDOMAIN", []),
}


class Cluster:
    """Objects as the API has them, and questions about them."""

    def __init__(self, loop, *, domain=D, policy=None):
        self.zone = ClusterZone(tuple(domain.lower().encode().split(b".")))
        self.zone.mark_synced()
        self.served = Served(self.zone, loop, outside=OUTSIDE, policy=policy)

    def service(self, namespace, name, *ips, ports=(), **spec):
        body = {
            "metadata": {"namespace": namespace, "name": name},
            "spec": {"clusterIPs": list(ips) or ["None"], "ports": list(ports), **spec},
        }
        self.zone.services.apply({(namespace, name): project.service((namespace, name), body, [])})

    def alias(self, namespace, name, target):
        self.service(namespace, name, "", type="ExternalName", externalName=target)

    def slice(self, namespace, name, service, *endpoints, ports=(), family="IPv4"):
        body = {
            "metadata": {
                "namespace": namespace,
                "name": name,
                "labels": {"kubernetes.io/service-name": service} if service else {},
            },
            "addressType": family,
            "endpoints": list(endpoints),
            "ports": list(ports),
        }
        key = (namespace, name)
        self.zone.slices.apply({key: project.endpoint_slice(key, body, [])})

    def delete_service(self, namespace, name):
        self.zone.services.apply({(namespace, name): None})

    def delete_slice(self, namespace, name):
        self.zone.slices.apply({(namespace, name): None})

    def ask(self, name, rdtype="A", *, tcp=True, payload=None) -> Reply:
        query = ask(name, rdtype, payload=payload)
        return read(query, self.served.ask(query, tcp=tcp), tcp=tcp)

    def addresses(self, name, rdtype="A"):
        return self.ask(name, rdtype).rdatas(rdtype)


def endpoint(address, hostname=None, **conditions):
    return {
        "addresses": [address],
        **({"hostname": hostname} if hostname else {}),
        **({"conditions": conditions} if conditions else {}),
    }


@pytest.fixture
def loop():
    with own_loop() as loop:
        yield loop


@pytest.fixture
def cluster(loop):
    return Cluster(loop)


def is_nodata(reply):
    return reply.rcode == "NOERROR" and not reply.answer and [r.rdtype for r in reply.authority] == ["SOA"]


def is_nxdomain(reply):
    return reply.rcode == "NXDOMAIN" and not reply.answer and [r.rdtype for r in reply.authority] == ["SOA"]


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
    assert '"svc":{}' in "".join(cluster.zone.dump())


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


def crowd(count):
    return [endpoint(f"10.{1 + n // 65536}.{n // 256 % 256}.{n % 256}", f"pod-{n}") for n in range(count)]


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
        for name in (f"*.*.svc.{D}", f"*.web.shop.svc.{D}", f"web.*.svc.{D}", f"_http._tcp.*.shop.svc.{D}"):
            assert cluster.addresses(name) == ({"10.0.0.10"} if found else set())
            assert (cluster.ask(name).rcode == "NXDOMAIN") != found
        assert is_nxdomain(cluster.ask(f"*.shop.svc.{D}"))
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
    replies = [cluster.served.ask(query) for _ in range(10)]
    assert len(set(replies)) == 5
    assert len({read(query, reply).answer for reply in replies}) == 1


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
