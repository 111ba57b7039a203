"""One exchange against a scripted server on loopback: what is taken, what is ignored, what is raised."""

import asyncio
import socket
import struct
import time
from collections.abc import Callable
from typing import Any

import dnslib
import pytest

from kubedns.dns.client import DNSExchangeError, DNSTimeout, server_text
from kubedns.dns.message import is_reply_to
from kubedns.dns.whole import exchange
from tests.ports import free_port, port_for_both

Script = Callable[[bytes], list[bytes]]
QUESTION = dnslib.DNSRecord.question("web.example", "A")


class ScriptedServer(asyncio.DatagramProtocol):
    """Answers each datagram, and each TCP message, with what its scripts return for it."""

    def __init__(self, udp: Script, tcp: Script | None = None) -> None:
        self.udp_script, self.tcp_script = udp, tcp
        self.seen: list[tuple[bytes, Any]] = []
        self.address = ("", 0)
        self.stream, self.datagrams = port_for_both()

    async def __aenter__(self):
        loop = asyncio.get_running_loop()
        self.transport, _ = await loop.create_datagram_endpoint(lambda: self, sock=self.datagrams)
        self.address = self.transport.get_extra_info("sockname")
        self.listener = await asyncio.start_server(self._serve, sock=self.stream) if self.tcp_script else None
        return self

    async def __aexit__(self, *_):
        self.transport.close()
        if self.listener:
            self.listener.close()
            await self.listener.wait_closed()
        self.stream.close()

    def datagram_received(self, data, addr):
        self.seen.append((data, addr))
        for reply in self.udp_script(data):
            self.transport.sendto(reply, addr)

    async def _serve(self, reader, writer):
        assert self.tcp_script
        query = await reader.readexactly(struct.unpack("!H", await reader.readexactly(2))[0])
        for reply in self.tcp_script(query):
            writer.write(reply)
        writer.close()
        await writer.wait_closed()


def reply_to(query_wire: bytes, **header: int) -> dnslib.DNSRecord:
    reply = dnslib.DNSRecord.parse(query_wire).reply()
    for field, value in header.items():
        setattr(reply.header, field, value)
    return reply


def good(query_wire: bytes) -> bytes:
    reply = reply_to(query_wire)
    reply.add_answer(*dnslib.RR.fromZone("web.example. 5 IN A 192.0.2.7"))
    return bytes(reply.pack())


def framed(wire: bytes) -> bytes:
    return struct.pack("!H", len(wire)) + wire


def other_id(wire: bytes) -> bytes:
    return bytes((wire[0] ^ 0xFF,)) + wire[1:]


async def test_reply_comes_back_with_the_callers_id_and_leaves_the_query_alone():
    query = dnslib.DNSRecord.question("web.example", "A")
    before = query.pack()
    async with ScriptedServer(lambda q: [good(q)]) as server:
        reply = await exchange(query, server.address, 5)
    assert str(reply.rr[0].rdata) == "192.0.2.7"
    assert reply.header.id == query.header.id
    assert query.pack() == before


async def test_every_exchange_has_its_own_id_and_source_port():
    async with ScriptedServer(lambda q: [good(q)]) as server:
        for _ in range(8):
            await exchange(QUESTION, server.address, 5)
    assert len({data[:2] for data, _ in server.seen}) > 6
    assert len({addr for _, addr in server.seen}) > 1


@pytest.mark.parametrize("rcode", [2, 3, 5])
async def test_reply_with_an_error_code_is_returned(rcode):
    async with ScriptedServer(lambda q: [bytes(reply_to(q, rcode=rcode).pack())]) as server:
        assert (await exchange(QUESTION, server.address, 5)).header.rcode == rcode


async def test_error_reply_without_a_question_is_returned():
    async with ScriptedServer(lambda q: [q[:2] + b"\x80\x05" + bytes(8)]) as server:
        assert (await exchange(QUESTION, server.address, 5)).header.rcode == 5


@pytest.mark.parametrize(
    "wrong",
    [
        lambda q: other_id(good(q)),
        lambda q: q,
        lambda q: good(q).replace(b"\x03web", b"\x03wab"),
        lambda q: good(q).replace(b"\x00\x00\x01\x00\x01", b"\x00\x00\x1c\x00\x01", 1),
        lambda q: q[:2] + b"\x80\x00" + bytes(8),
        lambda q: b"",
        lambda q: good(q)[:11],
        lambda q: good(q)[:2] + bytes((good(q)[2] | 0x28,)) + good(q)[3:],
    ],
    ids=["id", "not-a-reply", "name", "type", "noerror-without-question", "empty", "short", "opcode"],
)
async def test_what_is_not_the_reply_is_ignored(wrong):
    async with ScriptedServer(lambda q: [wrong(q), good(q)]) as server:
        assert (await exchange(QUESTION, server.address, 5)).rr
    async with ScriptedServer(lambda q: [wrong(q)] * 3) as server:
        with pytest.raises(DNSTimeout, match=r"127\.0\.0\.1:\d+: no reply within 0\.2 s"):
            await exchange(QUESTION, server.address, 0.2)


