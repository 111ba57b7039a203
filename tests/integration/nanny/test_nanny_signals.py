"""Signals that end nothing, and what dnsmasq's users expect of them."""

import json
import signal

import pytest

from tests.integration.nanny.conftest import alive, wait_for

pytestmark = pytest.mark.integration


def test_sighup_reads_the_configuration_and_empties_the_cache(start, name_server):
    upstream = name_server()
    nanny = start(
        "--no-resolv",
        f"--server=127.0.0.1#{upstream.port}",
        flags=("--restartDnsmasq", "--syncInterval=1h"),
    )
    first = nanny.wait_up()
    for _ in range(2):
        assert nanny.rcode("missing.test") == "NXDOMAIN"
    assert upstream.seen.count("missing.test") == 1
    nanny.process.send_signal(signal.SIGHUP)
    nanny.wait_log("SIGHUP: reading the configuration again")
    wait_for(
        "an empty cache",
        lambda: nanny.rcode("missing.test") == "NXDOMAIN" and upstream.seen.count("missing.test") == 2,
    )
    nanny.write(stubDomains=json.dumps({"corp.test": [f"127.0.0.1:{upstream.port}"]}))
    nanny.process.send_signal(signal.SIGHUP)
    nanny.wait_log(r"using nameserver .* for domain corp\.test")
    assert nanny.pid == first


def test_sigusr1_has_dnsmasq_write_its_statistics(start):
    nanny = start("--no-resolv", "--address=/a.test/192.0.2.1")
    nanny.wait_up()
    nanny.process.send_signal(signal.SIGUSR1)
    nanny.wait_log("queries forwarded 0")


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2])
def test_signal_ends_nothing(start, number):
    nanny = start("--no-resolv", "--address=/a.test/192.0.2.1")
    first = nanny.wait_up()
    for _ in range(5):
        nanny.process.send_signal(number)
    assert nanny.addresses("a.test") == ["192.0.2.1"]
    assert alive(nanny.process.pid)
    assert nanny.pid == first
    nanny.process.send_signal(signal.SIGTERM)
    assert nanny.wait_exit() == 0
