"""Configuration while the process runs, and `--check-config` before it does."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import dns.message
import dns.rrset
import pytest

from tests.protocol.reading import ask, read

pytestmark = pytest.mark.integration
DEAD = "127.0.0.1:9"


class Upstream:
    """Answers every A question with one address; `asked` are the names."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self._socket.settimeout(0.2)
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.asked: list[str] = []
        self.where = f"127.0.0.1:{self._socket.getsockname()[1]}"
        self._thread.start()

    def _run(self) -> None:
        while not self._ending.is_set():
            try:
                octets, peer = self._socket.recvfrom(4096)
            except TimeoutError:
                continue
            query = dns.message.from_wire(octets)
            reply = dns.message.make_response(query)
            name = query.question[0].name
            self.asked.append(name.to_text())
            reply.answer = [dns.rrset.from_text(name, 60, "IN", "A", self._address)]
            self._socket.sendto(reply.to_wire(), peer)

    def close(self) -> None:
        self._ending.set()
        self._thread.join()
        self._socket.close()


@contextmanager
def upstream(address: str) -> Iterator[Upstream]:
    server = Upstream(address)
    try:
        yield server
    finally:
        server.close()


def test_directory_is_followed_and_a_bad_update_is_refused_whole(start, cases_api, tmp_path):
    with upstream("192.0.2.1") as first, upstream("192.0.2.2") as second:
        key = tmp_path / "upstreamNameservers"
        key.write_text(f'["{first.where}"]')
        server = start(
            f"--kube-master-url={cases_api.url}",
            f"--config-dir={tmp_path}",
            "--config-period=1s",
            f"--nameservers={DEAD}",
        ).synced()
        server.line("is in force")
        query = ask("a.example.com")
        assert read(query, server.ask(query)).rdatas("A") == {"192.0.2.1"}

        seen = len(server.lines)
        (tmp_path / "stubDomains").write_text('{"corp.test": "not a list"}')
        refused = server.line("refused", after=seen)
        assert "stubDomains" in refused.string
        assert "last good configuration" in refused.string
        assert read(query, server.ask(query)).rdatas("A") == {"192.0.2.1"}

        seen = len(server.lines)
        (tmp_path / "stubDomains").write_text(f'{{"corp.test": ["{second.where}"]}}')
        server.line("is in force", after=seen)
        stub = ask("db.Corp.test")
        assert read(stub, server.ask(stub)).rdatas("A") == {"192.0.2.2"}
        assert read(query, server.ask(query)).rdatas("A") == {"192.0.2.1"}
        assert "Traceback" not in server.log


def test_bad_configuration_at_the_start_means_the_flags(start, cases_api, tmp_path):
    with upstream("192.0.2.1") as first:
        (tmp_path / "upstreamNameservers").write_text('["not an address"]')
        server = start(
            f"--kube-master-url={cases_api.url}", f"--config-dir={tmp_path}", f"--nameservers={first.where}"
        ).synced()
        assert "flags' settings" in server.line("refused").string
        query = ask("a.example.com")
        assert read(query, server.ask(query)).rdatas("A") == {"192.0.2.1"}


def test_external_name_goes_to_the_stub_domain_with_the_longest_suffix(start, start_api, tmp_path):
    manifest = tmp_path / "aliases.yaml"
    manifest.write_text(
        "\n---\n".join(
            f"apiVersion: v1\nkind: Service\nmetadata: {{name: {name}, namespace: shop}}\n"
            f"spec: {{type: ExternalName, externalName: {target}}}"
            for name, target in (("db", "db.corp.test"), ("eu", "db.eu.corp.test"))
        )
    )
    api = start_api(str(manifest))
    config = tmp_path / "config"
    config.mkdir()
    with upstream("192.0.2.1") as corp, upstream("192.0.2.2") as europe, upstream("192.0.2.3") as others:
        stubs = f'{{"corp.test": ["{corp.where}"], "eu.corp.test": ["{europe.where}"]}}'
        (config / "stubDomains").write_text(stubs)
        server = start(
            f"--kube-master-url={api.url}", f"--config-dir={config}", f"--nameservers={others.where}"
        ).synced()
        server.line("is in force")
        for name, address in (("db", "192.0.2.1"), ("eu", "192.0.2.2")):
            query = ask(f"{name}.shop.svc.cluster.local")
            assert read(query, server.ask(query)).rdatas("A") == {address}
        assert set(others.asked) <= {"."}, "besides the check whether it is alive"


