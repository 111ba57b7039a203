"""What operators of DNS servers reported, between an upstream and a cluster that provoke it.

Names of `corp.test` are the upstream's, and its spelling says what it does: `chain9` leads to an
address by nine aliases, `tocluster` to a Service, `cookie` comes with an EDNS cookie.
"""

import itertools
import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import dns.edns
import dns.message
import dns.rcode
import dns.rdatatype
import dns.rrset
import pytest

from tests.integration.kubedns.programs import KubeDns, LocalApi
from tests.integration.kubedns.scripted import ScriptedServer

pytestmark = pytest.mark.integration
PRIVATE = dns.edns.OptionType.make(65001)
SHOP = "shop.svc.cluster.local."
WEB = f"web.{SHOP}"
WEB_ADDRESS, LAST_ADDRESS, HOSTS_ADDRESS = "10.96.0.20", "192.0.2.77", "10.9.9.9"
CHAINS = (5, 8, 9, 12)
REPLICAS = (3, 100, 101, 150)
LARGEST_SLICE = 100


def service(name: str, **spec: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "shop"}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}


def alias(name: str, target: str) -> dict[str, Any]:
    return service(name, type="ExternalName", externalName=target)


def replicated(count: int) -> Iterator[dict[str, Any]]:
    """Make a headless Service of so many pods, and its slices."""
    name = f"w{count}"
    yield service(name, clusterIP="None", ports=[{"name": "http", "port": 80}])
    for start in range(0, count, LARGEST_SLICE):
        pods = range(start, min(count, start + LARGEST_SLICE))
        labels = {
            "kubernetes.io/service-name": name,
            "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
            "service.kubernetes.io/headless": "",
        }
        yield {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {"name": f"{name}-{start}", "namespace": "shop", "labels": labels},
            "addressType": "IPv4",
            "endpoints": [
                {
                    "addresses": [f"10.244.{count}.{pod + 1}"],
                    "conditions": {"ready": True},
                    "hostname": f"p-{pod}",
                }
                for pod in pods
            ],
            "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}],
        }


def objects() -> list[dict[str, Any]]:
    return [
        service("web", clusterIP=WEB_ADDRESS, clusterIPs=[WEB_ADDRESS], ports=[{"name": "http", "port": 80}]),
        alias("ehosts", "db.corp.test"),
        alias("back", "tocluster.corp.test"),
        *(alias(f"chain{links}", f"chain{links}.corp.test") for links in CHAINS),
        *(item for count in REPLICAS for item in replicated(count)),
    ]


def corp(query: dns.message.Message) -> dns.message.Message:
    """Answer as the name says; another one of `corp.test` has one address of either family."""
    question = query.question[0]
    name = question.name.to_text()
    kind = dns.rdatatype.to_text(question.rdtype)
    reply = dns.message.make_response(query, recursion_available=True)
    first = name.partition(".")[0]
    records: list[tuple[str, str, str]] = []
    if first.startswith("chain"):
        links = int(first.removeprefix("chain"))
        owners = [name, *(f"hop{link}-of-{links}.corp.test." for link in range(links))]
        records = [(owner, "CNAME", target) for owner, target in itertools.pairwise(owners)]
        if kind == "A":
            records.append((owners[-1], kind, LAST_ADDRESS))
    elif first.startswith("tocluster"):
        records = [(name, "CNAME", WEB)]
        if first == "tocluster-nx":
            reply.set_rcode(dns.rcode.NXDOMAIN)
    elif first == "tohosts":
        records = [(name, "CNAME", "db.corp.test."), ("db.corp.test.", "A", LAST_ADDRESS)]
    elif name == "_dns.resolver.arpa.":
        data = {"SVCB": "1 doh.corp.test. alpn=h2", "TXT": '"forwarded"', "A": "192.0.2.1"}
        records = [(name, kind, data[kind])]
    else:
        data = {"A": "192.0.2.1", "AAAA": "2001:db8::666"}
        records = [(name, kind, data[kind])] if kind in data else []
    reply.answer = [dns.rrset.from_text(owner, 300, "IN", rdtype, data) for owner, rdtype, data in records]
    if query.edns >= 0:
        cookie = dns.edns.GenericOption(dns.edns.COOKIE, b"our half, 16 oct")
        reply.use_edns(0, payload=1232, options=[cookie] if first == "cookie" else [])
    return reply


class Resolver(NamedTuple):
    """A record server, and the upstream that it asks."""

    server: KubeDns
    upstream: ScriptedServer

    def ask(
        self, name: str, rdtype: str = "A", *, tcp: bool = True, options: Sequence[dns.edns.Option] = ()
    ) -> dns.message.Message:
        """Ask with an OPT record, and these options in it."""
        query = dns.message.make_query(name, rdtype, use_edns=0, payload=1232, options=list(options))
        return dns.message.from_wire(self.server.ask(query.to_wire(), tcp=tcp))


@pytest.fixture(scope="module")
def resolver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Resolver]:
    scratch = tmp_path_factory.mktemp("resolver")
    config = scratch / "config"
    config.mkdir()
    (config / "hosts").write_text(f"{HOSTS_ADDRESS} db.corp.test\n")
    cluster = scratch / "cluster.json"
    cluster.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects()}))
    with LocalApi(str(cluster)) as api, ScriptedServer(corp) as upstream:
        flags = f"--kube-master-url={api.url}", f"--nameservers={upstream.where}", f"--config-dir={config}"
        with KubeDns(*flags) as server:
            yield Resolver(server.synced(), upstream)


