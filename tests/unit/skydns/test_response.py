"""Answers -> octets: compression, fitting, turning."""

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from kubedns.dns import numbers
from kubedns.dns.error_reply import rejection
from kubedns.dns.names import Labels, to_wire
from kubedns.dns.query import Query, parse_query
from kubedns.skydns.response import Answer, pack
from kubedns.skydns.rrset import RRset, name_rrset, srv_rdata, txt_rrset
from tests.protocol.reading import ask, read

LABEL = st.sampled_from([b"a", b"b", b"web", b"svc", b"local", b"x" * 63])
NAME = st.lists(LABEL, min_size=1, max_size=3).map(tuple)
SHOP: Labels = (b"shop", b"svc", b"cluster", b"local")


def parsed(message: bytes) -> Query:
    query = parse_query(message)
    assert isinstance(query, Query)
    return query


def addresses(owner: Labels, count: int) -> RRset:
    return RRset(owner, numbers.A, 30, [bytes((10, 0, n // 256, n % 256)) for n in range(count)])


@settings(deadline=None)
@given(
    owners=st.lists(NAME, min_size=1, max_size=8),
    targets=st.lists(NAME, min_size=1, max_size=8),
    mixed=st.booleans(),
    keep=st.booleans(),
)
def test_any_answer_reads_back_as_it_was(owners, targets, mixed, keep):
    """Whatever names point at, foreign parsers find them again."""
    name = b".".join(owners[0]).decode()
    message = ask(name.upper() if mixed else name, "A")
    chain = [
        name_rrset(owner, numbers.CNAME, 30, (target,))
        for owner, target in zip(owners, targets, strict=False)
    ]
    srv = RRset(owners[-1], numbers.SRV, 30, (srv_rdata(5, 80, to_wire(targets[0])),))
    answer = Answer(
        answer=chain, authority=[srv], additional=[addresses(target, 2) for target in targets], keep=keep
    )
    query = parsed(message)
    octets, truncated = pack(query, answer).message(query, 65535)
    assert not truncated
    reply = read(message, octets, tcp=True)
    wanted = {(text(rrset.owner), text(rdata[0])) for rrset in chain for rdata in rrset.rdatas}
    assert {(r.owner.lower(), r.rdata.lower()) for r in reply.answer} == wanted
    assert {r.owner.lower() for r in reply.additional} == {text(target) for target in targets}


def text(labels) -> str:
    return b".".join(labels).decode() + "."


@pytest.mark.parametrize("limit", [512, 600, 1232])
def test_what_does_not_fit_is_cut_at_whole_records_with_tc(limit):
    message = ask("web.shop.svc.cluster.local", payload=limit)
    query = parsed(message)
    packed = pack(query, Answer(answer=[addresses((b"web", *SHOP), 200)], keep=True))
    for _ in range(5):
        octets, truncated = packed.message(query, limit)
        assert truncated
        reply = read(message, octets)
        assert limit - 16 < len(octets) <= limit
        assert len(reply.answer) == (limit - 12 - len(query.question) - 11) // 16


def test_records_of_different_sizes_are_cut_at_whole_records_wherever_they_begin():
    message = ask("web.shop.svc.cluster.local", "SRV")
    query = parsed(message)
    rdatas = tuple(srv_rdata(1, 80, to_wire((b"x" * (n % 50 + 1), *SHOP))) for n in range(40))
    packed = pack(query, Answer(answer=[RRset((b"web", *SHOP), numbers.SRV, 30, rdatas)], keep=True))
    for _ in range(45):
        octets, truncated = packed.message(query, 512)
        assert truncated
        assert read(message, octets).answer


def test_additional_records_go_first_and_silently():
    message = ask("web.shop.svc.cluster.local", "SRV", payload=512)
    query = parsed(message)
    answer = Answer(
        answer=[RRset((b"web", *SHOP), numbers.SRV, 30, (srv_rdata(1, 80, to_wire((b"a", *SHOP))),))],
        additional=[addresses((b"a", *SHOP), 100)],
    )
    octets, truncated = pack(query, answer).message(query, 512)
    assert not truncated
    reply = read(message, octets)
    assert (len(reply.answer), len(reply.additional)) == (1, 0)
    assert reply.message.edns == 0


def test_kept_answer_begins_at_every_record_in_turn_by_chance():
    message = ask("web.shop.svc.cluster.local")
    query = parsed(message)
    packed = pack(query, Answer(answer=[addresses((b"web", *SHOP), 3)], keep=True))
    seen = {packed.message(query, 512)[0][-4 - 32 : -32] for _ in range(200)}
    assert len(seen) == 3


def test_kept_answer_has_the_glue_of_its_own_case_whatever_the_questions():
    owner = (b"db", *SHOP)
    rrset = RRset(owner, numbers.SRV, 30, [srv_rdata(1, 80, to_wire((b"a%d" % n, *owner))) for n in range(3)])
    glue = [addresses((b"a%d" % n, *owner), 2) for n in range(3)]
    query = parsed(ask("DB.shop.SVC.cluster.local", "SRV"))
    packed = pack(query, Answer(answer=[rrset], additional=glue, keep=True))
    for spelling in ("db.shop.svc.cluster.local", "DB.SHOP.SVC.CLUSTER.LOCAL"):
        message = ask(spelling, "SRV")
        for _ in range(20):
            reply = read(message, packed.message(parsed(message), 1232)[0])
            assert {record.owner for record in reply.answer} == {spelling + "."}
            owners = {f"a{n}.db.shop.svc.cluster.local." for n in range(3)}
            assert {record.owner for record in reply.additional} == owners


@pytest.mark.parametrize("limit", range(512, 900, 7))
def test_no_record_comes_twice_and_no_room_is_left_for_another(limit):
    message = ask("web.shop.svc.cluster.local", "SRV", payload=limit)
    query = parsed(message)
    rdatas = [srv_rdata(1, n, to_wire((b"x" * (n % 50 + 1), *SHOP))) for n in range(20)]
    packed = pack(query, Answer(answer=[RRset((b"web", *SHOP), numbers.SRV, 30, rdatas)], keep=True))
    for _ in range(30):
        octets, truncated = packed.message(query, limit)
        reply = read(message, octets)
        assert len(set(reply.answer)) == len(reply.answer)
        assert len(octets) <= limit
        assert truncated == (len(reply.answer) < 20)
        assert not truncated or len(octets) > limit - 12 - 6 - 52 - 24


def test_names_are_compressed_so_that_3500_addresses_fit():
    query = parsed(ask("web.shop.svc.cluster.local"))
    octets, truncated = pack(query, Answer(answer=[addresses((b"web", *SHOP), 3500)])).message(query, 65535)
    assert not truncated
    assert len(octets) == 12 + len(query.question) + 3500 * 16


def test_text_is_cut_to_one_string():
    (rdata,) = txt_rrset(SHOP, 30, b"x" * 300).rdatas
    assert isinstance(rdata, bytes)
    assert rdata == b"\xff" + b"x" * 255


def test_rejection_has_the_question_where_there_was_one():
    message = ask("a.b", payload=1232)
    rejected = parse_query(message[:-1])
    assert rejected is not None
    assert not isinstance(rejected, Query)
    octets = rejection(rejected)
    assert octets[12:] == message[12:-11]
    assert octets[3] & 0xF == numbers.FORMERR
