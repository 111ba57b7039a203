"""The arguments of dnsmasq that the manifest ships, with what they are there for."""

import contextlib
import socket
import time
from pathlib import Path

import pytest
import yaml
from dnslib import DNSRecord

from tests.integration.nanny.conftest import CHECKOUT, wait_for

pytestmark = pytest.mark.integration

MANIFEST = Path(CHECKOUT, "deploy/base/deployment.yaml")


def shipped(kubedns_port: int) -> list[str]:
    """Return the words after `--` of the manifest's nanny, kube-dns being on another port."""
    for document in yaml.safe_load_all(MANIFEST.read_text()):
        for container in document["spec"]["template"]["spec"]["containers"]:
            words = container.get("args", [])
            if any(word.startswith("-kubednsServer") for word in words):
                given = words[words.index("--") + 1 :]
                return [
                    word.replace("$(CLUSTER_DOMAIN)", "cluster.test").replace("#10053", f"#{kubedns_port}")
                    for word in given
                ]
    raise AssertionError(f"no nanny in {MANIFEST}")


@pytest.fixture
def kubedns(name_server):
    return name_server(web_shop_svc_cluster_test="192.0.2.10")


def test_dead_upstreams_do_not_delay_cluster_names(start, kubedns):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as dead:
        dead.bind(("127.0.0.1", 0))
        nanny = start("--no-resolv", f"--server=127.0.0.1#{dead.getsockname()[1]}", *shipped(kubedns.port))
        nanny.wait_up()
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
            for number in range(300):
                client.sendto(DNSRecord.question(f"q{number}.ext").pack(), ("127.0.0.1", nanny.port))
        # So many fill the socket's buffer, which has no room for the next question until dnsmasq gets a core.
        wait_for("dnsmasq took the questions", lambda: octets_waiting(nanny.port) == 0)
        began = time.monotonic()
        for _ in range(20):
            assert nanny.addresses("web.shop.svc.cluster.test") == ["192.0.2.10"]
        assert time.monotonic() - began < 5
        assert nanny.metric("dnsmasq_nanny_concurrency_ceiling_total") == 0


def octets_waiting(port: int) -> int:
    """Return what waits in the receive buffers of a UDP port of IPv4 (proc(5), /proc/net/udp)."""
    lines = Path("/proc/net/udp").read_text().splitlines()[1:]
    sockets = [line.split() for line in lines]
    return sum(
        int(fields[4].partition(":")[2], 16) for fields in sockets if fields[1].endswith(f":{port:04X}")
    )


def test_idle_tcp_clients_do_not_keep_others_out(start, kubedns):
    nanny = start("--no-resolv", "--address=/a.test/192.0.2.9", *shipped(kubedns.port))
    nanny.wait_up()
    with contextlib.ExitStack() as clients:
        for _ in range(40):
            clients.enter_context(socket.create_connection(("127.0.0.1", nanny.port)))
        assert nanny.ask("a.test", tcp=True).rr


def test_resolver_arpa_is_asked_of_kube_dns(start, kubedns, name_server):
    upstream = name_server()
    kubedns_flag = f"--kubednsServer=127.0.0.1:{kubedns.port}"
    nanny = start(
        "--no-resolv", f"--server=127.0.0.1#{upstream.port}", *shipped(kubedns.port), flags=(kubedns_flag,)
    )
    nanny.wait_up()
    nanny.ask("_dns.resolver.arpa", "TXT")
    assert "_dns.resolver.arpa" in kubedns.seen
    assert "_dns.resolver.arpa" not in upstream.seen


def test_negative_answers_are_cached(start, kubedns, name_server):
    upstream = name_server()
    nanny = start("--no-resolv", f"--server=127.0.0.1#{upstream.port}", *shipped(kubedns.port))
    nanny.wait_up()
    for _ in range(50):
        assert nanny.rcode("missing.ext.test") == "NXDOMAIN"
    assert upstream.seen.count("missing.ext.test") <= 2
