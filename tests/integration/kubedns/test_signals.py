"""Signals that end nothing: SIGHUP, SIGUSR1, SIGUSR2."""

import signal

import pytest

from tests.protocol.reading import ask, read

pytestmark = pytest.mark.integration
WEB = ask("web.default.svc.cluster.local")


def test_sighup_reads_the_directory_again_and_a_refusal_is_told_again(start, cases_api, tmp_path):
    (tmp_path / "stubDomains").write_text("{")
    server = start(
        f"--kube-master-url={cases_api.url}", f"--config-dir={tmp_path}", "--config-period=1h"
    ).synced()
    server.line("stubDomains: is not JSON")
    seen = len(server.lines)
    server.send(signal.SIGHUP)
    server.line("SIGHUP", after=seen)
    server.line("stubDomains: is not JSON", after=seen)
    (tmp_path / "stubDomains").write_text('{"corp.test": ["192.0.2.9"]}')
    for _ in range(3):
        server.send(signal.SIGHUP)
    server.line("configuration directory .* is in force", after=seen)
    assert read(WEB, server.ask(WEB)).rdatas("A") == {"10.96.10.1"}
    assert "Traceback" not in server.log


def test_sigusr1_writes_statistics_to_the_log(start, cases_api):
    server = start(f"--kube-master-url={cases_api.url}", "--nameservers=192.0.2.53").synced()
    server.ask(WEB)
    server.ask(ask("nope.default.svc.cluster.local"))
    server.send(signal.SIGUSR1)
    assert server.line(r"statistics: questions: (\d+) auth")[1] == "2"
    server.line(r"statistics: questions: .* 1 nxdomain")
    server.line(r"statistics: up for .* services")
    server.line(r"statistics: watch of services: last heard of")
    server.line(r"statistics: configuration from flags")
    server.line(r"statistics: name server 192\.0\.2\.53:53")


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2])
def test_signal_ends_nothing(start, cases_api, number):
    server = start(f"--kube-master-url={cases_api.url}", "--lame-duck=0").synced()
    for _ in range(5):
        server.send(number)
    assert read(WEB, server.ask(WEB)).rdatas("A") == {"10.96.10.1"}
    server.send(signal.SIGTERM)
    assert server.status() == 0
    assert "Traceback" not in server.log
