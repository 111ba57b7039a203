"""Start, end and death of the nanny and its dnsmasq."""

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.integration.nanny.conftest import CHECKOUT, alive, wait_for

pytestmark = pytest.mark.integration

IGNORES_TERM = 'trap "" TERM\n/usr/sbin/dnsmasq "$@" &\nwhile :; do wait; sleep 1; done'


def run(*words: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "nanny", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=30, cwd=CHECKOUT, check=False)


def test_a_killed_dnsmasq_is_started_again_and_answers(start):
    nanny = start("--address=/a.test/192.0.2.1")
    first = nanny.wait_up()
    os.kill(first, signal.SIGKILL)
    second = nanny.wait_up(2)
    assert second != first
    assert nanny.addresses("a.test") == ["192.0.2.1"]
    assert nanny.descendants() == [second]
    assert nanny.log.count("dnsmasq was killed by SIGKILL: starting it again\n") == 1
    assert nanny.metric('dnsmasq_nanny_restarts_total{reason="died"}') == 1


def test_a_dnsmasq_that_keeps_dying_ends_the_nanny_which_names_the_signal(start, script):
    nanny = start(dnsmasq=script('/usr/sbin/dnsmasq "$@" &\nsleep 0.3\nkill -9 $$'))
    assert nanny.wait_exit() == 1
    assert len(re.findall(r"killed by SIGKILL: starting it again", nanny.log)) == 5
    assert nanny.log.endswith("dnsmasq was killed by SIGKILL\n")


def test_a_dnsmasq_that_fails_says_the_reason_and_not_only_that(start, script):
    words = "echo dnsmasq: failed to create inotify: Too many open files; echo dnsmasq: FAILED to start up"
    nanny = start(dnsmasq=script(f"{words}; exit 5"))
    assert nanny.wait_exit() == 1
    assert nanny.log.endswith(
        "dnsmasq exited with status 5: dnsmasq: failed to create inotify: Too many open files\n"
    )


def test_dnsmasq_that_ends_by_itself_ends_the_nanny_which_names_the_status(start, script):
    nanny = start(dnsmasq=script("echo out of order; exit 7"))
    assert nanny.wait_exit() == 1
    assert "dnsmasq exited with status 7: out of order" in nanny.log


def test_nanny_killed_takes_dnsmasq_with_it(start):
    nanny = start()
    pid = nanny.wait_up()
    nanny.process.kill()
    nanny.wait_exit()
    wait_for("the end of dnsmasq", lambda: not alive(pid))


def test_sigterm_lets_dnsmasq_answer_on_for_the_lame_duck_time(start):
    nanny = start("--address=/a.test/192.0.2.1", flags=("--lameDuck=1500ms",))
    pid = nanny.wait_up()
    began = time.monotonic()
    nanny.process.terminate()
    nanny.wait_log("SIGTERM: dnsmasq goes on answering for 1.5 s")
    assert nanny.addresses("a.test") == ["192.0.2.1"]
    assert nanny.wait_exit() == 0
    assert time.monotonic() - began > 1
    assert not alive(pid)
    assert "exiting on receipt of SIGTERM" in nanny.log


