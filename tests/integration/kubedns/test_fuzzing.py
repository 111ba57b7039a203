"""A short run of the fuzzer against the real process (the long one is `make fuzz`)."""

import pytest

from tests.fuzz import attack

pytestmark = pytest.mark.integration


def test_server_survives_hostile_packets_without_a_fault_or_growth(start, cases_api):
    server = start(f"--kube-master-url={cases_api.url}", "--nameservers=127.0.0.1:9").synced()
    report = attack(server, seed=1, seconds=10.0)
    assert report.packets > 1000
    assert report.good(), str(report)
