"""Signals that end nothing: SIGHUP, SIGUSR1, SIGUSR2."""

import os
import signal

import pytest

pytestmark = pytest.mark.integration


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2])
def test_signal_ends_nothing(healthz, number):
    program = healthz("--cmd=true", "--url=/x")
    program.wait_for_answer("/x", 200)
    for _ in range(5):
        os.kill(program.pid, number)
    program.wait_for_answer("/x", 200)
    assert program.stop() == 0


def test_sigusr1_writes_statistics_to_the_log(healthz):
    program = healthz("--cmd=echo no; false", "--url=/x", "--cmd=true", "--url=/y")
    program.wait_for_log("/x fails")
    program.wait_for_answer("/y", 200)
    os.kill(program.pid, signal.SIGUSR1)
    program.wait_for_log(r"statistics: /x: 0 good runs, \d+ failed; fails: .*")
    program.wait_for_log(r"statistics: /y: \d+ good runs, 0 failed; healthy")
