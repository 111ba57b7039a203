"""An hour of traffic: what clients asked, without exechealthz's own questions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from healthz.account import Traffic
from healthz.counters import CacheStatistics, CacheTotals
from healthz.traffic import (
    POINT_SECONDS,
    POINTS,
    Client,
    DnsmasqTraffic,
    History,
    KubednsTraffic,
    OwnQuestions,
    Point,
)


def test_own_questions_are_no_clients_even_when_they_are_counted_late():
    client = Client()
    assert client.grown(100, 10) == 0
    assert client.grown(105, 15) == 0
    assert client.grown(105, 20) == 0  # asked, not counted yet
    assert client.grown(110, 20) == 0  # counted now
    assert client.grown(118, 25) == 3


def test_restart_forgets_what_was_asked_of_the_dead():
    client = Client()
    client.grown(100, 0)
    client.grown(100, 50)
    client.restarted(from_zero=True)
    assert client.grown(7, 50) == 7
    assert client.grown(9, 50) == 2
    client.grown(9, 90)
    client.restarted(from_zero=False)
    assert client.grown(12, 90) == 3


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), max_size=30))
def test_clients_are_exactly_those_who_asked_once_everything_is_counted(steps):
    client, count, own, seen = Client(), 0, 0, 0
    client.grown(0, 0)
    for clients, ours in steps:
        count, own = count + clients + ours, own + ours
        seen += client.grown(count, own)
    assert seen == sum(clients for clients, _ in steps)


def test_history_is_an_hour_and_leaves_gaps_where_nothing_was_seen():
    history = History()
    history.add(1000.0, Point(kubedns_seconds=5.0, questions=10))
    history.add(1005.0, Point(kubedns_seconds=5.0, questions=20))
    history.add(1000.0 + 3 * POINT_SECONDS, Point(kubedns_seconds=5.0, questions=5))
    assert [point.kubedns_rate for point in history.points] == [3.0, None, None, 1.0]
    assert history.hour().questions == 35
    assert history.recent().kubedns_rate == 1.0
    history.add(1e6, Point())
    assert len(history.points) == POINTS
    assert history.hour().questions == 0


def test_point_keeps_that_something_was_wrong_in_it():
    history = History()
    history.add(0.0, Point(wrong=True))
    history.add(5.0, Point())
    assert history.points[-1].wrong


def test_kubedns_that_restarted_counts_from_zero():
    traffic = KubednsTraffic()
    assert traffic.seen(Traffic(100, 10, 1), 5.0, 0, 10.0) == Point()
    assert traffic.seen(Traffic(130, 12, 1), 5.0, 10, 15.0) == Point(5.0, questions=20, nxdomain=2)
    assert traffic.seen(Traffic(130, 12, 1), 5.0, 10, 15.0) == Point()
    assert traffic.seen(Traffic(4, 0, 2), 14.0, 10, 20.0) == Point(5.0, questions=4, servfail=2)


def test_cache_ratio_without_any_client_is_unknown():
    traffic, cache, own = DnsmasqTraffic(), CacheTotals(), OwnQuestions()
    seen = Point()
    for reading in range(5):
        cache.update(CacheStatistics(1000, 0, 0, 6 * reading, reading))
        seen.add(traffic.seen(cache, OwnQuestions(6 * reading, reading), float(5 * reading)))
    assert seen.hit_ratio is None
    assert seen.dnsmasq_rate == 0.0
    cache.update(CacheStatistics(1000, 0, 0, 33, 5))
    seen.add(traffic.seen(cache, OwnQuestions(30, 4), 25.0))
    assert seen.hit_ratio == pytest.approx(0.75)
    assert own == OwnQuestions()
