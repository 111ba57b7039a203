"""Many questions at once: dead upstreams, wildcard storms, several addresses."""

import socket
import threading
import time
from contextlib import suppress

import pytest

from tests.integration.kubedns.programs import KubeDns, ask_udp
from tests.protocol.reading import ask, read

pytestmark = pytest.mark.integration
WEB = ask("web.default.svc.cluster.local")
SECONDS = 4.0
PER_SECOND = 1000
SLOWEST_SECONDS = 1.0


def test_reply_leaves_from_the_address_that_was_asked(start, cases_api):
    server = start(f"--kube-master-url={cases_api.url}").synced()
    for host in ("127.0.0.1", "127.0.0.2", "127.9.8.7"):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
            client.settimeout(10.0)
            client.sendto(WEB, (host, server.dns_port))
            reply, peer = client.recvfrom(4096)
        assert peer == (host, server.dns_port)
        assert read(WEB, reply).rdatas("A") == {"10.96.10.1"}


def test_dual_stack_address_answers_over_both_families(start, cases_api):
    server = start(f"--kube-master-url={cases_api.url}", "--dns-bind-address=::").synced()
    for host in ("127.0.0.1", "127.0.0.2", "::1"):
        for tcp in (False, True):
            assert read(WEB, server.ask(WEB, tcp=tcp, host=host), tcp=tcp).rdatas("A") == {"10.96.10.1"}


class Flood:
    """Sends packets to a server at a rate until told to stop; replies are thrown away."""

    def __init__(self, server: KubeDns, packets: list[bytes], per_second: float) -> None:
        self._server, self._packets, self._pause = server, packets, 1.0 / per_second
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.sent = 0

    def __enter__(self) -> "Flood":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        self._thread.join()

    def _run(self) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
            client.connect(("127.0.0.1", self._server.dns_port))
            client.setblocking(False)
            while not self._ending.wait(self._pause):
                client.send(self._packets[self.sent % len(self._packets)])
                self.sent += 1
                with suppress(BlockingIOError):
                    while True:
                        client.recv(65535)


def delays(server: KubeDns, query: bytes, seconds: float, per_second: int) -> list[float]:
    """Ask one question again and again at a rate; return how long each reply took, sorted."""
    took: list[float] = []
    end = time.monotonic() + seconds
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.connect(("127.0.0.1", server.dns_port))
        client.settimeout(SLOWEST_SECONDS)
        due = time.monotonic()
        while due < end:
            begun = time.perf_counter()
            client.send(query)
            client.recv(4096)
            took.append(time.perf_counter() - begun)
            due += 1.0 / per_second
            time.sleep(max(0.0, due - time.monotonic()))
    return sorted(took)


def test_dead_upstreams_do_not_hold_up_cluster_names(start, cases_api):
    """Two upstreams take questions and never reply; no reply about the cluster waits for them."""
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as two,
    ):
        for hole in (one, two):
            hole.bind(("127.0.0.1", 0))
        nameservers = ",".join(f"127.0.0.1:{hole.getsockname()[1]}" for hole in (one, two))
        server = start(f"--kube-master-url={cases_api.url}", f"--nameservers={nameservers}").synced()
        outside = [ask(f"n{number}.example.com", message_id=number) for number in range(1000)]
        with Flood(server, outside, 100) as flood:
            took = delays(server, WEB, SECONDS, PER_SECOND)
        assert flood.sent > 100
        assert len(took) > SECONDS * PER_SECOND / 2
        assert took[-1] < SLOWEST_SECONDS
        lost = ask("late.example.com")
        assert read(lost, server.ask(lost)).rcode == "SERVFAIL"


STORM = [
    ask(name, rdtype, payload=4096)
    for name in (
        "*.*.svc.cluster.local",
        "nothing.*.*.svc.cluster.local",
        "*.*.*.svc.cluster.local",
        "_http._tcp.*.*.svc.cluster.local",
        "*._tcp.*.*.svc.cluster.local",
        "svc-1.*.svc.cluster.local",
    )
    for rdtype in ("A", "SRV")
]


def large_cluster(services: int) -> str:
    """Manifests of so many Services in a hundred namespaces, each with a port and its own address."""
    return "\n---\n".join(
        f"apiVersion: v1\nkind: Service\nmetadata: {{name: svc-{n}, namespace: ns-{n % 100}}}\n"
        f"spec: {{clusterIP: 10.{96 + n // 65536}.{n // 256 % 256}.{n % 256}, "
        f"ports: [{{name: http, port: 80}}]}}"
        for n in range(1, services + 1)
    )


@pytest.mark.timeout(180)
def test_wildcard_storm_over_a_large_cluster_does_not_hold_up_others(start, start_api, tmp_path):
    manifest = tmp_path / "large.yaml"
    manifest.write_text(large_cluster(10_000))
    api = start_api(str(manifest))
    server = start(f"--kube-master-url={api.url}").synced()
    query = ask("svc-1.ns-1.svc.cluster.local")
    for storm in STORM:
        read(storm, server.ask(storm))
        read(storm, server.ask(storm, tcp=True), tcp=True)
    before = server.resident_octets()
    with Flood(server, STORM, 20) as flood:
        took = delays(server, query, SECONDS, 100)
    assert flood.sent > 10
    assert took[-1] < SLOWEST_SECONDS
    assert server.resident_octets() - before < 16 << 20
    assert read(query, ask_udp(query, server.dns_port)).rdatas("A") == {"10.96.0.1"}
