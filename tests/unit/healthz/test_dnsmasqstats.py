"""Readings of dnsmasq's statistics: figures, failures, and one log line per change."""

import logging
from collections.abc import Callable, Mapping

import dnslib
import pytest

from healthz.traffic import OwnQuestions

FIGURES = {"cachesize": 1000, "insertions": 10, "evictions": 1, "hits": 20, "misses": 30}


def txt(query: dnslib.DNSRecord, text: str | bytes) -> dnslib.DNSRecord:
    reply = query.reply()
    reply.add_answer(dnslib.RR(query.q.qname, dnslib.QTYPE.TXT, dnslib.CLASS.CH, 0, dnslib.TXT(text)))
    return reply


def dnsmasq(figures: Mapping[str, int]) -> Callable[[dnslib.DNSRecord], dnslib.DNSRecord]:
    return lambda query: txt(query, str(figures[str(query.q.qname).split(".")[0]]))


async def test_five_figures_are_read_in_class_chaos(dns_server, statistics_of):
    dns_server.answer = dnsmasq(FIGURES)
    statistics = statistics_of(dns_server.address, 5)
    await statistics.read()
    totals = statistics.cache.totals()
    assert totals is not None
    assert (totals.size, totals.insertions, totals.evictions, totals.hits, totals.misses) == (
        1000,
        10,
        1,
        20,
        30,
    )
    assert (statistics.failure, statistics.errors) == (None, 0)
    assert {(str(q.q.qname), q.q.qclass) for q in dns_server.asked} == {
        (f"{name}.bind.", dnslib.CLASS.CH) for name in FIGURES
    }


async def test_failed_reading_is_counted_once_and_keeps_the_figures(dns_server, statistics_of):
    dns_server.answer = dnsmasq(FIGURES)
    statistics = statistics_of(dns_server.address, 0.2)
    await statistics.read()
    before = statistics.cache.totals()
    dns_server.answer = lambda query: None
    await statistics.read()
    assert statistics.errors == 1
    assert statistics.failure is not None
    assert "no reply" in statistics.failure
    assert statistics.cache.totals() == before


@pytest.mark.parametrize("text", ["", "abc", "-1", "1.5", "9" * 200, "٣"])
async def test_answer_that_is_no_number_is_a_failure(dns_server, text, statistics_of):
    dns_server.answer = lambda query: txt(query, text.encode())
    statistics = statistics_of(dns_server.address, 5)
    await statistics.read()
    assert statistics.failure is not None
    assert "is it dnsmasq?" in statistics.failure
    assert statistics.cache.totals() is None


async def test_refusal_is_a_failure(dns_server, statistics_of):
    statistics = statistics_of(dns_server.address, 5)
    await statistics.read()
    assert statistics.errors == 1


async def test_one_log_line_for_each_change_of_state(dns_server, caplog, statistics_of):
    caplog.set_level(logging.INFO)
    statistics = statistics_of(dns_server.address, 5)
    for answer in (dnsmasq(FIGURES), lambda query: query.reply(), dnsmasq(FIGURES)):
        dns_server.answer = answer
        for _ in range(3):
            await statistics.read()
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]
    assert "is it dnsmasq?" in caplog.records[0].getMessage()


async def test_dnsmasq_that_is_not_there_at_start_is_told_once(caplog, dns_server, statistics_of):
    statistics = statistics_of(dns_server.address, 5)
    await statistics.read()
    await statistics.read()
    assert len(caplog.records) == 1


@pytest.mark.parametrize("texts", [["5", "6"], ["56", ""], []])
async def test_figure_of_several_strings_is_a_failure(dns_server, statistics_of, texts):
    def answer(query):
        reply = query.reply()
        record = dnslib.TXT([text.encode() for text in texts] or b"")
        reply.add_answer(dnslib.RR(query.q.qname, dnslib.QTYPE.TXT, dnslib.CLASS.CH, 0, record))
        return reply

    dns_server.answer = answer
    statistics = statistics_of(dns_server.address)
    await statistics.read()
    assert statistics.errors == 1
    assert statistics.cache.totals() is None


async def test_restart_is_not_missed_when_the_counters_have_passed_their_old_values(
    dns_server, statistics_of
):
    up_since = 1000.0
    statistics = statistics_of(dns_server.address, started=lambda: up_since)
    dns_server.answer = dnsmasq(FIGURES | {"hits": 30})
    await statistics.read()
    up_since = 2000.0
    dns_server.answer = dnsmasq(FIGURES | {"hits": 80})
    await statistics.read()
    totals = statistics.cache.totals()
    assert totals is not None
    assert totals.hits == 110
    await statistics.read()
    assert statistics.cache.totals() == totals


async def test_figures_read_across_a_restart_are_dropped(dns_server, statistics_of):
    said = iter([1000.0, 1000.0, 1000.0, 2000.0, 2000.0, 2000.0])
    statistics = statistics_of(dns_server.address, started=lambda: next(said))
    dns_server.answer = dnsmasq(FIGURES | {"hits": 30})
    await statistics.read()
    dns_server.answer = dnsmasq(FIGURES | {"hits": 80})
    await statistics.read()
    before = statistics.cache.totals()
    assert before is not None
    assert before.hits == 30
    await statistics.read()
    after = statistics.cache.totals()
    assert after is not None
    assert after.hits == 110


async def test_unknown_start_leaves_it_to_the_counters(dns_server, statistics_of):
    said = iter([1000.0, 1000.0, None, None, 1000.0, 1000.0])
    statistics = statistics_of(dns_server.address, started=lambda: next(said))
    for hits in (30, 40, 50):
        dns_server.answer = dnsmasq(FIGURES | {"hits": hits})
        await statistics.read()
    totals = statistics.cache.totals()
    assert totals is not None
    assert totals.hits == 50


async def test_own_questions_are_those_that_the_figures_hold_already(dns_server, statistics_of):
    own = OwnQuestions(hits=7)
    statistics = statistics_of(dns_server.address, own=own)
    dns_server.answer = dnsmasq(FIGURES)
    await statistics.read()
    assert (statistics.own_before.hits, own.hits) == (7, 12)
