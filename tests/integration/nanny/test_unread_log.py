"""The nanny while nobody reads its log: dnsmasq, whose log goes through it, must go on."""

import re
import urllib.request

import pytest

from tests.fullpipe import Unread
from tests.integration.kubedns.programs import ask_udp
from tests.ports import free_port
from tests.protocol.reading import ask, read

pytestmark = pytest.mark.integration
QUERY = ask("web.example")


def test_dnsmasq_answers_on_while_nobody_reads_its_log(tmp_path):
    port, metrics = free_port("::"), free_port("::")
    argv = ["nanny", f"--configDir={tmp_path}", f"--metricsPort={metrics}", "--lameDuck=0s", "--"]
    argv += [f"--port={port}", "--conf-file=/dev/null", "--no-hosts", "--no-resolv", "--log-queries"]
    argv += ["--log-facility=-", "--host-record=web.example,192.0.2.7"]
    with Unread(argv) as nanny:
        page = f"http://127.0.0.1:{metrics}/metrics"
        nanny.until("dnsmasq is up", lambda: nanny.healthy(page) and up(page))

        def lost() -> bool:
            for _ in range(200):
                assert read(QUERY, ask_udp(QUERY, port)).rdatas("A") == {"192.0.2.7"}
            return nanny.metric(page, "dnsmasq_nanny_log_lines_dropped_total") > 0

        nanny.until("lines are dropped", lost)
        assert nanny.terminate() == 0


def up(page: str) -> bool:
    with urllib.request.urlopen(page, timeout=5.0) as response:
        text = response.read().decode()
    found = re.search(r"^dnsmasq_nanny_child_start_time_seconds (\S+)$", text, re.MULTILINE)
    return found is not None and float(found[1]) > 0
