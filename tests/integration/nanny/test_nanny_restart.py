"""What a change of the configuration does to a running dnsmasq."""

import contextlib
import json
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from dnslib import RCODE, DNSRecord

from tests.integration.nanny.conftest import DEADLINE, wait_for
from tests.ports import free_port

pytestmark = pytest.mark.integration


UPSTREAMS = '["192.0.2.1"]'
"""Their coming or going needs a restart: `--no-resolv` is read at the start only."""


def stub(domain: str, *servers: str) -> str:
    return json.dumps({domain: servers})


def ask_steadily(port: int, name: str, stop: threading.Event) -> tuple[int, list[str]]:
    """Ask 300 times a second until told to stop; return how often, and what was not answered well."""
    lost: list[str] = []
    waiting: dict[int, float] = {}
    asked = 0
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.connect(("127.0.0.1", port))
        client.settimeout(1 / 300)
        while not stop.is_set() or waiting:
            if not stop.is_set():
                asked += 1
                query = DNSRecord.question(f"q{asked}.{name}")
                query.header.id = asked
                waiting[asked] = time.monotonic()
                client.send(query.pack())
            due = time.monotonic() + 1 / 300
            while (left := due - time.monotonic()) > 0:
                client.settimeout(left)
                try:
                    reply = DNSRecord.parse(client.recv(4096))
                except TimeoutError:
                    break
                waiting.pop(reply.header.id, None)
                if reply.header.rcode != RCODE.NXDOMAIN:
                    lost.append(f"{reply.q.qname}: {RCODE[reply.header.rcode]}")
            oldest = next(iter(waiting), None)
            if oldest is not None and time.monotonic() - waiting[oldest] > 5:
                lost.append(f"q{oldest}: no answer")
                del waiting[oldest]
    return asked, lost


def test_changes_of_stub_domains_lose_nothing_and_need_no_restart(start, name_server):
    server = name_server()
    nanny = start("--no-resolv", f"--server=127.0.0.1#{server.port}", "--dns-forward-max=1500")
    first = nanny.wait_up()
    stop = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        asking = pool.submit(ask_steadily, nanny.port, "ext.test", stop)
        for number in range(20):
            nanny.write(stubDomains=stub(f"stub{number}.test", "192.0.2.1"))
            nanny.wait_log(rf"using nameserver .* for domain stub{number}\.test")
        stop.set()
        asked, lost = asking.result(DEADLINE)
    assert asked > 100
    assert lost == []
    assert nanny.descendants() == [first]
    assert nanny.metric('dnsmasq_nanny_config_reloads_total{outcome="applied"}') == 20


def test_a_new_stub_domain_needs_no_restart_and_the_route_works(start, name_server):
    server = name_server(db_corp_test="192.0.2.9")
    nanny = start("--no-resolv")
    first = nanny.wait_up()
    nanny.write(stubDomains=stub("corp.test", f"127.0.0.1:{server.port}"))
    nanny.wait_log(r"using nameserver .* for domain corp\.test")
    assert nanny.addresses("db.corp.test") == ["192.0.2.9"]
    wait_for("only dnsmasq is left", lambda: nanny.descendants() == [first])
    assert nanny.metric('dnsmasq_nanny_restarts_total{reason="config"}') == 0
    assert nanny.metric('dnsmasq_nanny_config_reloads_total{outcome="applied"}') == 1
    assert nanny.metric("dnsmasq_nanny_config_last_reload_success") == 1
    assert "Address already in use" not in nanny.log


def test_many_changes_in_a_row_end_with_the_last_and_one_dnsmasq(start, name_server):
    server = name_server(a_last_test="192.0.2.9")
    nanny = start("--no-resolv")
    nanny.wait_up()
    for number in range(20):
        nanny.write(stubDomains=stub(f"stub{number}.test", "192.0.2.1"))
    nanny.write(stubDomains=stub("last.test", f"127.0.0.1:{server.port}"))
    nanny.wait_log(r"using nameserver .* for domain last\.test")
    assert nanny.addresses("a.last.test") == ["192.0.2.9"]
    # Children prepared for changes that were overtaken may still be ending.
    wait_for("only the last dnsmasq is left", lambda: nanny.descendants() == [nanny.pid])
    assert "Address already in use" not in nanny.log


def test_idle_tcp_clients_do_not_hold_the_port_over_a_restart(start):
    nanny = start("--address=/a.test/192.0.2.1")
    nanny.wait_up()
    with contextlib.ExitStack() as clients:
        for _ in range(10):
            clients.enter_context(socket.create_connection(("127.0.0.1", nanny.port)))
        wait_for("a process per client", lambda: len(nanny.descendants()) == 11)
        nanny.write(upstreamNameservers=UPSTREAMS)
        nanny.wait_up(2)
    assert nanny.addresses("a.test") == ["192.0.2.1"]
    assert nanny.process.poll() is None
    assert "Address already in use" not in nanny.log


