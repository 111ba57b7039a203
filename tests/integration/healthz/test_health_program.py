"""The program as its users meet it: command line, port, clients, DNS servers that stop and come back."""

import http.client
import signal
import socket
import subprocess
import sys
import time

import pytest

from tests.ports import free_port

pytestmark = pytest.mark.integration


def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "healthz", *arguments], capture_output=True, text=True, timeout=30, check=False
    )


def test_help_and_version_go_to_standard_output():
    shown = run("--help")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "--probe=PROBE" in shown.stdout
    assert run("--version").stdout.startswith("exechealthz ")


@pytest.mark.parametrize("argument", ["--frob", "--cmd=x", "--probe=k,nowhere,a", "--port=x"])
def test_wrong_flag_ends_with_2_and_a_hint_without_a_traceback(argument):
    ended = run(argument)
    assert ended.returncode == 2
    assert ended.stderr.startswith("exechealthz: ")
    assert ended.stderr.endswith("Try 'exechealthz --help'.\n")
    assert "Traceback" not in ended.stderr


def test_busy_port_ends_with_1_and_names_the_port():
    with socket.socket() as taken:
        taken.bind(("0.0.0.0", 0))
        taken.listen()
        port = taken.getsockname()[1]
        ended = run(f"--port={port}")
    assert ended.returncode == 1
    assert f"port {port} for exechealthz is in use" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_ignored_flags_get_one_warning(healthz):
    program = healthz("--logtostderr", "-stderrthreshold=2", "--vmodule", "x=1")
    assert program.log().count("ignored flags") == 1


def test_without_arguments_it_answers_healthz(healthz):
    program = healthz()
    assert program.wait_for_answer("/healthz", 200) == "ok\n"


def test_quit_is_not_there(healthz):
    program = healthz()
    assert program.get("/quit")[0] == 404
    assert program.process.poll() is None


def test_both_families_are_served(healthz):
    program = healthz()
    program.wait_for_answer("/healthz", 200)
    client = http.client.HTTPConnection("::1", program.port, timeout=30)
    client.request("GET", "/healthz")
    assert client.getresponse().status == 200
    client.close()


def test_clients_that_say_nothing_or_read_nothing_do_no_harm(healthz):
    program = healthz("--cmd=:", "--url=/x", "--period=50ms")
    clients = [socket.create_connection(("127.0.0.1", program.port)) for _ in range(200)]
    try:
        for number, client in enumerate(clients):
            client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n" + (b"\r\n" if number % 2 else b""))
        program.wait_for_answer("/x", 200)
        runs = program.metric('kubedns_exec_runs_total{result="ok",url="/x"}')
        while program.metric('kubedns_exec_runs_total{result="ok",url="/x"}') < runs + 5:
            time.sleep(0.02)
        begun = time.monotonic()
        assert program.stop() == 0
        assert time.monotonic() - begun < 10
    finally:
        for client in clients:
            client.close()


def test_stopped_server_fails_its_own_url_alone_and_recovers(healthz, dnsmasq, second_dnsmasq):
    program = healthz(
        f"--probe=first,127.0.0.1:{dnsmasq.port},version.bind,1,CH",
        f"--probe=second,127.0.0.1:{second_dnsmasq.port},version.bind,1,CH",
    )
    for stopped, path, other in (
        (dnsmasq, "/healthcheck/first", "/healthcheck/second"),
        (second_dnsmasq, "/healthcheck/second", "/healthcheck/first"),
    ):
        program.wait_for_answer(path, 200)
        program.wait_for_answer(other, 200)
        stopped.process.send_signal(signal.SIGSTOP)
        begun = time.monotonic()
        program.wait_for_answer(path, 503, f"127.0.0.1:{stopped.port}: no reply within 0.8 s")
        assert time.monotonic() - begun < 10
        assert program.get(other)[0] == 200
        stopped.process.send_signal(signal.SIGCONT)
        program.wait_for_answer(path, 200)


@pytest.mark.parametrize(
    ("probe", "status", "reason"),
    [
        ("web.example", 200, "ok"),
        ("web.example,1,A", 200, "ok"),
        ("gone.example", 503, "NXDOMAIN for gone.example A"),
        ("web.example,1,AAAA", 503, "NOERROR without an answer for web.example AAAA"),
        ("elsewhere.test", 503, "REFUSED for elsewhere.test A"),
    ],
)
def test_answer_of_a_real_dnsmasq_decides(healthz, dnsmasq, probe, status, reason):
    program = healthz(f"--probe=k,127.0.0.1:{dnsmasq.port},{probe}")
    program.wait_for_answer("/healthcheck/k", status, reason)


def test_closed_port_fails_at_once_and_is_counted(healthz):
    program = healthz(f"--probe=k,127.0.0.1:{free_port()},version.bind,60,CH")
    program.wait_for_answer("/healthcheck/k", 503, "connection refused")
    assert program.metric("kubedns_probe_k_errors") == 1


def test_dnsmasq_figures_grow_over_a_restart_and_failures_are_counted(healthz, dnsmasq, eventually):
    program = healthz(
        "--dnsmasq-poll-interval-ms=100",
        f"--dnsmasq-port={dnsmasq.port}",
        f"--probe=k,127.0.0.1:{dnsmasq.port},web.example,0.05",
    )
    eventually(lambda: "kubedns_dnsmasq_hits 2" in program.get("/metrics")[1], "twenty hits or more")
    assert program.metric("kubedns_dnsmasq_max_size") == 1234
    before = program.metric("kubedns_dnsmasq_hits")
    dnsmasq.stop()
    eventually(lambda: program.metric("kubedns_dnsmasq_errors") >= 1, "failed readings")
    assert program.metric("kubedns_dnsmasq_hits") >= before
    dnsmasq.start()
    program.wait_for_log("statistics are read again")
    assert program.metric("kubedns_dnsmasq_hits") >= before
    eventually(lambda: program.metric("kubedns_dnsmasq_hits") > before, "more hits than before")
    assert program.log().count("statistics can't be read") == 1


def test_one_log_line_for_each_change_of_a_probes_state(healthz, dnsmasq):
    program = healthz(f"--probe=k,127.0.0.1:{dnsmasq.port},web.example,0.05")
    program.wait_for_log(r"/healthcheck/k is healthy \(web\.example A")
    dnsmasq.stop()
    program.wait_for_log(r"/healthcheck/k fails")
    errors = program.metric("kubedns_probe_k_errors")
    while program.metric("kubedns_probe_k_errors") < errors + 5:
        time.sleep(0.02)
    dnsmasq.start()
    program.wait_for_log(r"/healthcheck/k is healthy again, after")
    assert program.log().count("/healthcheck/k fails") == 1
