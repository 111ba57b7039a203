"""Labels, reverse names, pod names, record labels."""

from ipaddress import ip_address

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from kubedns.dns.names import (
    address_of_reverse,
    address_text,
    pack_address,
    parse_domain,
    pod_address,
    to_text,
    to_wire,
)

PACKED = st.one_of(st.binary(min_size=4, max_size=4), st.binary(min_size=16, max_size=16))


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("cluster.local", (b"cluster", b"local")),
        ("Cluster.LOCAL.", (b"cluster", b"local")),
        ("a", (b"a",)),
        ("1st-team", (b"1st-team",)),
    ],
)
def test_domain_of_dns_1123_labels_is_taken_in_any_case(text, labels):
    assert parse_domain(text) == labels


@pytest.mark.parametrize(
    "text", ["", ".", "a..b", ".a", "-a", "a-", "a_b", "a b", "*", "ä.de", "a" * 64, ".".join(["a" * 60] * 5)]
)
def test_text_that_is_no_domain_is_refused(text):
    with pytest.raises(ValueError, match=r"."):
        parse_domain(text)


def test_underscores_are_taken_only_where_they_are_allowed():
    assert parse_domain("_sip.a_b", underscores=True) == (b"_sip", b"a_b")


def test_longest_name_has_255_octets_on_the_wire():
    longest = ".".join(["a" * 63, "b" * 63, "c" * 63, "d" * 61])
    assert len(to_wire(parse_domain(longest))) == 255
    with pytest.raises(ValueError, match="longer"):
        parse_domain(longest + "d")


def test_text_of_a_name_escapes_what_a_reader_would_take_for_something_else():
    assert to_text((b"a.b", b"c\\d", b'e"', b"\0\xff ", b"f-_")) == 'a\\.b.c\\\\d.e\\".\\000\\255\\032.f-_.'
    assert to_text(()) == "."


@settings(deadline=None)
@given(PACKED)
def test_reverse_name_leads_back_to_its_address(packed):
    labels = tuple(ip_address(packed).reverse_pointer.encode().split(b"."))
    assert b".".join(labels).decode() == ip_address(packed).reverse_pointer
    assert address_of_reverse(labels) == packed


@pytest.mark.parametrize(
    "name",
    [
        "10.96.10.in-addr.arpa",
        "x.1.1.10.in-addr.arpa",
        "1.2.3.4.5.in-addr.arpa",
        "256.1.1.1.in-addr.arpa",
        "01.1.1.1.in-addr.arpa",
        "in-addr.arpa",
        "1.0.0.0.ip6.arpa",
        "ip6.arpa",
        "g" + ".0" * 31 + ".ip6.arpa",
        "00" + ".0" * 31 + ".ip6.arpa",
    ],
)
def test_name_that_is_no_full_reverse_name_has_no_address(name):
    assert address_of_reverse(tuple(name.encode().split(b"."))) is None


def test_reverse_name_with_blanks_among_its_digits_has_no_address():
    digits = tuple(b"%c" % octet for octet in b"0a600001".ljust(32)[::-1])
    assert address_of_reverse((*digits, b"ip6", b"arpa")) is None


@settings(deadline=None)
@given(PACKED)
def test_dashed_address_is_a_pods(packed):
    text = address_text(packed)
    assert pack_address(text) == packed
    assert pod_address(text.replace(".", "-").replace(":", "-").encode()) == packed


@pytest.mark.parametrize(
    "label", [b"1-2-3", b"300-1-1-1", b"foo", b"10.244.1.20", b"fd00::1", b"-", b"\xb2-1-1-1", b"1-1-1-1%0"]
)
def test_label_that_spells_no_address_is_no_pods(label):
    assert pod_address(label) is None


def test_address_with_a_zone_id_is_refused():
    with pytest.raises(ValueError, match="zone id"):
        pack_address("fe80::1%eth0")