def test_a_dnsmasq_that_ignores_sigterm_is_killed_and_the_next_comes_up(start, script):
    nanny = start(
        dnsmasq=script('trap "" TERM\n/usr/sbin/dnsmasq "$@" &\nwhile :; do wait; sleep 1; done'),
    )
    nanny.wait_up()
    nanny.write(upstreamNameservers=UPSTREAMS)
    second = nanny.wait_up(2)
    assert "killing it" in nanny.log
    assert second in nanny.descendants()
    assert nanny.process.poll() is None


def test_a_busy_port_is_waited_for_and_said_once(start):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.bind(("0.0.0.0", free_port()))
        nanny = start(port=other.getsockname()[1])
        nanny.wait_log("port is in use by another process: trying again")
        wait_for("a second try", lambda: nanny.metric('dnsmasq_nanny_restarts_total{reason="port_busy"}') > 1)
    nanny.wait_log("dnsmasq got its port")
    nanny.wait_up()
    assert nanny.log.count("Address already in use") == 1
    assert nanny.log.count("trying again") == 1


def test_only_a_change_of_the_arguments_restarts(start):
    nanny = start("--no-resolv")
    nanny.write(stubDomains='{"a.test": ["192.0.2.1"], "b.test": ["192.0.2.2"]}')
    nanny.wait_log(r"using nameserver .* for domain b\.test")
    first = nanny.pid
    nanny.write(
        stubDomains='\n{"B.test.": ["192.0.2.2:53"], "a.test": ["192.0.2.1"]}', federations='{"f": "x.test"}'
    )
    wait_for("a look", lambda: nanny.metric('dnsmasq_nanny_config_reloads_total{outcome="unchanged"}') == 1)
    nanny.write(stubDomains="{")
    nanny.wait_log("refused as a whole: stubDomains: is not JSON")
    nanny.write(stubDomains='{"a.test": ["192.0.2.1"], "b.test": ["192.0.2.2"]}')
    wait_for(
        "another look", lambda: nanny.metric('dnsmasq_nanny_config_reloads_total{outcome="unchanged"}') == 2
    )
    assert nanny.pid == first
    assert nanny.metric("dnsmasq_nanny_config_last_reload_success") == 1


def test_without_restartdnsmasq_a_change_is_only_logged_and_hosts_are_followed(start):
    nanny = start("--no-resolv", flags=())
    first = nanny.wait_up()
    nanny.write(stubDomains=stub("corp.test", "192.0.2.1"), hosts="192.0.2.7 www.test")
    nanny.wait_log(r"not restarting dnsmasq \(-restartDnsmasq=false\)")
    wait_for("the host", lambda: nanny.addresses("www.test") == ["192.0.2.7"])
    assert nanny.pid == first
    assert nanny.metric('dnsmasq_nanny_config_reloads_total{outcome="not_restarted"}') == 1
    assert nanny.metric("dnsmasq_nanny_config_last_reload_success") == 0


def test_a_dnsmasq_that_fails_only_when_it_runs_gives_way_to_the_last_that_worked(start, script):
    nanny = start(
        "--address=/a.test/192.0.2.1",
        dnsmasq=script('case "$*" in *--no-resolv*) echo no; exit 9;; esac\nexec /usr/sbin/dnsmasq "$@"'),
    )
    nanny.wait_up()
    nanny.write(upstreamNameservers=UPSTREAMS)
    nanny.wait_log("going back to the last that worked")
    nanny.wait_up(2)
    assert nanny.addresses("a.test") == ["192.0.2.1"]
    assert nanny.metric('dnsmasq_nanny_restarts_total{reason="fallback"}') == 1
    assert nanny.metric("dnsmasq_nanny_config_last_reload_success") == 0


def test_arguments_that_dnsmasq_refuses_leave_the_old_one_running(start, script):
    nanny = start("--no-resolv", dnsmasq=refusing(script))
    first = nanny.wait_up()
    nanny.write(stubDomains=stub("bad.test", "192.0.2.1"))
    nanny.wait_log("dnsmasq does not take what they make: out of taste")
    assert nanny.pid == first
    assert nanny.process.poll() is None
    assert nanny.metric("dnsmasq_nanny_config_last_reload_success") == 0


def test_a_cold_start_with_arguments_that_dnsmasq_refuses_runs_on_the_given_ones(start, script):
    nanny = start("--no-resolv", dnsmasq=refusing(script))
    nanny.write(stubDomains=stub("bad.test", "192.0.2.1"))
    nanny.wait_log("does not take what they make: out of taste")
    nanny.wait_up()


def refusing(script: Callable[[str], str]) -> str:
    path = Path(script('exec /usr/sbin/dnsmasq "$@"'))
    test = 'case "$*" in *--test*bad.test*) echo out of taste; exit 1;; esac'
    path.write_text(path.read_text().replace("#!/bin/sh\n", f"#!/bin/sh\n{test}\n"))
    return str(path)
