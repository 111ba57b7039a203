"""exechealthz while nobody reads its log."""

import pytest

from tests.fullpipe import Unread
from tests.ports import free_port

pytestmark = pytest.mark.integration
RUNS = r'kubedns_exec_runs_total\{result="ok",url="/live"\}'


def test_log_that_nobody_reads_stops_nothing():
    port = free_port()
    argv = ["healthz", f"--port={port}", "--cmd=true", "--url=/live", "--period=10ms", "--v=2"]
    with Unread([*argv, "--dnsmasq-poll-interval-ms=0", "--kubedns-readiness="]) as program:
        page = f"http://127.0.0.1:{port}"
        program.until("alive", lambda: program.healthy(f"{page}/live"))
        before = program.metric(f"{page}/metrics", RUNS)
        program.until("more runs", lambda: program.metric(f"{page}/metrics", RUNS) > before + 20)
        assert program.metric(f"{page}/metrics", "kubedns_exechealthz_log_lines_dropped_total") == 0
        assert program.healthy(f"{page}/live")
        assert program.terminate() == 0


def test_everything_is_logged_once_somebody_reads():
    port = free_port()
    argv = ["healthz", f"--port={port}", "--cmd=true", "--url=/live", "--dnsmasq-poll-interval-ms=0"]
    with Unread([*argv, "--kubedns-readiness="]) as program:
        program.until("alive", lambda: program.healthy(f"http://127.0.0.1:{port}/live"))
        assert "listens on port" in program.read_until("/live is healthy")
        assert program.terminate() == 0
