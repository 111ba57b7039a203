"""Every reply, read by two foreign parsers that do not forgive.

`read` checks what must hold of any reply whatever was asked (RFC 1035 4.1, RFC 6891): the ID, the
question byte for byte, the counts, no octet too many, the size, an OPT record exactly where one
was asked for, TC only with a reason; and that dnspython and dnslib read the same records.
"""

from dataclasses import dataclass

import dns.flags
import dns.message
import dns.name
import dns.rcode
import dns.rdataclass
import dns.rdatatype
import dnslib

OWN_UDP_LIMIT = 1232


@dataclass(frozen=True)
class Record:
    """One record as text; `owner` keeps the case that it came in."""

    owner: str
    ttl: int
    rdtype: str
    rdata: str


@dataclass(frozen=True)
class Reply:
    """A reply taken apart; sections are sorted, since order carries no meaning but for the chain."""

    message: dns.message.Message
    size: int
    rcode: str
    flags: frozenset[str]
    answer: tuple[Record, ...]
    authority: tuple[Record, ...]
    additional: tuple[Record, ...]

    @property
    def truncated(self) -> bool:
        return "TC" in self.flags

    def rdatas(self, rdtype: str) -> set[str]:
        """The data of the answer's records of one type."""
        return {record.rdata for record in self.answer if record.rdtype == rdtype}


def ask(
    name: str | dns.name.Name,
    rdtype: str = "A",
    *,
    rdclass: str = "IN",
    payload: int | None = None,
    do: bool = False,
    rd: bool = True,
    message_id: int = 4711,
) -> bytes:
    """Return a query; `payload` None means without EDNS.  The case of `name` is kept."""
    query = dns.message.make_query(name, rdtype, rdclass, id=message_id)
    if not rd:
        query.flags &= ~dns.flags.RD
    if payload is not None:
        query.use_edns(0, dns.flags.DO if do else 0, payload)
    return query.to_wire()


def read(query: bytes, reply: bytes | None, *, tcp: bool = False) -> Reply:
    """Take the reply to a well-formed query apart; AssertionError says what is wrong with it."""
    assert reply is not None, "no reply"
    assert reply[:2] == query[:2], "another ID"
    option = _option(query)
    message = dns.message.from_wire(reply, ignore_trailing=False, one_rr_per_rrset=True)
    other = dnslib.DNSRecord.parse(reply)
    end = _question_end(query)
    assert message.flags & dns.flags.QR
    assert reply[2] & 0x78 == query[2] & 0x78, "another opcode"
    assert reply[2] & 1 == query[2] & 1, "RD not copied"
    assert reply[4:6] == b"\0\1"
    assert reply[12:end] == query[12:end], "another question"
    assert (message.edns >= 0) == (option is not None), "OPT without being asked, or not answered"
    limit = 512
    if option is not None:
        limit = min(max(option[0], 512), OWN_UDP_LIMIT)
        assert bool(message.ednsflags & dns.flags.DO) == option[1], "DO not copied"
    limit = 65535 if tcp else limit
    assert len(reply) <= limit, f"{len(reply)} octets where {limit} were allowed"
    sections = [_records(section) for section in (message.answer, message.authority, message.additional)]
    counts = [int.from_bytes(reply[at : at + 2]) for at in (6, 8, 10)]
    options = 1 if message.edns >= 0 else 0
    assert counts == [len(sections[0]), len(sections[1]), len(sections[2]) + options]
    assert counts == [len(other.rr), len(other.auth), len(other.ar)]
    for mine, theirs in zip(sections, (other.rr, other.auth, other.ar), strict=True):
        assert {(_plain(record.owner), record.ttl) for record in mine} == {
            (_plain(str(rr.rname)), rr.ttl) for rr in theirs if rr.rtype != dns.rdatatype.OPT
        }
    return Reply(
        message,
        len(reply),
        dns.rcode.to_text(message.rcode()),
        frozenset(dns.flags.to_text(message.flags).split()),
        *(tuple(sorted(section, key=repr)) for section in sections),
    )


def _records(section: list[dns.rrset.RRset]) -> list[Record]:
    records = []
    for rrset in section:
        for rdata in rrset:
            text = rdata.to_text()
            records.append(Record(rrset.name.to_text(), rrset.ttl, dns.rdatatype.to_text(rrset.rdtype), text))
    return records


def _option(query: bytes) -> tuple[int, bool] | None:
    """Payload size and DO of a query made by `ask`, None without EDNS."""
    if query[10:12] == b"\0\0":
        return None
    at = _question_end(query)
    return int.from_bytes(query[at + 3 : at + 5]), bool(query[at + 7] & 0x80)


def _question_end(query: bytes) -> int:
    position = 12
    while query[position]:
        position += 1 + query[position]
    return position + 5


def _plain(name: str) -> str:
    return name.lower().removesuffix(".").replace("\\", "")