async def test_question_in_another_case_is_the_same_question():
    async with ScriptedServer(lambda q: [good(q).replace(b"\x03web", b"\x03WeB")]) as server:
        assert (await exchange(QUESTION, server.address, 5)).rr


async def test_datagram_from_another_port_is_not_seen():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as forger:
        forger.bind(("127.0.0.1", 0))
        server = ScriptedServer(lambda _: [])

        def forge(query):
            forger.sendto(good(query), server.seen[-1][1])
            return []

        server.udp_script = forge
        async with server:
            with pytest.raises(DNSTimeout):
                await exchange(QUESTION, server.address, 0.2)


async def test_truncated_reply_is_asked_again_over_tcp():
    truncated = lambda q: [bytes(reply_to(q, tc=1).pack())]  # noqa: E731
    async with ScriptedServer(truncated, lambda q: [framed(good(q))]) as server:
        assert (await exchange(QUESTION, server.address, 5)).rr


@pytest.mark.parametrize(
    ("tcp", "reason"),
    [
        (lambda q: [], "connection closed before the reply"),
        (lambda q: [framed(good(q))[:20]], "connection closed before the reply"),
        (lambda q: [framed(other_id(good(q)))], "reply to another question"),
        (lambda q: [framed(b"")], "reply to another question"),
        (lambda q: [framed(good(q)[:-2])], "malformed reply"),
    ],
    ids=["nothing", "half", "id", "empty", "cut"],
)
async def test_unusable_reply_over_tcp_is_an_error(tcp, reason):
    async with ScriptedServer(lambda q: [bytes(reply_to(q, tc=1).pack())], tcp) as server:
        with pytest.raises(DNSExchangeError, match=reason):
            await exchange(QUESTION, server.address, 5)


async def test_truncated_reply_from_a_server_without_tcp_names_the_refusal():
    async with ScriptedServer(lambda q: [bytes(reply_to(q, tc=1).pack())]) as server:
        with pytest.raises(DNSExchangeError, match=r"connection refused \(over TCP"):
            await exchange(QUESTION, server.address, 5)


async def test_one_deadline_holds_over_udp_and_tcp():
    gone = asyncio.Event()

    async def silent(reader, writer):
        await reader.read()
        writer.close()
        await writer.wait_closed()
        gone.set()

    async with ScriptedServer(lambda q: [bytes(reply_to(q, tc=1).pack())]) as server:
        listener = await asyncio.start_server(silent, sock=server.stream)
        async with listener:
            with pytest.raises(DNSTimeout):
                await exchange(QUESTION, server.address, 0.3)
            await asyncio.wait_for(gone.wait(), 10)


async def test_closed_port_is_an_error_at_once_not_a_timeout():
    begun = time.monotonic()
    with pytest.raises(DNSExchangeError, match="connection refused") as raised:
        await exchange(QUESTION, ("127.0.0.1", free_port()), 30)
    assert not isinstance(raised.value, DNSTimeout)
    assert time.monotonic() - begun < 10


async def test_malformed_reply_is_an_exchange_error_that_names_the_server():
    async with ScriptedServer(lambda q: [good(q)[:-1]]) as server:
        with pytest.raises(DNSExchangeError, match=rf"127\.0\.0\.1:{server.address[1]}: malformed reply"):
            await exchange(QUESTION, server.address, 5)


async def test_flood_of_wrong_replies_stops_neither_the_deadline_nor_the_loop():
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0)

    async with ScriptedServer(lambda q: [other_id(good(q))] * 200) as server:
        other = asyncio.get_running_loop().create_task(tick())
        with pytest.raises(DNSTimeout):
            await exchange(QUESTION, server.address, 0.3)
        other.cancel()
    assert ticks > 10


def test_query_name_with_a_zero_octet_is_compared_to_its_end():
    query = b"\0\1\1\0\0\1\0\0\0\0\0\0" + b"\x03a\0b\x02cd\0" + b"\0\1\0\1"
    reply = bytes((*query[:2], 0x81, *query[3:]))
    assert is_reply_to(reply, query)
    assert not is_reply_to(reply.replace(b"cd", b"ce"), query)


def test_server_text_brackets_ipv6():
    assert server_text(("::1", 53)) == "[::1]:53"
    assert server_text(("10.0.0.10", 53)) == "10.0.0.10:53"
