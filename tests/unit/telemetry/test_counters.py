"""Plain counters, and what they become when somebody scrapes."""

import pytest

from kubedns.shared.histogram import Histogram
from kubedns.telemetry.counters import DURATION_BUCKETS, Outcome, ServerCounters, SystemCounters


def test_histogram_counts_a_value_at_its_bound_and_all_above():
    histogram = Histogram((1, 3))
    for value in (0.5, 1.0, 2.0, 9.0):
        histogram.observe(value)
    assert histogram.buckets() == [("1.0", 2.0), ("3.0", 3.0), ("+Inf", 4.0)]
    assert histogram.total == 12.5


def test_duration_buckets_are_the_originals():
    assert DURATION_BUCKETS[:2] == (0.001, 0.003)
    assert list(DURATION_BUCKETS) == sorted(DURATION_BUCKETS)


def test_sizes_of_small_and_large_replies_make_one_histogram():
    counters = SystemCounters()
    for size in (0, 512, 513, 1232, 1233, 65535):
        counters.count(Outcome.ANSWERED, size)
    buckets = dict(counters.size_histogram().buckets())
    assert buckets["0.0"] == 1
    assert buckets["512.0"] == 2
    assert buckets["1500.0"] == 5
    assert buckets["+Inf"] == 6
    assert counters.size_histogram().total == 0 + 512 + 513 + 1232 + 1233 + 65535


def test_truncation_counts_besides_the_answer_it_happened_to():
    counters = SystemCounters()
    counters.count(Outcome.ANSWERED, 512)
    counters.outcomes[Outcome.TRUNCATED] += 1
    assert counters.answered() == 1


def answered(system: SystemCounters, count: int) -> int:
    for _ in range(count):
        system.count(Outcome.ANSWERED, 100)
    return count


def test_time_of_a_wake_up_is_shared_by_the_answers_given_in_it():
    counters = ServerCounters()
    auth = counters.systems["auth"]
    counters.note_batch(0.008, answered(auth, 4))
    counters.note_batch(5.0, 0)
    counters.settle()
    assert auth.durations.buckets()[1] == ("0.003", 4.0)
    assert auth.durations.total == pytest.approx(0.008)
    assert counters.systems["reverse"].durations.total == 0


def test_quick_wake_ups_add_up_and_a_slow_one_among_them_is_seen():
    counters = ServerCounters()
    auth = counters.systems["auth"]
    counters.note_batch(0.0004, answered(auth, 2))
    counters.note_batch(0.0002, answered(auth, 1))
    counters.note_batch(0.04, answered(auth, 2))
    counters.note_batch(0.0001, answered(auth, 1))
    counters.settle()
    counters.settle()
    buckets = dict(auth.durations.buckets())
    assert (buckets["0.001"], buckets["0.01"], buckets["0.025"], buckets["+Inf"]) == (4, 4, 6, 6)
    assert auth.durations.total == pytest.approx(0.0407)


def test_quick_answers_of_two_systems_are_each_timed_once():
    counters = ServerCounters()
    for name in ("auth", "reverse"):
        counters.note_batch(0.0003, answered(counters.systems[name], 3))
    counters.settle()
    for name in ("auth", "reverse"):
        assert sum(counters.systems[name].durations.counts) == 3
        assert counters.systems[name].durations.total == pytest.approx(0.0003)


def test_answer_that_was_waited_for_is_timed_once():
    counters = ServerCounters()
    auth = counters.systems["auth"]
    auth.time(1.5, answered(auth, 1))
    counters.note_batch(0.0001, 0)
    counters.settle()
    assert auth.durations.counts[-1] == 0
    assert sum(auth.durations.counts) == 1
    assert auth.durations.total == 1.5
