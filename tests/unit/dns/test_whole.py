"""Parsing: right for what is right, MalformedMessage and a bounded cost for all else."""

import contextlib
import struct
import time

import dnslib
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubedns.dns.labels import MalformedMessage
from kubedns.dns.whole import parse_message

ZONE = """
a.example. 60 IN A 192.0.2.1
a.example. 60 IN AAAA 2001:db8::1
a.example. 60 IN TXT "one" "two"
a.example. 60 IN SRV 1 2 3 b.example.
a.example. 60 IN SOA ns.example. host.example. 1 2 3 4 5
a.example. 60 IN MX 10 b.example.
a.example. 60 IN CNAME c.example.
a.example. 60 IN CAA 0 issue "x"
a.example. 60 IN HTTPS 1 . alpn=h2
"""


def every_type() -> bytes:
    message = dnslib.DNSRecord.question("a.example", "ANY").reply()
    message.add_answer(*dnslib.RR.fromZone(ZONE))
    message.add_ar(dnslib.EDNS0(udp_len=1232))
    return bytes(message.pack())


WIRE = every_type()


def test_message_is_read_as_dnslib_reads_it():
    assert parse_message(WIRE) == dnslib.DNSRecord.parse(WIRE)


def test_octets_after_the_message_are_ignored():
    assert parse_message(WIRE + b"trailing") == parse_message(WIRE)


@given(st.binary(max_size=200))
def test_any_octets_parse_or_are_malformed(octets):
    with contextlib.suppress(MalformedMessage):
        parse_message(octets)


@given(st.lists(st.tuples(st.integers(0, len(WIRE) - 1), st.integers(0, 255)), min_size=1, max_size=5))
def test_damaged_message_parses_or_is_malformed(damage):
    wire = bytearray(WIRE)
    for position, octet in damage:
        wire[position] = octet
    with contextlib.suppress(MalformedMessage):
        parse_message(bytes(wire))


@pytest.mark.parametrize("length", range(0, len(WIRE), 7))
def test_message_cut_anywhere_is_malformed(length):
    with pytest.raises(MalformedMessage):
        parse_message(WIRE[:length])


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        (b"\xc0\x0c", "does not lead back"),
        (b"\xc0\x20", "does not lead back"),
        (b"\x01a\xc0\x0c", "does not lead back"),
        (b"\x40a", "unknown kind"),
        (b"\x3f" + b"a" * 63 + (b"\x3f" + b"b" * 63) * 3 + b"\0", "longer than 255"),
    ],
    ids=["itself", "forward", "loop", "kind", "long"],
)
def test_name_that_breaks_the_rules_is_malformed(name, reason):
    with pytest.raises(MalformedMessage, match=reason):
        parse_message(struct.pack("!6H", 1, 0x8000, 1, 0, 0, 0) + name + b"\0\1\0\1")


def pointer_chain() -> bytes:
    """8,000 pointers, each to the one before: deeper than any recursion limit."""
    links = b"\0" + b"\0" + b"".join(struct.pack("!H", 0xC000 | 14 + 2 * n - 2) for n in range(1, 8000))
    body = b"\0\1\0\1" + b"\x00\x00\x00\x01\x00\x01\x00\x00\x00\x00" + struct.pack("!H", len(links)) + links
    return struct.pack("!6H", 1, 0x8000, 0, 2, 0, 0) + b"\0" + body + b"\xff\xff" + bytes(10)


def long_names() -> bytes:
    """4,000 records, each of whose names points at the same 16,000 octets of one-octet labels."""
    labels = b"\1a" * 8000 + b"\0"
    carrier = b"\0\0\x10\0\1\0\0\0\0" + struct.pack("!H", len(labels)) + labels
    return struct.pack("!6H", 1, 0x8000, 0, 4001, 0, 0) + carrier + (b"\xc0\x17\0\1\0\1\0\0\0\0\0\0") * 4000


@pytest.mark.parametrize("hostile", [pointer_chain(), long_names()], ids=["pointers", "labels"])
def test_message_built_to_be_expensive_is_malformed_at_once(hostile):
    begun = time.process_time()
    with pytest.raises(MalformedMessage):
        parse_message(hostile)
    assert time.process_time() - begun < 5
