"""Readings of dnsmasq's statistics: figures, failures, and one log line per change."""

import logging
from collections.abc import Callable, Mapping

import dnslib
import pytest

from healthz.dnsmasqstats import DnsmasqStatistics

FIGURES = {"cachesize": 1000, "insertions": 10, "evictions": 1, "hits": 20, "misses": 30}


def txt(query: dnslib.DNSRecord, text: str | bytes) -> dnslib.DNSRecord:
    reply = query.reply()
    reply.add_answer(dnslib.RR(query.q.qname, dnslib.QTYPE.TXT, dnslib.CLASS.CH, 0, dnslib.TXT(text)))
    return reply


def dnsmasq(figures: Mapping[str, int]) -> Callable[[dnslib.DNSRecord], dnslib.DNSRecord]:
    return lambda query: txt(query, str(figures[str(query.q.qname).split(".")[0]]))


async def test_five_figures_are_read_in_class_chaos(dns_server):
    dns_server.answer = dnsmasq(FIGURES)
    statistics = DnsmasqStatistics(dns_server.address, 5)
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


async def test_failed_reading_is_counted_once_and_keeps_the_figures(dns_server):
    dns_server.answer = dnsmasq(FIGURES)
    statistics = DnsmasqStatistics(dns_server.address, 0.2)
    await statistics.read()
    before = statistics.cache.totals()
    dns_server.answer = lambda query: None
    await statistics.read()
    assert statistics.errors == 1
    assert statistics.failure is not None
    assert "no reply" in statistics.failure
    assert statistics.cache.totals() == before


@pytest.mark.parametrize("text", ["", "abc", "-1", "1.5", "9" * 200, "٣"])
async def test_answer_that_is_no_number_is_a_failure(dns_server, text):
    dns_server.answer = lambda query: txt(query, text.encode())
    statistics = DnsmasqStatistics(dns_server.address, 5)
    await statistics.read()
    assert statistics.failure is not None
    assert "is it dnsmasq?" in statistics.failure
    assert statistics.cache.totals() is None


async def test_refusal_is_a_failure(dns_server):
    statistics = DnsmasqStatistics(dns_server.address, 5)
    await statistics.read()
    assert statistics.errors == 1


async def test_one_log_line_for_each_change_of_state(dns_server, caplog):
    caplog.set_level(logging.INFO)
    statistics = DnsmasqStatistics(dns_server.address, 5)
    for answer in (dnsmasq(FIGURES), lambda query: query.reply(), dnsmasq(FIGURES)):
        dns_server.answer = answer
        for _ in range(3):
            await statistics.read()
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]
    assert "is it dnsmasq?" in caplog.records[0].getMessage()


async def test_dnsmasq_that_is_not_there_at_start_is_told_once(caplog, dns_server):
    statistics = DnsmasqStatistics(dns_server.address, 5)
    await statistics.read()
    await statistics.read()
    assert len(caplog.records) == 1
