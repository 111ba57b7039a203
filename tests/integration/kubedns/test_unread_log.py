"""The record server while nobody reads its log."""

import pytest

from tests.fullpipe import Unread
from tests.integration.kubedns.programs import ask_tcp, ask_udp
from tests.ports import free_port
from tests.protocol.reading import ask, read

pytestmark = pytest.mark.integration
WEB = ask("web.default.svc.cluster.local")


def test_log_that_nobody_reads_stops_nothing_and_says_what_it_lost(cases_api):
    dns, health, metrics = (free_port() for _ in range(3))
    argv = ["kubedns", f"--dns-port={dns}", f"--healthz-port={health}", f"--kube-master-url={cases_api.url}"]
    with Unread([*argv, "--v=3", "--lame-duck=0"], {"PROMETHEUS_PORT": str(metrics)}) as server:
        server.until("ready", lambda: server.healthy(f"http://127.0.0.1:{health}/readiness"))
        page = f"http://127.0.0.1:{metrics}/metrics"

        def lost() -> bool:
            for _ in range(200):
                assert read(WEB, ask_udp(WEB, dns)).rdatas("A") == {"10.96.10.1"}
            return server.metric(page, "kubedns_log_lines_dropped_total") > 0

        server.until("lines are dropped", lost)
        assert read(WEB, ask_tcp(WEB, dns), tcp=True).rdatas("A") == {"10.96.10.1"}
        assert server.healthy(f"http://127.0.0.1:{health}/healthz")
        text = server.read_until(r"\d+ log lines dropped here")
        assert "synced after" in text
        assert server.terminate() == 0


def test_sigterm_ends_a_server_whose_log_nobody_reads(cases_api):
    health = free_port()
    argv = ["kubedns", "--dns-port=0", f"--healthz-port={health}", f"--kube-master-url={cases_api.url}"]
    with Unread([*argv, "--lame-duck=0"], {"PROMETHEUS_PORT": "0"}) as server:
        server.until("ready", lambda: server.healthy(f"http://127.0.0.1:{health}/readiness"))
        assert server.terminate() == 0


def test_last_line_comes_out_when_somebody_reads(start):
    server = start("--kubecfg-file=/nonexistent/kubeconfig")
    assert server.status() == 1
    assert "cannot start" in server.lines[-1]
