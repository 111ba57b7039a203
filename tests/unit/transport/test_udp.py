"""Datagrams in and out: batches, waiting replies, source addresses, taken ports."""

import asyncio
import socket
import time
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager

import pytest

from kubedns.shared.listeners import PortBusyError
from kubedns.shared.reply import Answered
from kubedns.transport.udp import UdpServer
from tests.later import awaiting


def echo(message: bytes, _tcp: bool) -> bytes | None:
    return b"re:" + message if message else None


@asynccontextmanager
async def served(responder, host: str = "127.0.0.1") -> AsyncIterator[tuple[UdpServer, int, list[float]]]:
    times: list[float] = []
    server = UdpServer(awaiting(responder), lambda seconds, _: times.append(seconds))
    port = server.start(host, 0)
    try:
        yield server, port, times
    finally:
        server.stop()


async def ask(host: str, port: int, *messages: bytes) -> list[bytes]:
    """Send messages from one connected socket, which takes replies from that very address only."""
    loop = asyncio.get_running_loop()
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as client:
        client.setblocking(False)
        client.connect((host, port))
        for message in messages:
            client.send(message)
        return [await asyncio.wait_for(loop.sock_recv(client, 65535), 5) for _ in messages]


async def test_burst_of_slow_questions_is_answered_in_many_wake_ups():
    def slow_echo(message: bytes, tcp: bool) -> bytes | None:
        time.sleep(0.0005)
        return echo(message, tcp)

    messages = [b"%d" % number for number in range(150)]
    async with served(slow_echo) as (_, port, times):
        assert sorted(await ask("127.0.0.1", port, *messages)) == sorted(b"re:" + m for m in messages)
    assert len(times) >= 10
    assert all(seconds > 0 for seconds in times)


@pytest.mark.parametrize("asked", ["127.0.0.1", "127.0.0.7", "127.99.1.2", "::1"])
async def test_wildcard_reply_leaves_from_the_address_that_was_asked(asked):
    async with served(echo, "::") as (_, port, _):
        assert await ask(asked, port, b"x") == [b"re:x"]


async def test_silence_is_no_reply():
    async with served(echo) as (_, port, _):
        assert await ask("127.0.0.1", port, b"a") == [b"re:a"]
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await ask("127.0.0.1", port, b"")


async def test_reply_that_is_waited_for_does_not_hold_up_another():
    release = asyncio.Event()

    def responder(message: bytes, _tcp: bool) -> bytes | Awaitable[bytes | None]:
        async def later() -> bytes | None:
            await release.wait()
            return b"late"

        return later() if message == b"slow" else b"soon"

    async with served(responder) as (_, port, _):
        slow = asyncio.get_running_loop().create_task(ask("127.0.0.1", port, b"slow"))
        assert await ask("127.0.0.1", port, b"quick") == [b"soon"]
        release.set()
        assert await slow == [b"late"]


async def test_later_replies_go_out_together_each_to_its_own_client():
    release = asyncio.Event()

    async def later(message: bytes) -> bytes:
        await release.wait()
        return message * 2000 if message == b"l" else b"re:" + message

    messages = [b"%d" % number for number in range(100)]
    async with served(lambda message, tcp: later(message), "::") as (_, port, _):
        clients = [
            asyncio.get_running_loop().create_task(ask(host, port, *messages, b"l"))
            for host in ("127.0.0.1", "::1", "127.0.0.7")
        ]
        await asyncio.sleep(0)
        release.set()
        for replies in await asyncio.gather(*clients):
            assert set(replies) == {b"l" * 2000, *(b"re:" + message for message in messages)}


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "127.0.0.7"])
async def test_observer_sees_client_message_and_reply_soon_and_late(host):
    async def late() -> bytes:
        return b"late"

    seen: list[Answered] = []
    async with served(lambda message, tcp: late() if message == b"slow" else b"soon", "::") as (
        server,
        port,
        _,
    ):
        await ask(host, port, b"before")
        server.observer = seen.append
        with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM) as client:
            client.setblocking(False)
            client.connect((host, port))
            address = client.getsockname()[:2]
            for message in (b"slow", b"quick"):
                client.send(message)
                await asyncio.wait_for(asyncio.get_running_loop().sock_recv(client, 64), 5)
        server.observer = None
        await ask(host, port, b"after")
    assert [(each.client, each.tcp, each.message, each.reply, each.by) for each in seen] == [
        (address, False, b"slow", b"late", ""),
        (address, False, b"quick", b"soon", ""),
    ]


async def test_taken_port_is_named():
    async with served(echo, "0.0.0.0") as (_, port, _):
        for host in ("0.0.0.0", "127.0.0.1"):
            with pytest.raises(PortBusyError, match=f"UDP port {port} for DNS is in use"):
                UdpServer(echo, lambda _seconds, _replies: None).start(host, port)


async def test_stopped_server_frees_its_port():
    async with served(echo, "0.0.0.0") as (_, port, _):
        pass
    server = UdpServer(echo, lambda _seconds, _replies: None)
    assert server.start("0.0.0.0", port) == port
    server.stop()
