"""Frames in, frames out: however they are cut, whenever they are ready."""

import asyncio
import errno
import logging
import socket

import pytest

from kubedns.shared.listeners import PortBusyError
from kubedns.transport.tcp import TcpServer


def echo(message: bytes, tcp: bool) -> bytes:
    assert tcp
    return b"re:" + message


async def test_message_gets_its_reply(serve, connect):
    _, port = await serve(echo)
    client = await connect(port)
    assert await client.ask(b"question") == b"re:question"
    assert await client.ask(b"another") == b"re:another"


async def test_pipelined_messages_get_all_their_replies(serve, connect):
    _, port = await serve(echo)
    client = await connect(port)
    messages = [b"%d" % number for number in range(2000)]
    client.send(*messages)
    assert [await client.reply() for _ in messages] == [b"re:" + message for message in messages]


async def test_stream_may_be_cut_at_any_octet(serve, connect):
    _, port = await serve(echo)
    stream = b"\0\5first\0\6second"
    for place in range(1, len(stream)):
        client = await connect(port)
        client.writer.write(stream[:place])
        await client.writer.drain()
        if place >= 7:
            assert await client.reply() == b"re:first"
        else:
            await (await connect(port)).ask(b"the first part has been read by now")
        client.writer.write(stream[place:])
        assert place >= 7 or await client.reply() == b"re:first"
        assert await client.reply() == b"re:second"


async def test_one_octet_at_a_time_is_a_message_in_the_end(serve, connect):
    _, port = await serve(echo)
    client, other = await connect(port), await connect(port)
    for octet in b"\0\x08question":
        client.writer.write(bytes([octet]))
        assert await other.ask(b"x") == b"re:x"
    assert await client.reply() == b"re:question"


async def test_largest_messages_pass_both_ways(serve, connect):
    _, port = await serve(lambda message, tcp: message)
    client = await connect(port)
    largest = bytes(range(256)) * 255 + bytes(255)
    assert len(largest) == 65535
    client.send(largest, b"small", largest)
    assert [await client.reply() for _ in range(3)] == [largest, b"small", largest]


async def test_replies_go_out_as_they_become_ready(serve, connect):
    ready = {b"slow": asyncio.Event(), b"slower": asyncio.Event()}

    def respond(message, tcp):
        return wait(message) if message in ready else message

    async def wait(message: bytes) -> bytes:
        await ready[message].wait()
        return message

    _, port = await serve(respond)
    client = await connect(port)
    client.send(b"slower", b"slow", b"fast")
    assert await client.reply() == b"fast"
    ready[b"slow"].set()
    assert await client.reply() == b"slow"
    ready[b"slower"].set()
    assert await client.reply() == b"slower"


async def test_no_reply_leaves_the_connection_open(serve, connect):
    async def nothing() -> None:
        return None

    _, port = await serve(lambda m, tcp: None if m == b"drop" else nothing() if m == b"later" else m)
    client = await connect(port)
    client.send(b"drop", b"later")
    assert await client.ask(b"question") == b"question"


async def test_length_of_zero_is_passed_over(serve, connect):
    _, port = await serve(echo)
    client = await connect(port)
    client.send(b"", b"", b"question", b"")
    assert await client.reply() == b"re:question"
    assert await client.ask(b"more") == b"re:more"


async def test_half_closed_client_still_gets_its_replies(serve, connect):
    ready = asyncio.Event()

    async def wait(message: bytes) -> bytes:
        await ready.wait()
        return message

    _, port = await serve(lambda m, tcp: wait(m) if m == b"slow" else m)
    client = await connect(port)
    client.send(b"slow", *[b"fast"] * 50)
    client.writer.write_eof()
    assert [await client.reply() for _ in range(50)] == [b"fast"] * 50
    ready.set()
    assert await client.reply() == b"slow"
    assert await client.reply() is None


async def test_half_closed_client_gets_replies_to_questions_that_had_to_wait(serve, connect):
    async def later(message: bytes) -> bytes:
        await asyncio.sleep(0)
        return message

    _, port = await serve(lambda m, tcp: later(m), most_in_flight=2)
    client = await connect(port)
    messages = {b"%d" % number for number in range(50)}
    client.send(*messages)
    client.writer.write_eof()
    assert {await client.reply() for _ in messages} == messages
    assert await client.reply() is None


async def test_half_closed_client_without_questions_is_closed(serve, connect):
    _, port = await serve(echo)
    client = await connect(port)
    client.writer.write(b"\0\x20unfinished")
    client.writer.write_eof()
    assert await client.reply() is None


async def test_reply_to_a_client_that_went_away_goes_nowhere(serve, connect):
    begun, ready, replied = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def wait() -> bytes:
        begun.set()
        await ready.wait()
        replied.set()
        return b"late"

    server, port = await serve(lambda m, tcp: wait() if m == b"slow" else m)
    client = await connect(port)
    client.send(b"slow")
    await begun.wait()
    client.reset()
    async with asyncio.timeout(5):
        while server.connections:
            await asyncio.sleep(0)
        ready.set()
        await replied.wait()
    assert await (await connect(port)).ask(b"next") == b"next"


async def test_fault_of_the_responder_costs_only_its_own_reply(serve, connect, caplog):
    async def fail() -> bytes:
        raise RuntimeError("later fault")

    def respond(message, tcp):
        if message == b"now":
            raise RuntimeError("fault at once")
        return fail() if message == b"later" else message

    _, port = await serve(respond)
    client, other = await connect(port), await connect(port)
    with caplog.at_level(logging.ERROR):
        client.send(b"a", b"now", b"b", b"later", b"c")
        assert [await client.reply() for _ in range(3)] == [b"a", b"b", b"c"]
    assert await other.ask(b"question") == b"question"
    assert "fault at once" in caplog.text
    assert "later fault" in caplog.text


async def test_both_families_listen_on_one_port_for_two_colons(serve, connect):
    _, port = await serve(echo, host="::")
    for host in ("127.0.0.1", "::1"):
        assert await (await connect(port, host=host)).ask(b"question") == b"re:question"


async def test_port_in_use_is_named(serve):
    _, port = await serve(echo)
    with pytest.raises(PortBusyError, match=rf"127\.0\.0\.1:{port} for DNS over TCP is in use"):
        await TcpServer(echo).start("127.0.0.1", port)
    with pytest.raises(PortBusyError, match=rf"{port} for DNS over TCP is in use"):
        await TcpServer(echo).start("::", port)


async def test_address_of_another_host_is_named():
    with pytest.raises(OSError, match=r"cannot listen on 192\.0\.2\.1:0 over TCP") as caught:
        await TcpServer(echo).start("192.0.2.1", 0)
    assert caught.value.errno == errno.EADDRNOTAVAIL


async def test_after_stop_nobody_listens(serve, connect):
    server, port = await serve(echo)
    client = await connect(port)
    assert await client.ask(b"question") == b"re:question"
    await server.stop()
    assert await client.reply() is None
    with socket.socket() as late, pytest.raises(ConnectionRefusedError):
        late.connect(("127.0.0.1", port))
