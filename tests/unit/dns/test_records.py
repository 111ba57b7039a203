"""Records of upstream replies, compared with dnspython's reading, and messages made to hurt."""

import time

import dns.message
import dns.name
import dns.rdata
import dns.rdataclass
import dns.rrset
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubedns.dns.records import UNRESOLVED, resolution

NAME = "www.example.org."
QUERY = dns.message.make_query(NAME, "ANY", id=4711).to_wire()
END = len(QUERY)
RDATA = {
    "A": "192.0.2.1",
    "AAAA": "2001:db8::1",
    "NS": "ns.example.org.",
    "CNAME": "other.example.org.",
    "SOA": "ns.example.org. admin.example.org. 1 2 3 4 5",
    "PTR": "example.org.",
    "MX": "10 mail.example.org.",
    "TXT": '"text" "more"',
    "RP": "me.example.org. text.example.org.",
    "AFSDB": "1 afs.example.org.",
    "PX": "1 a.example.org. b.example.org.",
    "SRV": "1 2 3 target.example.org.",
    "KX": "1 kx.example.org.",
    "DNAME": "example.org.",
    "CAA": '0 issue "ca.example"',
    "TYPE65280": r"\# 3 010203",
}


@pytest.mark.parametrize(("rdtype", "text"), RDATA.items(), ids=RDATA)
def test_rdata_comes_uncompressed(rdtype, text):
    message = dns.message.make_response(dns.message.from_wire(QUERY))
    message.answer = [dns.rrset.from_text(f"sub.{NAME}", 300, "IN", rdtype, text)]
    (record,) = resolution(message.to_wire(), END).records
    rdata = dns.rdata.from_text("IN", rdtype, text)
    assert record.rdata == rdata.to_wire()
    assert (record.rtype, record.ttl) == (rdata.rdtype, 300)
    assert dns.name.Name((*record.owner, b"")) == dns.name.from_text(f"sub.{NAME}")


def crafted(records: list[bytes], count: int | None = None) -> bytes:
    header = b"\0\0\x81\x80\0\1" + (len(records) if count is None else count).to_bytes(2) + b"\0\0\0\0"
    return header + QUERY[12:] + b"".join(records)


def record(owner: bytes, rdata: bytes = b"", rtype: int = 1) -> bytes:
    return owner + rtype.to_bytes(2) + b"\0\1\0\0\0\x05" + len(rdata).to_bytes(2) + rdata


HURTFUL = {
    "pointer to itself": [record(b"\xc0" + bytes([END]))],
    "pointer ahead": [record(b"\xc0\xff")],
    "pointer past the end": [record(b"\xff\xff")],
    "two pointers at each other": [record(b"\xc0\x0c", bytes([0xC0, END + 14, 0xC0, END + 12]), 5)],
    "label run into its own pointer": [record(b"\xc0\x0c", b"\1a\xc0" + bytes([END + 12]), 5)],
    "label of 64": [record(b"\xc0\x0c", b"\x40" + b"a" * 64 + b"\0", 5)],
    "name of 256 octets": [record(b"\xc0\x0c", (b"\x3f" + b"a" * 63) * 4 + b"\0", 5)],
    "name longer than its rdata": [record(b"\xc0\x0c", b"\3www", 5), record(b"\0")],
    "rdata shorter than its fields": [record(b"\xc0\x0c", b"\0", 15)],
    "records missing": [record(b"\xc0\x0c", b"\1\2\3\4")] * 2,
}


@pytest.mark.parametrize("records", HURTFUL.values(), ids=HURTFUL)
def test_hurtful_reply_is_unresolved(records):
    count = 3 if records is HURTFUL["records missing"] else None
    assert resolution(crafted(records, count), END) == UNRESOLVED


def test_ttl_with_its_highest_bit_set_counts_as_zero():
    message = crafted([b"\xc0\x0c\0\1\0\1\x80\0\0\5\0\4\1\2\3\4"])
    assert resolution(message, END).records[0].ttl == 0


def test_records_of_other_classes_are_left_out():
    assert resolution(crafted([b"\xc0\x0c\0\1\0\3\0\0\0\5\0\4\1\2\3\4"]), END).records == ()


def test_64_kib_of_pointers_to_pointers_cost_little():
    chain = bytearray(b"\xc0\x0c")
    offset = END + 12
    while len(chain) < 16000:
        chain += (0xC000 | offset + len(chain) - 2).to_bytes(2)
    last = offset + len(chain) - 2
    records = [record(b"\xc0\x0c", bytes(chain), 16)]
    records += [record((0xC000 | last).to_bytes(2), b"\1\2\3\4")] * 3000
    begun = time.process_time()
    found = resolution(crafted(records), END)
    assert time.process_time() - begun < 2
    assert len(found.records) == 3001


@given(st.binary(max_size=500))
def test_any_octets_are_a_resolution(octets):
    message = b"\0\0\x81\x80\0\1" + octets[:6].ljust(6, b"\0") + QUERY[12:] + octets[6:]
    assert resolution(message, END).rcode in range(16)
