"""Reading, judging and cutting messages, compared with dnspython's reading of them."""

import dns.edns
import dns.flags
import dns.message
import dns.rrset
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubedns.dns import message as upstream

NAME = "www.example.org."
QUERY = dns.message.make_query(NAME, "A", id=4711).to_wire()
END = len(QUERY)


def reply(
    answer: int = 0, authority: int = 0, additional: int = 0, *, edns: bool = False, flags: int = 0
) -> bytes:
    message = dns.message.make_response(dns.message.from_wire(QUERY))
    message.flags |= flags | dns.flags.RA
    message.answer = [dns.rrset.from_text(NAME, 300, "IN", "TXT", f'"{n:050}"') for n in range(answer)]
    message.authority = [
        dns.rrset.from_text(f"z{n}.{NAME}", 300, "IN", "NS", f"ns.z{n}.{NAME}") for n in range(authority)
    ]
    message.additional = [
        dns.rrset.from_text(f"ns.z{n}.{NAME}", 300, "IN", "A", "192.0.2.1") for n in range(additional)
    ]
    if edns:
        message.use_edns(0, payload=1400)
    return message.to_wire(max_size=65535)


def counts(message: bytes) -> tuple[int, ...]:
    parsed = dns.message.from_wire(message)
    return tuple(sum(map(len, section)) for section in (parsed.answer, parsed.authority, parsed.additional))


def test_message_that_fits_is_left_alone():
    message = reply(3, 2, 2)
    assert upstream.cut(message, END, len(message)) is message


def test_additional_records_go_first_without_tc_and_opt_stays():
    message = reply(2, 2, 30, edns=True)
    cut = upstream.cut(message, END, 512)
    assert counts(cut) == (2, 2, 0)
    assert dns.message.from_wire(cut).payload == 1400
    assert not dns.message.from_wire(cut).flags & dns.flags.TC


@given(st.integers(0, 12), st.integers(0, 12), st.integers(0, 12), st.booleans(), st.integers(512, 1400))
def test_cut_is_a_readable_prefix_that_fits(answer, authority, additional, edns, limit):
    message = reply(answer, authority, additional, edns=edns)
    cut = upstream.cut(message, END, limit)
    assert len(cut) <= limit
    parsed = dns.message.from_wire(cut)
    whole = dns.message.from_wire(message)
    have, had = counts(cut), counts(message)
    assert bool(parsed.flags & dns.flags.TC) == (have[:2] != had[:2])
    assert have[1] == 0 or have[0] == had[0]
    assert (parsed.edns, parsed.question) == (whole.edns, whole.question)
    for section, full in ((parsed.answer, whole.answer), (parsed.authority, whole.authority)):
        assert all(rrset in full or set(rrset) <= {r for f in full for r in f} for rrset in section)


def test_opt_that_leaves_no_room_loses_its_options():
    query = dns.message.from_wire(QUERY)
    message = dns.message.make_response(query)
    message.use_edns(0, options=[dns.edns.GenericOption(dns.edns.OptionType.make(65001), bytes(600))])
    message.answer = [dns.rrset.from_text(NAME, 1, "IN", "A", "192.0.2.1")]
    cut = upstream.cut(message.to_wire(), END, 512)
    assert counts(cut) == (1, 0, 0)
    assert dns.message.from_wire(cut).options == ()


def test_unreadable_message_keeps_header_and_question():
    message = reply(20)[:-1]
    cut = upstream.cut(message, END, 512)
    assert counts(cut) == (0, 0, 0)
    assert dns.message.from_wire(cut).flags & dns.flags.TC


@pytest.mark.parametrize(
    "query",
    [
        b"",
        QUERY[:-1],
        QUERY[:12],
        QUERY[:4] + b"\0\0" + QUERY[6:],
        QUERY[:12] + b"\xc0\x0c\0\1\0\1",
        QUERY[:12] + b"\x40" + bytes(80),
    ],
)
def test_query_without_one_whole_question_has_no_end(query):
    assert upstream.question_end(query) is None


@given(st.binary(max_size=300))
def test_any_octets_have_an_end_within_them_or_none(octets):
    end = upstream.question_end(octets)
    assert end is None or 17 <= end <= len(octets)


@given(st.binary(min_size=2, max_size=400))
def test_any_octets_behind_a_question_get_a_verdict_and_can_be_cut(octets):
    message = QUERY[:2] + b"\x81\x80\0\1" + octets[:6].ljust(6, b"\0") + QUERY[12:] + octets[6:]
    assert upstream.verdict(message, END) in upstream.Verdict
    for limit in (END + 11, 100, 512):
        assert len(upstream.cut(message, END, limit)) <= limit


@given(st.integers(0, 5), st.integers(0, 5), st.integers(0, 5))
def test_reply_that_lacks_octets_is_malformed(answer, authority, additional):
    message = reply(answer, authority, additional, flags=dns.flags.AA)
    assert upstream.verdict(message, END) is upstream.Verdict.ANSWER
    if answer + authority + additional:
        assert upstream.verdict(message[:-1], END) is upstream.Verdict.MALFORMED