def rdatas(reply: dns.message.Message, rdtype: str) -> list[str]:
    wanted = dns.rdatatype.from_text(rdtype)
    return [rdata.to_text() for rrset in reply.answer if rrset.rdtype == wanted for rdata in rrset]


@pytest.mark.parametrize(
    ("name", "option", "address"),
    [
        pytest.param("cookie.corp.test.", dns.edns.COOKIE, "192.0.2.1", id="outside"),
        pytest.param("cookie.corp.test.", PRIVATE, "192.0.2.1", id="outside, not asked for"),
        pytest.param(WEB, dns.edns.COOKIE, WEB_ADDRESS, id="cluster"),
    ],
)
def test_answer_has_an_option_record_without_options(resolver, name, option, address):
    reply = resolver.ask(name, tcp=False, options=[dns.edns.GenericOption(option, b"\3" * 8)])
    assert rdatas(reply, "A") == [address]
    assert (reply.edns, reply.options) == (0, ())


@pytest.mark.parametrize("tcp", [False, True], ids=["udp", "tcp"])
@pytest.mark.parametrize(
    ("option", "data"),
    [
        pytest.param(dns.edns.COOKIE, b"\4" * 8, id="cookie"),
        pytest.param(dns.edns.KEEPALIVE, b"", id="keepalive"),
        pytest.param(dns.edns.PADDING, bytes(12), id="padding"),
        pytest.param(dns.edns.ECS, b"\0\1\x18\0\xc6\x33\x64", id="client subnet"),
        pytest.param(PRIVATE, b"x", id="private"),
    ],
)
def test_option_of_a_client_is_not_relayed(resolver, option, data, tcp):
    name = f"option{int(option)}-{'tcp' if tcp else 'udp'}.corp.test."
    reply = resolver.ask(name, tcp=tcp, options=[dns.edns.GenericOption(option, data)])
    assert rdatas(reply, "A") == ["192.0.2.1"]
    (relayed,) = resolver.upstream.asked_for(name)
    assert (relayed.edns, relayed.options) == (0, ())


@pytest.mark.parametrize("links", CHAINS)
def test_external_name_follows_the_aliases_of_an_upstream(resolver, links):
    reply = resolver.ask(f"chain{links}.{SHOP}")
    assert reply.rcode() == dns.rcode.NOERROR
    assert rdatas(reply, "CNAME") == [
        f"chain{links}.corp.test.",
        *(f"hop{link}-of-{links}.corp.test." for link in range(links)),
    ]
    assert rdatas(reply, "A") == [LAST_ADDRESS]


@pytest.mark.parametrize("count", REPLICAS)
def test_srv_weight_is_never_zero(resolver, count):
    found = rdatas(resolver.ask(f"_http._tcp.w{count}.{SHOP}", "SRV"), "SRV")
    assert len(found) == count
    assert {int(text.split()[1]) for text in found} == {max(1, 100 // count)}


@pytest.mark.parametrize("name", ["tocluster", "tocluster-nx"])
def test_alias_of_an_upstream_into_the_cluster_has_the_address_of_the_service(resolver, name):
    reply = resolver.ask(f"{name}.corp.test.", tcp=False)
    assert reply.rcode() == dns.rcode.NOERROR
    assert (rdatas(reply, "CNAME"), rdatas(reply, "A")) == ([WEB], [WEB_ADDRESS])


def test_external_name_that_leads_back_has_the_address_of_the_service(resolver):
    reply = resolver.ask(f"back.{SHOP}", tcp=False)
    assert (rdatas(reply, "CNAME"), rdatas(reply, "A")) == (["tocluster.corp.test.", WEB], [WEB_ADDRESS])


@pytest.mark.parametrize("rdtype", ["SVCB", "A", "TXT"])
def test_resolver_arpa_has_no_records_and_is_not_forwarded(resolver, rdtype):
    reply = resolver.ask("_dns.resolver.arpa.", rdtype, tcp=False)
    assert (reply.rcode(), reply.answer) == (dns.rcode.NOERROR, [])
    assert not resolver.upstream.asked_for("_dns.resolver.arpa.")


@pytest.mark.parametrize(("rdtype", "addresses"), [("A", [HOSTS_ADDRESS]), ("AAAA", [])])
def test_external_name_to_a_name_of_hosts_has_its_address_and_no_other(resolver, rdtype, addresses):
    reply = resolver.ask(f"ehosts.{SHOP}", rdtype, tcp=False)
    assert reply.rcode() == dns.rcode.NOERROR
    assert (rdatas(reply, "CNAME"), rdatas(reply, rdtype)) == (["db.corp.test."], addresses)
    assert not resolver.upstream.asked_for("db.corp.test.")


def test_alias_of_an_upstream_to_a_name_of_hosts_has_the_address_there(resolver):
    reply = resolver.ask("tohosts.corp.test.", tcp=False)
    assert (rdatas(reply, "CNAME"), rdatas(reply, "A")) == (["db.corp.test."], [HOSTS_ADDRESS])
