"""Only NOERROR with an answer is healthy, and every reason names what was asked and where."""

import time
from collections.abc import Callable

import dnslib
import pytest

from healthz.dnsprobe import QTYPES, Probe, ask
from healthz.traffic import OwnQuestions
from kubedns.shared.servers import ServerAddress

ELSEWHERE = ServerAddress("192.0.2.53")
Answerer = Callable[[dnslib.DNSRecord], dnslib.DNSRecord]


def with_answer(zone: str) -> Answerer:
    def answer(query):
        reply = query.reply()
        reply.add_answer(*dnslib.RR.fromZone(zone))
        return reply

    return answer


def with_rcode(rcode: int) -> Answerer:
    def answer(query):
        reply = query.reply()
        reply.header.rcode = rcode
        return reply

    return answer


async def test_noerror_with_an_answer_is_healthy_and_measured(dns_server):
    dns_server.answer = with_answer("web.example. 5 IN A 192.0.2.1\nweb.example. 5 IN A 192.0.2.2")
    outcome = await ask(
        Probe("k", dns_server.address, "web.example", 5, "A"), time.monotonic, ELSEWHERE, OwnQuestions()
    )
    assert outcome.failure is None
    assert outcome.duration is not None
    assert outcome.output == b"192.0.2.1, 192.0.2.2"


@pytest.mark.parametrize(
    ("rcode", "word"), [(3, "NXDOMAIN"), (5, "REFUSED"), (2, "SERVFAIL"), (1, "FORMERR"), (12, "RCODE 12")]
)
async def test_error_code_fails_with_its_name(dns_server, rcode, word):
    dns_server.answer = with_rcode(rcode)
    outcome = await ask(
        Probe("k", dns_server.address, "web.example", 5, "A"), time.monotonic, ELSEWHERE, OwnQuestions()
    )
    assert outcome.failure == f"{word} for web.example A at {dns_server.address}"
    assert outcome.duration is not None


async def test_error_code_with_an_answer_fails(dns_server):
    def answer(query):
        reply = with_answer("web.example. 5 IN CNAME gone.example.")(query)
        reply.header.rcode = 3
        return reply

    dns_server.answer = answer
    outcome = await ask(
        Probe("k", dns_server.address, "web.example", 5, "A"), time.monotonic, ELSEWHERE, OwnQuestions()
    )
    assert outcome.failure is not None
    assert "NXDOMAIN" in outcome.failure


async def test_empty_answer_fails(dns_server):
    outcome = await ask(
        Probe("k", dns_server.address, "web.example", 5, "A"), time.monotonic, ELSEWHERE, OwnQuestions()
    )
    assert outcome.failure == f"NOERROR without an answer for web.example A at {dns_server.address}"


async def test_silence_fails_within_the_timeout_and_is_not_measured(dns_server):
    dns_server.answer = lambda query: None
    outcome = await ask(
        Probe("k", dns_server.address, "web.example", 0.25, "A"), time.monotonic, ELSEWHERE, OwnQuestions()
    )
    assert outcome.failure == f"{dns_server.address}: no reply within 0.2 s"
    assert outcome.duration is None


async def test_type_ch_asks_txt_in_class_chaos(dns_server):
    await ask(
        Probe("k", dns_server.address, "version.bind", 5, "CH"), time.monotonic, ELSEWHERE, OwnQuestions()
    )
    question = dns_server.asked[0].q
    assert (question.qtype, question.qclass) == (dnslib.QTYPE.TXT, dnslib.CLASS.CH)


@pytest.mark.parametrize("qtype", QTYPES)
async def test_every_type_is_asked_as_itself_in_class_in(dns_server, qtype):
    await ask(
        Probe("k", dns_server.address, "web.example", 5, qtype), time.monotonic, ELSEWHERE, OwnQuestions()
    )
    question = dns_server.asked[0].q
    assert (dnslib.QTYPE[question.qtype], question.qclass) == (qtype, dnslib.CLASS.IN)


async def test_record_that_cannot_be_written_as_text_is_shown_by_its_type(dns_server):
    flags_not_utf8 = b"\0\1\0\1\1\xb6\0\0\0"
    broken = dnslib.RR("web.example", dnslib.QTYPE.NAPTR, rdata=dnslib.RD(flags_not_utf8))

    def answer(query):
        reply = query.reply()
        reply.add_answer(broken)
        return reply

    dns_server.answer = answer
    outcome = await ask(
        Probe("k", dns_server.address, "web.example", 5, "A"), time.monotonic, ELSEWHERE, OwnQuestions()
    )
    assert (outcome.failure, outcome.output) == (None, b"NAPTR")


async def test_many_records_are_shown_cut_short(dns_server):
    dns_server.answer = with_answer("\n".join(f"web.example. 5 IN A 192.0.2.{n}" for n in range(9)))
    outcome = await ask(
        Probe("k", dns_server.address, "web.example", 5, "A"), time.monotonic, ELSEWHERE, OwnQuestions()
    )
    assert outcome.output.endswith(b"192.0.2.3 and 5 more")


@pytest.mark.parametrize(
    ("qtype", "authoritative", "counted"),
    [
        ("CH", 1, OwnQuestions(hits=1)),
        ("A", 0, OwnQuestions(hits=1)),
        ("A", 1, OwnQuestions(misses=1, kubedns=1)),
    ],
    ids=["chaos", "cached", "passed on"],
)
async def test_question_to_dnsmasq_is_counted_as_dnsmasq_counts_it(dns_server, qtype, authoritative, counted):
    def answer(query):
        reply = query.reply()
        reply.header.aa = authoritative
        return reply

    dns_server.answer = answer
    own = OwnQuestions()
    await ask(
        Probe("k", dns_server.address, "web.example", 5, qtype), time.monotonic, dns_server.address, own
    )
    assert own == counted


async def test_question_to_another_server_is_counted_as_kubednss(dns_server):
    own = OwnQuestions()
    await ask(Probe("k", dns_server.address, "web.example", 5, "A"), time.monotonic, ELSEWHERE, own)
    assert own == OwnQuestions(kubedns=1)
