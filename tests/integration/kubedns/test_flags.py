"""What flags and environment do to the running process."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.kubedns.programs import PATIENCE_SECONDS, ROOT
from tests.ports import free_port
from tests.protocol.reading import ask, read
from tests.tools import tool

pytestmark = pytest.mark.integration
WEB = "web.default.svc.cluster.local"


def test_ttl_flags_set_the_ttl_of_records_and_of_negative_answers(start, cases_api):
    server = start(f"--kube-master-url={cases_api.url}", "--ttl=7", "--negative-ttl=5").synced()
    reply = read(ask(WEB), server.ask(ask(WEB)))
    assert {record.ttl for record in reply.answer} == {7}
    nothing = read(ask(f"x.{WEB}"), server.ask(ask(f"x.{WEB}")))
    assert [(record.ttl, record.rdata.split()[-1]) for record in nothing.authority] == [(5, "5")]


WILDCARDS = (
    "*.*.svc.cluster.local",
    "*.web.default.svc.cluster.local",
    "*.default.svc.cluster.local",
    "web.*.svc.cluster.local",
    "_*._tcp.web.default.svc.cluster.local",
    "*._tcp.web.default.svc.cluster.local",
    "10-0-0-1.*.pod.cluster.local",
    "any.any.svc.cluster.local",
)


def test_wildcards_off_refuses_every_wildcard_and_no_exact_name(start, cases_api):
    server = start(f"--kube-master-url={cases_api.url}", "--wildcards=false").synced()
    for name in WILDCARDS:
        for rdtype in ("A", "SRV"):
            assert read(ask(name, rdtype), server.ask(ask(name, rdtype))).rcode == "NXDOMAIN", name
    assert read(ask(WEB), server.ask(ask(WEB))).rdatas("A") == {"10.96.10.1"}


def test_wildcards_on_answers_as_the_original_does(start, cases_api):
    server = start(f"--kube-master-url={cases_api.url}").synced()
    query = ask("*.*.*.svc.cluster.local")
    reply = read(query, server.ask(query, tcp=True), tcp=True)
    assert {"10.96.10.1", "10.244.3.10"} <= reply.rdatas("A")
    names = ask("*.*.svc.cluster.local", "SRV")
    assert read(names, server.ask(names)).rdatas("SRV") == {"10 100 0 ext-ip.edge.svc.cluster.local."}


def test_domain_is_taken_in_any_case_and_with_a_final_dot(start, cases_api):
    server = start(f"--kube-master-url={cases_api.url}", "--domain=Corp.Local.").synced()
    query = ask("web.default.svc.CORP.local")
    assert read(query, server.ask(query)).rdatas("A") == {"10.96.10.1"}
    assert read(ask(WEB), server.ask(ask(WEB))).rcode in {"SERVFAIL", "REFUSED", "NXDOMAIN"}


def test_klog_flags_are_ignored_with_one_warning(start, cases_api):
    server = start(
        f"--kube-master-url={cases_api.url}",
        "--logtostderr=true",
        "--vmodule",
        "x=3",
        "--stderrthreshold=0",
        "--profiling=true",
        "--v=2",
    ).synced()
    warnings = [line for line in server.lines if "ignored flags" in line]
    assert len(warnings) == 1
    for name in ("--logtostderr", "--vmodule", "--stderrthreshold", "--profiling"):
        assert name in warnings[0]


@pytest.mark.parametrize(
    ("flags", "reason"),
    [
        (("--no-such-flag",), "unknown flag: --no-such-flag"),
        (("--config-dir=/x", "--config-map=y"), "cannot be used together"),
    ],
)
def test_wrong_command_line_ends_with_status_2_and_a_hint(start, flags, reason):
    server = start(*flags)
    assert server.status() == 2
    assert reason in server.log
    assert "--help" in server.log
    assert "Traceback" not in server.log


def test_help_and_version_are_printed_with_status_0(start):
    server = start("--help")
    assert server.status() == 0
    for flag in (
        "--domain",
        "--negative-ttl",
        "--wildcards",
        "--lame-duck",
        "--check-config",
        "PROMETHEUS_PORT",
    ):
        assert flag in server.log
    version = start("--version")
    assert version.status() == 0
    assert version.log.startswith("kube-dns ")


def test_metrics_follow_the_environment(start, cases_api):
    port = free_port()
    environ = {
        "PROMETHEUS_PORT": str(port),
        "PROMETHEUS_PATH": "counts",
        "PROMETHEUS_NAMESPACE": "own",
        "PROMETHEUS_SUBSYSTEM": "dns",
    }
    server = start(f"--kube-master-url={cases_api.url}", environ=environ).synced()
    server.ask(ask(WEB))
    status, text = server.get("/counts", port)
    assert status == 200
    assert 'own_dns_dns_request_count_total{system="auth"} 1.0' in text
    assert "kubedns_synced 1.0" in text
    assert server.get("/metrics", port)[0] == 404


def test_wrong_environment_ends_with_status_2(start):
    server = start(environ={"PROMETHEUS_PORT": "many"})
    assert server.status() == 2
    assert "PROMETHEUS_PORT" in server.log


@pytest.mark.parametrize("which", ["udp", "tcp", "health", "metrics"])
def test_busy_port_ends_with_status_1_and_is_named(start, cases_api, which):
    kind = socket.SOCK_DGRAM if which == "udp" else socket.SOCK_STREAM
    with socket.socket(socket.AF_INET, kind) as holder:
        holder.bind(("0.0.0.0", 0))
        if which != "udp":
            holder.listen()
        port = holder.getsockname()[1]
        flags = {"udp": "--dns-port", "tcp": "--dns-port", "health": "--healthz-port"}
        words = [f"{flags[which]}={port}"] if which in flags else []
        environ = {"PROMETHEUS_PORT": str(port)} if which == "metrics" else None
        server = start(f"--kube-master-url={cases_api.url}", *words, environ=environ)
        assert server.status() == 1
    assert str(port) in server.log
    assert "in use" in server.log
    assert "Traceback" not in server.log
    if which in {"udp", "tcp"}:
        assert which.upper() in server.log
        assert "--dns-port" in server.log


def test_every_query_is_logged_at_verbosity_3_only(start, cases_api):
    loud = start(f"--kube-master-url={cases_api.url}", "--v=3").synced()
    loud.ask(ask(WEB))
    loud.line(r"query 127\.0\.0\.1:\d+ udp A web\.default\.svc\.cluster\.local\. NOERROR .*, (zone|fast)$")
    quiet = start(f"--kube-master-url={cases_api.url}", "--v=2").synced()
    quiet.ask(ask(WEB))
    quiet.ask(ask(WEB), tcp=True)
    assert WEB not in quiet.log


def test_port_that_is_denied_is_answered_with_the_ways_to_get_it(cases_api):
    lowest = int(Path("/proc/sys/net/ipv4/ip_unprivileged_port_start").read_text())
    if not lowest:
        pytest.skip("here everybody may have every port")
    prefix = [tool("setpriv:util-linux"), "--bounding-set=-net_bind_service"] if os.geteuid() == 0 else []
    argv = [*prefix, sys.executable, "-m", "kubedns", f"--dns-port={lowest - 1}", "--healthz-port=0"]
    ended = subprocess.run(
        [*argv, f"--kube-master-url={cases_api.url}"],
        cwd=ROOT,
        stderr=subprocess.PIPE,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert ended.returncode == 1
    for word in (f"--dns-port={lowest - 1}", "NET_BIND_SERVICE", "ip_unprivileged_port_start"):
        assert word in ended.stderr


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_http_ports_answer_at_the_address_that_is_given_only(start, cases_api, address):
    metrics = free_port(address)
    server = start(
        f"--kube-master-url={cases_api.url}",
        f"--http-bind-address={address}",
        environ={"PROMETHEUS_PORT": str(metrics)},
    ).synced()
    other = "::1" if address == "127.0.0.1" else "127.0.0.1"
    for port in (server.healthz_port, metrics):
        with socket.create_connection((address, port), timeout=5.0):
            pass
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((other, port), timeout=5.0)


def test_http_address_that_this_host_does_not_have_is_named(start, cases_api):
    server = start(f"--kube-master-url={cases_api.url}", "--http-bind-address=192.0.2.1")
    assert server.status() == 1
    assert "192.0.2.1" in server.log
    assert "Traceback" not in server.log