@pytest.mark.parametrize("by", ["flag", "directory"])
def test_federation_names_lead_to_the_local_service_or_elsewhere(start, cases_api, tmp_path, by):
    flags = ["--federations=mesh=fed.example.com"]
    if by == "directory":
        (tmp_path / "federations").write_text('{"mesh": "fed.example.com"}')
        flags = [f"--config-dir={tmp_path}"]
    server = start(f"--kube-master-url={cases_api.url}", f"--nameservers={DEAD}", *flags).synced()
    server.line("the cluster is in zone (\\S+) of region (\\S+)")
    local = ask("web.default.mesh.svc.cluster.local")
    reply = read(local, server.ask(local))
    assert reply.rdatas("CNAME") == {"web.default.svc.cluster.local."}
    assert reply.rdatas("A") == {"10.96.10.1"}
    remote = ask("nope.default.mesh.svc.cluster.local")
    gone = read(remote, server.ask(remote))
    assert gone.rcode == "SERVFAIL"
    (target,) = gone.rdatas("CNAME")
    assert target.startswith("nope.default.mesh.svc.")
    assert target.endswith(".fed.example.com.")
    ordinary = ask("web.default.other.svc.cluster.local")
    assert read(ordinary, server.ask(ordinary)).rcode == "NXDOMAIN"


GOOD = {"stubDomains": '{"corp.test": ["10.0.0.53", "ns.corp.test:5353"]}', "upstreamNameservers": "[]"}


def test_check_config_finds_a_good_directory_good(start, tmp_path):
    for key, value in GOOD.items():
        (tmp_path / key).write_text(value)
    check = start(f"--check-config={tmp_path}")
    assert check.status() == 0
    assert "good" in check.log


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("stubDomains", '{"cluster.local": ["10.0.0.1"]}', "cluster domain"),
        ("upstreamNameservers", '["1.1.1.1", "1.1.1.1:0"]', "port"),
    ],
)
def test_check_config_names_key_and_reason_of_a_fault(start, tmp_path, key, value, reason):
    (tmp_path / key).write_text(value)
    check = start(f"--check-config={tmp_path}")
    assert check.status() == 1
    assert key in check.log
    assert reason in check.log
    assert "Traceback" not in check.log


def test_check_config_of_no_directory_is_a_fault(start, tmp_path):
    check = start(f"--check-config={tmp_path / 'nothing'}")
    assert check.status() == 1
    assert "nothing" in check.log


def test_query_log_goes_on_and_off_without_a_restart(start, cases_api, tmp_path):
    with upstream("192.0.2.1") as elsewhere:
        server = start(
            f"--kube-master-url={cases_api.url}",
            f"--config-dir={tmp_path}",
            "--config-period=1s",
            f"--nameservers={elsewhere.where}",
        ).synced()
        (tmp_path / "logQueries").write_text("3s default.svc.cluster.local example.com")
        server.line("logQueries: queries below default.svc.cluster.local, example.com are logged for 3s")
        web, other = ask("web.default.svc.cluster.local"), ask("x.kube-system.svc.cluster.local")
        outside = ask("a.example.com")
        for query in (web, web, other, outside):
            server.ask(query)
        server.ask(web, tcp=True)
        server.line(
            r"query 127\.0\.0\.1:\d+ udp A web\.default\..* NOERROR qr,aa,rd,ra \d+ octets, \d+ us, zone$"
        )
        server.line(r"udp A web\.default\..*, fast$")
        server.line(r"tcp A web\.default\..*")
        server.line(rf"udp A a\.example\.com\. NOERROR .*, (upstream|{elsewhere.where})$")
        server.line("no more queries are logged: the 3s of logQueries are over")
        seen = len(server.lines)
        server.ask(web)
        (tmp_path / "logQueries").unlink()
        server.line("is in force", after=seen)
        assert "kube-system" not in server.log
        assert not any("query 127" in line for line in server.lines[seen:])


def test_config_map_that_does_not_exist_is_named(start, cases_api):
    server = start(f"--kube-master-url={cases_api.url}", "--config-map=nope", "--config-map-namespace=dns")
    server.line(r"ConfigMap dns/nope does not exist")


def test_repair_and_loss_of_the_directory_are_said(start, cases_api, tmp_path):
    config = tmp_path / "config"
    config.mkdir()
    good = '["127.0.0.1:9"]'
    (config / "upstreamNameservers").write_text(good)
    server = start(
        f"--kube-master-url={cases_api.url}", f"--config-dir={config}", "--config-period=100ms"
    ).synced()
    (config / "upstreamNameservers").write_text("[1]")
    server.line("is refused")
    (config / "upstreamNameservers").write_text(good)
    server.line("is good again, and as it was before")
    config.rename(tmp_path / "elsewhere")
    server.line("is gone; its keys are absent until it is back")
