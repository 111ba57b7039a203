"""What a check says at each moment, without any real time passing."""

import pytest

from healthz.results import HISTORY, Check, Outcome, State
from kubedns.shared.histogram import Histogram


def new_check(stale_after: float = 30.0) -> Check:
    return Check("/healthz", "t", "d", stale_after=stale_after, latency=Histogram((0.1, 1.0)))


def test_check_without_a_result_is_waiting_and_not_healthy():
    verdict = new_check().verdict(1e9)
    assert verdict.state is State.WAITING
    assert not verdict.healthy
    assert "no result yet" in verdict.reason


def test_good_outcome_is_healthy_until_it_is_stale():
    check = new_check(stale_after=30)
    check.record(Outcome(100.0, 0.1))
    assert check.verdict(130.0).healthy
    verdict = check.verdict(130.1)
    assert verdict.state is State.STALE
    assert "30.1 s old" in verdict.reason
    assert "after 30 s" in verdict.reason


def test_bad_outcome_gives_its_reason_also_when_it_is_stale():
    check = new_check()
    check.record(Outcome(100.0, 0.1, "exit status 1"))
    assert check.verdict(101.0).state is State.FAILED
    assert check.verdict(101.0).reason == "exit status 1"
    assert "exit status 1" in check.verdict(200.0).reason


def test_record_tells_of_changes_only_and_since_is_their_time():
    check = new_check()
    changes = [
        check.record(Outcome(at, 0.1, failure)) for at, failure in [(1, None), (2, None), (3, "x"), (4, "y")]
    ]
    assert changes == [True, False, True, False]
    assert check.since == 3
    assert (check.successes, check.failures) == (2, 2)


def test_outcome_without_a_reply_is_counted_but_not_measured():
    check = new_check()
    check.record(Outcome(1.0, None, "no reply"))
    assert check.failures == 1
    assert check.latency.cumulative()[-1] == 0


def test_history_is_bounded():
    check = new_check()
    for at in range(HISTORY * 3):
        check.record(Outcome(float(at), 0.1, None if at % 2 else "x"))
    assert len(check.history) == HISTORY
    assert check.successes + check.failures == HISTORY * 3


@pytest.mark.parametrize("later", [0.0, 29.9])
def test_new_result_ends_staleness(later):
    check = new_check()
    check.record(Outcome(0.0, 0.1))
    assert not check.verdict(1000.0).healthy
    check.record(Outcome(1000.0, 0.1))
    assert check.verdict(1000.0 + later).healthy
