"""Upstreams and forgers that lie: what is ignored, what is survived."""

import asyncio
import random
import socket
from collections.abc import Callable
from typing import Any

import dns.flags
import dns.message
import dns.rrset
import pytest

from kubedns.upstream.forward import Forwarder
from tests.later import forwarded

NAME = "www.example.org."
LABELS = (b"www", b"example", b"org")
GOOD = (NAME, 300, "IN", "A", "192.0.2.53")
FORGED = (NAME, 300, "IN", "A", "203.0.113.66")


def query(rdtype: str = "A", **options: Any) -> bytes:
    return dns.message.make_query(NAME, rdtype, **options).to_wire()


async def addresses(forwarder: Forwarder, *, tcp: bool = False) -> list[str]:
    wire = query()
    reply = await forwarded(forwarder, wire, tcp=tcp)
    assert reply is not None
    return [rdata.to_text() for rrset in dns.message.from_wire(reply).answer for rdata in rrset]


def other_id(message: bytes) -> bytes:
    return bytes((message[0] ^ 0xFF, message[1])) + message[2:]


def other_type(message: bytes) -> bytes:
    end = message.index(b"\3org\0") + 5
    return message[:end] + b"\0\x1c" + message[end + 2 :]


FORGERIES: dict[str, Callable[[bytes], bytes]] = {
    "wrong id": other_id,
    "wrong type": other_type,
    "wrong name": lambda message: message.replace(b"\3www", b"\3wwx"),
    "a query": lambda message: message[:2] + b"\1" + message[3:],
    "another opcode": lambda message: message[:2] + bytes((message[2] | 0x20,)) + message[3:],
    "two questions": lambda message: message[:4] + b"\0\2" + message[6:],
    "no question and no error": lambda message: message[:3] + b"\x80" + bytes(8),
    "empty": lambda message: b"",
    "short": lambda message: message[:11],
}


@pytest.mark.parametrize("forge", FORGERIES.values(), ids=FORGERIES)
async def test_forgery_is_passed_over_and_the_reply_after_it_taken(forwarder, upstreams, says, forge):
    upstream = await upstreams.start(
        lambda wire, tcp: [forge(says(FORGED)(wire, tcp)), says(GOOD)(wire, tcp)]
    )
    forwarder.configure([upstream.address], {})
    assert await addresses(forwarder) == ["192.0.2.53"]


async def test_datagram_of_another_server_is_not_seen(forwarder, upstreams, says):
    upstream = await upstreams.silent()
    forwarder.configure([upstream.address], {})
    waiting = asyncio.create_task(addresses(forwarder))
    await upstream.asked.wait()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as forger:
        forger.sendto(says(FORGED)(upstream.seen[0], False), upstream.peers[0])
    upstream.send(says(GOOD)(upstream.seen[0], False), upstream.peers[0])
    assert await waiting == ["192.0.2.53"]


async def test_flood_of_wrong_ids_moves_the_question_to_tcp(forwarder, upstreams, says):
    def script(wire, tcp):
        return says(GOOD)(wire, tcp) if tcp else [other_id(says(FORGED)(wire, tcp))] * 100

    upstream = await upstreams.start(script)
    forwarder.configure([upstream.address], {})
    assert await addresses(forwarder) == ["192.0.2.53"]
    assert len(upstream.seen_tcp) == 1


async def test_flood_of_wrong_ids_with_tcp_hanging_is_servfail_and_leaves_nothing_behind(
    forwarder, upstreams, says
):
    upstream = await upstreams.start(
        lambda wire, tcp: None if tcp else [other_id(says(FORGED)(wire, tcp))] * 100
    )
    forwarder.configure([upstream.address], {})
    assert await addresses(forwarder) == []
    assert len(upstream.seen) == len(upstream.seen_tcp) == 1
    assert not [task for task in asyncio.all_tasks() if task.get_name().startswith(("ask", "upstream"))]


async def test_mutated_replies_harm_nobody(forwarder, upstreams, says, caplog):
    chance = random.Random(20261129)

    def mutate(wire, tcp):
        message = bytearray(says(GOOD, (NAME, 5, "IN", "MX", "10 mail.example.org."))(wire, tcp))
        start = len(wire)
        for _ in range(chance.randint(1, 8)):
            place = chance.choice([6, 7, 8, 9, 10, 11, *range(start, len(message))])
            message[place] = chance.randrange(256)
        return bytes(message[: chance.randint(start, len(message))] if chance.random() < 0.3 else message)

    upstream = await upstreams.start(mutate)
    forwarder.configure([upstream.address], {})
    for number in range(400):
        wire = query(["A", "MX", "CNAME"][number % 3])
        reply = await forwarded(forwarder, wire, tcp=number % 5 == 0)
        assert reply is not None
        assert (reply[:2], reply[12 : len(wire)]) == (wire[:2], wire[12:])
        resolution = await forwarder.resolve(LABELS, 15)
        assert resolution.rcode in range(16)
    upstream.script = says(GOOD)
    assert await addresses(forwarder) == ["192.0.2.53"]
    assert not caplog.records


async def test_large_reply_is_cut_to_what_the_client_takes(forwarder, upstreams):
    def script(wire, tcp):
        reply = dns.message.make_response(dns.message.from_wire(wire))
        texts = [dns.rrset.from_text(NAME, 300, "IN", "TXT", f'"{n:0250}"') for n in range(200)]
        reply.answer = texts if tcp else texts[:100]
        return reply.to_wire(max_size=65535)

    upstream = await upstreams.start(script)
    forwarder.configure([upstream.address], {})
    for payload, tcp, count in ((0, False, 1), (1232, False, 4), (0, True, 200)):
        wire = query("TXT", use_edns=0, payload=payload) if payload else query("TXT")
        reply = await forwarded(forwarder, wire, tcp=tcp)
        assert len(reply) <= (65535 if tcp else payload or 512)
        parsed = dns.message.from_wire(reply)
        assert sum(map(len, parsed.answer)) == count
        assert bool(parsed.flags & dns.flags.TC) is not tcp
