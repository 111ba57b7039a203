"""From start to end: before the sync, faults of the API, signals."""

import json
import signal
import socket
import threading

import pytest

from tests.integration.kubedns.conftest import CLUSTER
from tests.ports import free_port
from tests.protocol.reading import ask, read

pytestmark = pytest.mark.integration
WEB = ask("web.default.svc.cluster.local")
PTR = ask("1.10.96.10.in-addr.arpa", "PTR")


@pytest.fixture
def silent_api():
    """An API server that takes connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


def test_before_the_first_sync_own_names_are_refused_and_others_forwarded(start, silent_api):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as upstream:
        upstream.bind(("127.0.0.1", 0))
        server = start(
            f"--kube-master-url={silent_api}", f"--nameservers=127.0.0.1:{upstream.getsockname()[1]}"
        ).listen()
        for query in (WEB, PTR, ask("x.cluster.local"), ask("cluster.local", "SOA")):
            for tcp in (False, True):
                assert read(query, server.ask(query, tcp=tcp), tcp=tcp).rcode == "REFUSED"
        status, body = server.get("/readiness")
        assert status == 503
        assert "first sync" in body
        assert server.get("/healthz") == (200, "ok\n")
        answerer = threading.Thread(target=answer_until, args=(upstream, b"\3www\7example\3com\0"))
        answerer.start()
        outside = ask("www.example.com")
        assert read(outside, server.ask(outside)).rcode == "NXDOMAIN"
        answerer.join()


def answer_until(upstream: socket.socket, name: bytes) -> None:
    """Answer everything with NXDOMAIN, the check whether it is alive included, up to a question for a name."""
    upstream.settimeout(10.0)
    query = b""
    while name not in query:
        query, peer = upstream.recvfrom(4096)
        upstream.sendto(query[:2] + b"\x81\x83" + query[4:], peer)


def test_sync_that_takes_too_long_ends_with_status_255_and_the_reason(start):
    port = free_port()
    server = start(f"--kube-master-url=http://127.0.0.1:{port}", "--initial-sync-timeout=1s")
    assert server.status() == 255
    assert "--initial-sync-timeout" in server.log
    assert str(port) in server.log.rpartition("--initial-sync-timeout")[2]
    assert "Traceback" not in server.log


def test_without_a_sync_timeout_it_waits_and_says_once_why(start):
    port = free_port()
    server = start(f"--kube-master-url=http://127.0.0.1:{port}", "--initial-sync-timeout=0").listen()
    server.line(f"127.0.0.1:{port} refuses the connection")
    assert server.process.poll() is None
    status, body = server.get("/readiness")
    assert status == 503
    assert "services" in body.lower()


def test_credentials_that_are_refused_are_named(start, start_api, tmp_path):
    token_file = tmp_path / "tokens"
    token_file.write_text("right\n")
    api = start_api(str(CLUSTER), f"--token-file={token_file}")
    server = start(f"--kube-master-url={api.url}", "--initial-sync-timeout=2s")
    assert server.status() == 255
    assert "401" in server.log


def test_missing_permission_names_verb_resource_and_group(start, start_api):
    api = start_api(str(CLUSTER), "--deny=*:endpointslices")
    server = start(f"--kube-master-url={api.url}", "--initial-sync-timeout=2s")
    assert server.status() == 255
    for word in ("403", "endpointslices", "discovery.k8s.io"):
        assert word in server.log


@pytest.mark.parametrize(
    ("content", "reason"),
    [("{", "kubeconfig"), ("kind: Config\n", "kubeconfig"), (None, "No such file")],
)
def test_bad_kubeconfig_ends_with_status_1_and_is_named(start, tmp_path, content, reason):
    path = tmp_path / "kubeconfig"
    if content is not None:
        path.write_text(content)
    server = start(f"--kubecfg-file={path}")
    assert server.status() == 1
    assert str(path) in server.log
    assert reason in server.log
    assert "Traceback" not in server.log


def test_without_any_way_to_the_api_it_says_so(start):
    server = start(environ={"KUBERNETES_SERVICE_HOST": "", "KUBERNETES_SERVICE_PORT": ""})
    assert server.status() == 1
    assert "cannot start" in server.log
    assert "Traceback" not in server.log


def test_sigterm_answers_on_through_the_lame_duck_time_and_exits_0(start, cases_api):
    server = start(f"--kube-master-url={cases_api.url}", "--lame-duck=2s").synced()
    assert server.get("/readiness") == (200, "ok\n")
    server.send(signal.SIGTERM)
    server.line("SIGTERM")
    assert server.get("/readiness")[0] == 503
    assert server.get("/healthz")[0] == 200
    for tcp in (False, True):
        assert read(WEB, server.ask(WEB, tcp=tcp), tcp=tcp).rdatas("A") == {"10.96.10.1"}
    assert server.status() == 0
    assert "Traceback" not in server.log


@pytest.mark.parametrize("second", [signal.SIGTERM, signal.SIGINT])
def test_second_signal_ends_the_lame_duck_time_at_once(start, cases_api, second):
    server = start(f"--kube-master-url={cases_api.url}", "--lame-duck=10m").synced()
    server.send(signal.SIGTERM)
    server.line("SIGTERM")
    server.send(second)
    assert server.status() == 0


def test_sigint_exits_0_at_once(start, cases_api):
    server = start(f"--kube-master-url={cases_api.url}", "--lame-duck=10m").synced()
    server.send(signal.SIGINT)
    assert server.status() == 0
    assert "Traceback" not in server.log


def test_sigterm_before_the_first_sync_exits_0(start, silent_api):
    server = start(f"--kube-master-url={silent_api}", "--lame-duck=0").listen()
    server.send(signal.SIGTERM)
    assert server.status() == 0


def test_cache_shows_the_tree_and_readiness_the_sync(start, cases_api):
    server = start(f"--kube-master-url={cases_api.url}").synced()
    status, text = server.get("/cache")
    assert status == 200
    tree = json.loads(text)
    node = tree
    for label in ("local", "cluster", "svc", "default", "web"):
        node = node["ChildNodes"][label]
    assert list(node["Entries"].values()) == [{"host": "10.96.10.1", "priority": 10, "weight": 10, "ttl": 30}]
    assert server.get("/nothing")[0] == 404


def test_api_that_goes_away_changes_no_answer(start, start_api):
    api = start_api(str(CLUSTER))
    server = start(f"--kube-master-url={api.url}").synced()
    seen = len(server.lines)
    api.process.kill()
    api.process.wait()
    server.line("refuses the connection", after=seen)
    assert read(WEB, server.ask(WEB)).rdatas("A") == {"10.96.10.1"}
    missing = ask("x.default.svc.cluster.local.default.svc.cluster.local")
    assert read(missing, server.ask(missing)).rcode == "NXDOMAIN"
    assert server.get("/readiness")[0] == 200