@pytest.mark.parametrize("second", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_ends_all_at_once(start, second):
    nanny = start(flags=("--lameDuck=10m",))
    pid = nanny.wait_up()
    nanny.process.terminate()
    nanny.wait_log("SIGTERM: dnsmasq goes on")
    nanny.process.send_signal(second)
    assert nanny.wait_exit() == 0
    assert not alive(pid)


def test_sigint_ends_all_at_once(start):
    nanny = start(flags=("--lameDuck=10m",))
    pid = nanny.wait_up()
    nanny.process.send_signal(signal.SIGINT)
    assert nanny.wait_exit() == 0
    assert not alive(pid)


def test_a_dnsmasq_that_ignores_sigterm_is_killed_with_its_group(start, script):
    nanny = start(dnsmasq=script(IGNORES_TERM))
    nanny.wait_up()
    pids = nanny.descendants()
    nanny.process.terminate()
    assert nanny.wait_exit() == 0
    assert "did not end within 1 s of SIGTERM: killing it" in nanny.log
    assert not any(alive(pid) for pid in pids)


def test_orphans_are_reaped_and_the_childs_own_status_is_not_lost(start, script):
    nanny = start(dnsmasq=script('( sleep 0.01 & sleep 0.02 & )\nexec /usr/sbin/dnsmasq "$@"'))
    pid = nanny.wait_up()
    wait_for("only dnsmasq is left", lambda: nanny.descendants() == [pid])
    os.kill(pid, signal.SIGKILL)
    nanny.wait_log("dnsmasq was killed by SIGKILL")


def test_tcp_children_of_a_killed_dnsmasq_do_not_hold_the_port(start):
    nanny = start("--address=/a.test/192.0.2.1")
    pid = nanny.wait_up()
    with contextlib.ExitStack() as clients:
        for _ in range(5):
            clients.enter_context(socket.create_connection(("127.0.0.1", nanny.port)))
        wait_for("a process per client", lambda: len(nanny.descendants()) == 6)
        os.kill(pid, signal.SIGKILL)
        second = nanny.wait_up(2)
        assert nanny.descendants() == [second]
    assert nanny.addresses("a.test") == ["192.0.2.1"]
    assert "Address already in use" not in nanny.log


def test_a_dnsmasq_that_does_not_exist_is_127_and_one_that_cannot_run_126(tmp_path):
    ended = run("--metricsPort=0", "--dnsmasqExec=/no/such/dnsmasq", "--", "-k")
    assert ended.returncode == 127
    assert "cannot execute /no/such/dnsmasq (-dnsmasqExec): No such file or directory" in ended.stderr
    plain = tmp_path / "dnsmasq"
    plain.write_text("")
    ended = run("--metricsPort=0", f"--dnsmasqExec={plain}")
    assert ended.returncode == 126
    assert "Permission denied" in ended.stderr
    plain.chmod(0o755)
    assert run("--metricsPort=0", f"--dnsmasqExec={plain}").returncode == 126


def test_given_arguments_that_dnsmasq_refuses_end_the_nanny_with_dnsmasqs_words():
    ended = run("--metricsPort=0", "--", "--server=/a.test/192.0.2.1#99999")
    assert ended.returncode == 1
    assert "dnsmasq refuses the given arguments" in ended.stderr
    assert "bad port" in ended.stderr


def test_a_wrong_command_line_is_2_with_a_hint():
    ended = run("--bogus")
    assert ended.returncode == 2
    assert ended.stderr == "dnsmasq-nanny: unknown flag: --bogus\nTry 'dnsmasq-nanny --help'.\n"


def test_a_busy_metrics_port_is_named(start):
    with socket.socket() as taken:
        taken.bind(("0.0.0.0", 0))
        taken.listen()
        port = taken.getsockname()[1]
        ended = run(f"--metricsPort={port}", "--", "--port=0")
    assert ended.returncode == 1
    assert f"port {port} for metrics (-metricsPort) is in use" in ended.stderr


def test_a_hosts_directory_that_is_missing_is_named_and_not_made(tmp_path):
    ended = run("--metricsPort=0", f"--hostsDir={tmp_path}/no")
    assert ended.returncode == 2
    assert ended.stderr == (
        f"dnsmasq-nanny: --hostsDir={tmp_path}/no: No such file or directory; make it first\n"
        "Try 'dnsmasq-nanny --help'.\n"
    )
    assert not (tmp_path / "no").exists()


def test_a_hosts_directory_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "hosts.new").mkdir()
    ended = run("--metricsPort=0", f"--hostsDir={tmp_path}")
    assert ended.returncode == 1
    assert f"cannot write {tmp_path} (-hostsDir)" in ended.stderr


def test_what_a_killed_nanny_leaves_the_next_removes(start, tmp_path):
    first, living = start(tmpdir=tmp_path), start(tmpdir=tmp_path)
    first.wait_up()
    living.wait_up()
    before = set(tmp_path.glob("dnsmasq-nanny-*"))
    assert len(before) == 2
    first.process.kill()
    first.wait_exit()
    last = start(tmpdir=tmp_path)
    last.wait_up()
    (removed,) = before - set(tmp_path.glob("dnsmasq-nanny-*"))
    assert f"removed {removed}, left behind" in last.log


def test_help_and_version_are_printed():
    assert "Exit status:" in run("--help").stdout
    assert run("--version").stdout.startswith("dnsmasq-nanny 0.")


def test_the_log_interval_makes_dnsmasq_log_its_statistics(start):
    nanny = start(flags=("--logInterval=200ms",))
    nanny.wait_log("queries forwarded 0", times=2)
    assert nanny.process.poll() is None


def test_dnsmasq_runs_as_the_nannys_user_so_that_the_death_signal_holds(start):
    nanny = start()
    status = Path(f"/proc/{nanny.wait_up()}/status").read_text()
    assert f"\nUid:\t{os.getuid()}\t" in status
    assert f"\nGid:\t{os.getgid()}\t" in status


def test_any_output_of_the_child_is_survived(start, script):
    flood = "head -c 3000000 /dev/zero; printf '\\n\\377\\033[0m%%s\\n'"
    nanny = start("--address=/a.test/192.0.2.1", dnsmasq=script(flood + '\nexec /usr/sbin/dnsmasq "$@"'))
    nanny.wait_up()
    assert r"\xff\x1b[0m%s" in nanny.log
    assert nanny.addresses("a.test") == ["192.0.2.1"]
