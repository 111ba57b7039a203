"""The query log: its lines, its end, its bound."""

import asyncio
import logging
import time
from typing import Any

import dns.flags
import dns.message
import pytest

from kubedns.shared.querylogging import QueryLogging
from kubedns.shared.reply import Answered, Observer
from kubedns.skydns.querylog import MOST_LINES_PER_SECOND, QueryLog

CLIENT = ("192.0.2.7", 4711)


def answered(name: str = "web.example.", rdtype: str = "A", **changes: Any) -> Answered:
    query = dns.message.make_query(name, rdtype)
    reply = dns.message.make_response(query)
    reply.flags |= dns.flags.AA
    made = Answered(CLIENT, False, query.to_wire(), reply.to_wire(), 0.000035, "")
    return made._replace(**changes)


class Transport:
    """Where a query log is told of messages, as long as it wants to."""

    def __init__(self, *, always: bool = False) -> None:
        self.observer: Observer | None = None
        self.full_path = False
        self.log = QueryLog(self._observe, lambda: self.full_path, always=always)

    def _observe(self, observer: Observer | None) -> None:
        self.observer = observer

    def tell(self, one: Answered) -> None:
        if self.observer is not None:
            self.observer(one)


@pytest.fixture
def lines(caplog):
    caplog.set_level(logging.INFO)
    return lambda: [record.getMessage() for record in caplog.records]


@pytest.mark.parametrize(
    ("one", "line"),
    [
        (answered(), "query 192.0.2.7:4711 udp A web.example. NOERROR qr,aa,rd 29 octets, 35 us, fast"),
        (
            answered(client=("2001:db8::7", 53), tcp=True, by="192.0.2.53:53"),
            "query [2001:db8::7]:53 tcp A web.example. NOERROR qr,aa,rd 29 octets, 35 us, 192.0.2.53:53",
        ),
        (answered(reply=None), "query 192.0.2.7:4711 udp A web.example. no reply, 35 us"),
        (answered(rdtype="TYPE65399"), "TYPE65399 web.example."),
        (answered(rdtype="HTTPS"), "HTTPS web.example."),
        (answered(reply=b"\0\0\x81\x82" + bytes(8)), "SERVFAIL qr,rd,ra 12 octets, 35 us, nobody"),
        (answered(reply=b"\0\0\x83\xb9" + bytes(8)), "NOTAUTH qr,tc,rd,ra,ad,cd 12 octets"),
        (answered(message=b"\0\1\x28\0" + bytes(8), reply=b"\0\1\xa8\4" + bytes(8)), "no question NOTIMP qr"),
    ],
)
def test_line_says_who_asked_what_and_what_came_of_it(lines, one, line):
    Transport(always=True).tell(one)
    assert line in lines()[0]


def test_answer_that_was_made_for_the_question_is_the_zones(lines):
    transport = Transport(always=True)
    transport.full_path = True
    transport.tell(answered())
    assert lines()[0].endswith(", zone")


def test_name_cannot_write_lines_or_colours_of_its_own(lines):
    transport = Transport(always=True)
    transport.tell(answered(name="a\\010b\\027[31m\\200.example."))
    assert r"A a\010b\027[31m\200.example. NOERROR" in lines()[0]
    assert lines()[0].isprintable()


async def test_log_goes_off_again_by_itself(lines):
    transport = Transport()
    transport.tell(answered())
    transport.log.configure(QueryLogging(0.05))
    transport.tell(answered())
    async with asyncio.timeout(10):
        while transport.observer is not None:
            await asyncio.sleep(0.01)
    transport.log.configure(QueryLogging(0.05))
    assert transport.observer is None
    transport.tell(answered())
    said = lines()
    assert len([line for line in said if line.startswith("query ")]) == 1
    assert "are over" in said[-1]


async def test_log_goes_off_with_the_key_and_on_with_another(lines):
    transport = Transport()
    transport.log.configure(QueryLogging(60))
    transport.log.configure(None)
    transport.tell(answered())
    assert not any(line.startswith("query ") for line in lines())
    transport.log.configure(QueryLogging(61))
    transport.log.configure(QueryLogging(62))
    transport.tell(answered())
    assert lines()[-1].startswith("query ")
    transport.log.stop()


async def test_only_what_is_in_a_domain_is_logged(lines):
    transport = Transport()
    transport.log.configure(QueryLogging(60, ("example", "b.test")))
    for name in ("web.Example.", "example.", "notexample.", "b.test.", "test.", "."):
        transport.tell(answered(name=name))
    transport.log.stop()
    assert [line.split()[4] for line in lines() if line.startswith("query ")] == [
        "web.example.",
        "example.",
        "b.test.",
    ]


async def test_lines_are_bounded_and_what_is_left_out_is_counted(lines):
    transport, begun = Transport(always=True), time.monotonic()
    for _ in range(5 * MOST_LINES_PER_SECOND):
        transport.tell(answered())
    taken = time.monotonic() - begun
    await asyncio.sleep(1.1)
    transport.tell(answered())
    logged = [line for line in lines() if line.startswith("query ")]
    assert len(logged) <= MOST_LINES_PER_SECOND * (int(taken) + 2) + 1
    left_out = sum(int(line.split()[0]) for line in lines() if "left out" in line)
    assert len(logged) + left_out == 5 * MOST_LINES_PER_SECOND + 1


async def test_verbosity_goes_on_when_the_time_of_the_key_is_over(lines):
    transport = Transport(always=True)
    transport.log.configure(QueryLogging(0.01, ("else.test",)))
    transport.log.configure(None)
    transport.tell(answered())
    assert len([line for line in lines() if line.startswith("query ")]) == 1
