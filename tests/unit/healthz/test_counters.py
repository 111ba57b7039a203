"""Histogram buckets, and dnsmasq's counters over restarts."""

from hypothesis import given
from hypothesis import strategies as st

from healthz.counters import PROBE_BOUNDS, CacheStatistics, CacheTotals
from kubedns.shared.histogram import Histogram


def stats(insertions: int = 0, evictions: int = 0, hits: int = 0, misses: int = 0) -> CacheStatistics:
    return CacheStatistics(1000, insertions, evictions, hits, misses)


def test_probe_bounds_are_a_quarter_millisecond_doubling_sixteen_times():
    assert len(PROBE_BOUNDS) == 16
    assert PROBE_BOUNDS[0] == 0.00025
    assert PROBE_BOUNDS[-1] == 8.192


def test_histogram_bounds_are_inclusive_and_counts_cumulative():
    histogram = Histogram((1.0, 2.0))
    for value in (0.5, 1.0, 1.5, 2.0, 9.0):
        histogram.observe(value)
    assert histogram.cumulative() == [2, 4, 5]
    assert histogram.total == 14.0


def test_totals_before_the_first_reading_are_none():
    assert CacheTotals().totals() is None


def test_totals_of_a_running_dnsmasq_are_its_own_figures():
    totals = CacheTotals()
    totals.update(stats(1, 2, 3, 4))
    totals.update(stats(5, 6, 7, 8))
    assert totals.totals() == stats(5, 6, 7, 8)


def test_restarted_dnsmasq_adds_all_counters():
    totals = CacheTotals()
    totals.update(stats(10, 20, 30, 40))
    totals.update(stats(1, 20, 3, 41))
    assert totals.totals() == stats(11, 40, 33, 81)


def test_cleared_cache_adds_insertions_and_evictions_alone():
    totals = CacheTotals()
    totals.update(stats(10, 20, 30, 40))
    totals.update(stats(1, 0, 35, 45))
    assert totals.totals() == stats(11, 20, 35, 45)


def test_size_is_the_one_last_read():
    totals = CacheTotals()
    totals.update(CacheStatistics(1000, 0, 0, 0, 0))
    totals.update(CacheStatistics(150, 0, 0, 0, 0))
    now = totals.totals()
    assert now is not None
    assert now.size == 150


@given(st.lists(st.tuples(*[st.integers(0, 2**32 - 1)] * 4), min_size=1, max_size=30))
def test_totals_never_fall(readings):
    totals, before = CacheTotals(), (0, 0, 0, 0)
    for reading in readings:
        totals.update(stats(*reading))
        now = totals.totals()
        assert now is not None
        figures = (now.insertions, now.evictions, now.hits, now.misses)
        assert all(a >= b for a, b in zip(figures, before, strict=True))
        before = figures


def test_restart_that_the_figures_do_not_show_adds_all_counters_when_it_is_known():
    totals = CacheTotals()
    totals.update(stats(10, 20, 30, 40))
    totals.update(stats(15, 25, 80, 90), restarted=True)
    assert totals.totals() == stats(25, 45, 110, 130)
    assert totals.restarts == 1
