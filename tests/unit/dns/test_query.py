"""Octets of a query -> question."""

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from kubedns.dns import numbers
from kubedns.dns.query import Edns, Query, Rejected, parse_query
from tests.protocol.reading import ask


def test_question_is_kept_byte_for_byte_and_its_name_in_lower_case():
    message = ask("WeB.Shop.SVC.cluster.local", "SRV")
    query = parse_query(message)
    assert isinstance(query, Query)
    assert query.question == message[12:]
    assert query.labels == (b"web", b"shop", b"svc", b"cluster", b"local")
    assert (query.qtype, query.qclass, query.edns) == (numbers.SRV, numbers.IN, None)
    assert not query.is_lower_case()


@pytest.mark.parametrize(
    ("payload", "udp"),
    [(None, 512), (0, 512), (100, 512), (512, 512), (900, 900), (1232, 1232), (65535, 1232)],
)
def test_limit_is_between_512_and_our_own(payload, udp):
    query = parse_query(ask("a.b", payload=payload, do=payload is not None))
    assert isinstance(query, Query)
    assert query.edns == (None if payload is None else Edns(payload, do=True))
    assert query.limit(tcp=False) == udp
    assert query.limit(tcp=True) == 65535


def test_version_of_edns_that_is_unknown_is_rejected_with_an_opt_record():
    message = bytearray(ask("a.b", payload=1232))
    message[-5] = 1
    rejected = parse_query(bytes(message))
    assert isinstance(rejected, Rejected)
    assert rejected.rcode == numbers.BADVERS
    assert rejected.edns == Edns(1232, do=False)


@settings(deadline=None)
@given(st.binary(max_size=300))
def test_any_octets_give_a_query_a_rejection_or_nothing(octets):
    found = parse_query(octets)
    assert found is None or found.message_id == octets[:2]
    if found is None:
        assert len(octets) < 12 or octets[2] & 0x80


@settings(deadline=None)
@given(st.integers(1, 40))
def test_query_cut_anywhere_after_its_header_is_malformed(cut):
    message = ask("web.shop.svc.cluster.local", payload=1232)
    found = parse_query(message[:-cut])
    assert isinstance(found, Rejected)
    assert found.rcode == numbers.FORMERR
