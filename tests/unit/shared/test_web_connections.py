"""A listener keeps its connections bounded, and stops listening when its runner is cleaned up."""

import asyncio
import contextlib
import socket

import pytest
from aiohttp import web

from kubedns.shared.web import MOST_CONNECTIONS, serve


def answering() -> web.Application:
    async def ok(_: web.Request) -> web.Response:
        return web.Response(text="ok")

    app = web.Application()
    app.router.add_get("/", ok)
    return app


async def get(port: int) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    return answer


async def test_silent_clients_past_the_limit_cost_the_oldest_ones_and_nobody_else():
    runner, port = await serve(answering(), 0, "the test")
    clients = []
    for _ in range(MOST_CONNECTIONS + 50):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET / HTTP/1.1\r\n")
        clients.append((reader, writer))
    assert await asyncio.wait_for(get(port), 30)
    assert await asyncio.wait_for(clients[0][0].read(), 30) == b""
    assert runner.server is not None
    assert len([c for c in runner.server.connections if c.transport]) <= MOST_CONNECTIONS
    newest = clients[-1]
    newest[1].write(b"Host: x\r\nConnection: close\r\n\r\n")
    assert b"200 OK" in await asyncio.wait_for(newest[0].read(), 30)
    for _, writer in clients:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
    await runner.cleanup()


async def test_cleaned_up_runner_refuses_new_connections():
    runner, port = await serve(answering(), 0, "the test")
    assert b"200 OK" in await get(port)
    await runner.cleanup()
    with pytest.raises(OSError, match="Connect call failed"):
        await get(port)


async def test_handler_of_a_client_that_leaves_is_cancelled():
    begun, ended = asyncio.Event(), asyncio.Event()

    async def wait(_: web.Request) -> web.Response:
        begun.set()
        try:
            await asyncio.Future()
        finally:
            ended.set()
        return web.Response()

    app = web.Application()
    app.router.add_get("/", wait)
    runner, port = await serve(app, 0, "the test")
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    await asyncio.wait_for(begun.wait(), 30)
    writer.close()
    await asyncio.wait_for(ended.wait(), 30)
    await writer.wait_closed()
    await runner.cleanup()


async def test_client_that_takes_nothing_of_its_answer_is_ended_by_the_kernel():
    found = []

    async def option(request: web.Request) -> web.Response:
        assert request.transport is not None
        connection = request.transport.get_extra_info("socket")
        found.append(connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT))
        return web.Response()

    app = web.Application()
    app.router.add_get("/", option)
    runner, port = await serve(app, 0, "the test")
    await get(port)
    await runner.cleanup()
    assert found == [10_000]


async def test_others_have_their_turn_while_many_connections_are_taken():
    runner, port = await serve(answering(), 0, "the test")
    clients = []
    for _ in range(100):  # without a turn of the loop, so that all wait to be taken at once
        client = socket.create_connection(("127.0.0.1", port))
        client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        clients.append(client)
    assert runner.server is not None
    most = taken = 0
    while taken < len(clients):
        await asyncio.sleep(0)
        most = max(most, len(runner.server.connections) - taken)
        taken = len(runner.server.connections)
    assert most <= 4
    for client in clients:
        client.close()
    await runner.cleanup()
