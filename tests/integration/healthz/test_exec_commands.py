"""Commands that hang, fork, shout, die and escape, in a real exechealthz."""

import os
import secrets
import signal
import time

import pytest

from tests.tools import tool

pytestmark = pytest.mark.integration

RUNS = int(os.environ.get("HEALTHZ_RUNS", "300"))
"""How many runs the test of flat resources takes."""


@pytest.fixture
def nap() -> str:
    """A `sleep` that only this test started."""
    return f"sleep 1000.{secrets.randbelow(10**9)}"


def test_good_command_is_200_and_shows_its_output_verbatim(healthz):
    program = healthz("--cmd=printf '%s' '%s%n<b>'", "--url=/x", "--output", "--period=100ms")
    assert program.wait_for_answer("/x", 200) == "%s%n<b>"


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("kill -9 $$", "failed: killed by SIGKILL"),
        ("sh -c 'kill -11 $$'; exit $?", "failed: exit status 139 (128 + SIGSEGV)"),
        ("echo why; exit 3", "failed: exit status 3\nwhy"),
        ("/no/such/command", "not found"),
        ("if", "failed: exit status 2"),
    ],
    ids=["signal", "child-signal", "status", "missing", "syntax"],
)
def test_failed_command_is_503_with_its_reason(healthz, command, reason):
    program = healthz(f"--cmd={command}", "--url=/x", "--period=100ms")
    assert reason in program.wait_for_answer("/x", 503, "failed")


def test_hanging_command_is_killed_with_its_children_and_never_runs_twice(healthz, alive, nap):
    program = healthz(f"--cmd={nap} & {nap}", "--url=/x", "--period=200ms", "--latency=500ms")
    assert program.get("/x")[0] == 503
    program.wait_for_answer("/x", 503, "killed with its process group: not done after 0.5 s")
    most = 0
    while program.metric('kubedns_exec_runs_total{result="failed",url="/x"}') < 4:
        most = max(most, len(alive(nap)))
        time.sleep(0.02)
    # The shell's own command line contains the text too.
    assert most <= 3


def test_result_turns_stale_while_the_next_run_hangs(healthz, tmp_path):
    flag = tmp_path / "once"
    program = healthz(
        f"--cmd=test -e {flag} && sleep 1000; touch {flag}", "--url=/x", "--period=1s", "--latency=2s"
    )
    program.wait_for_answer("/x", 200)
    program.wait_for_answer("/x", 503, "stale: the last result, good, is ")
    program.wait_for_answer("/x", 503, "failed: killed")


def test_background_process_that_holds_the_output_open_neither_blocks_nor_stays(
    healthz, alive, eventually, nap
):
    program = healthz(
        f"--cmd=({nap} &); echo done", "--url=/x", "--output", "--period=100ms", "--latency=20s"
    )
    assert program.wait_for_answer("/x", 200) == "done\n"
    program.stop()
    eventually(lambda: not alive(nap), "end of the background process")


def test_two_hundred_megabytes_of_output_are_drained_and_cost_no_memory(healthz):
    program = healthz(
        "--cmd=yes | head -c 200000000", "--url=/x", "--output", "--period=500ms", "--cmd=:", "--url=/y"
    )
    program.wait_for_answer("/y", 200)
    before = program.rss_kilobytes()
    body = program.wait_for_answer("/x", 200)
    assert "[and 199983616 octets more]" in body
    assert len(body) < 20_000
    assert program.rss_kilobytes() - before < 5_000


def test_slow_url_does_not_delay_another(healthz, nap):
    program = healthz(
        f"--cmd={nap}", "--url=/slow", "--cmd=:", "--url=/fast", "--period=50ms", "--latency=60s"
    )
    program.wait_for_answer("/fast", 200)
    begun = program.metric('kubedns_exec_runs_total{result="ok",url="/fast"}')
    while program.metric('kubedns_exec_runs_total{result="ok",url="/fast"}') < begun + 10:
        time.sleep(0.02)
    assert "no result yet" in program.get("/slow")[1]


def test_runs_of_one_url_never_overlap(healthz, tmp_path):
    lock, overlap = tmp_path / "lock", tmp_path / "overlap"
    program = healthz(
        f"--cmd=mkdir {lock} || touch {overlap}; sleep 0.1; rmdir {lock}", "--url=/x", "--period=20ms"
    )
    while program.metric('kubedns_exec_runs_total{result="ok",url="/x"}') < 10:
        time.sleep(0.02)
    assert not overlap.exists()


@pytest.mark.timeout(900)
def test_files_processes_and_memory_are_flat_over_many_runs(healthz, alive, nap):
    program = healthz(
        f"--cmd=({nap} &); echo x",
        "--url=/a",
        "--cmd=kill -9 $$",
        "--url=/b",
        "--period=20ms",
        "--latency=30s",
    )
    runs = (
        'kubedns_exec_runs_total{result="ok",url="/a"}',
        'kubedns_exec_runs_total{result="failed",url="/b"}',
    )

    def wait_for_runs(count: int) -> None:
        while sum(map(program.metric, runs)) < count:
            time.sleep(0.05)

    wait_for_runs(100)
    files, memory = program.open_files(), program.rss_kilobytes()
    wait_for_runs(100 + RUNS)
    # Each of the two commands may be starting at this moment: two ends of a pipe, a handle, Popen's own pipe.
    assert abs(program.open_files() - files) <= 10
    assert program.rss_kilobytes() - memory < 2_000
    assert len(alive(nap)) <= 2


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
def test_signal_ends_it_with_0_and_kills_the_children(healthz, alive, eventually, nap, signum):
    program = healthz(f"--cmd={nap} & {nap}", "--url=/x", "--latency=600s")
    eventually(lambda: len(alive(nap)) >= 2, "running command")
    begun = time.monotonic()
    program.process.send_signal(signum)
    assert program.process.wait(30) == 0
    assert time.monotonic() - begun < 5
    eventually(lambda: not alive(nap), "end of the command")
    assert "Traceback" not in program.log()


def test_as_process_1_it_reaps_orphans_and_keeps_its_childrens_statuses(healthz):
    program = healthz(
        "--cmd=(setsid sleep 0.05 &); (setsid sleep 0.05 &); exit 3",
        "--url=/x",
        "--cmd=ps -e -o stat= | grep -c '^Z'",
        "--url=/zombies",
        "--period=100ms",
        "--output",
        prefix=(tool("unshare:util-linux"), "--pid", "--fork", "--mount-proc", "--kill-child"),
    )
    assert "exit status 3" in program.wait_for_answer("/x", 503, "failed")
    while program.metric('kubedns_exec_runs_total{result="failed",url="/x"}') < 30:
        time.sleep(0.05)
    assert program.metric('kubedns_exec_runs_total{result="ok",url="/x"}') == 0
    # Some 60 orphans have ended by now; grep fails, exit status 1 and "0", when no zombie is left.
    program.wait_for_answer("/zombies", 503, "failed: exit status 1\n0")
    assert program.stop() == 0
