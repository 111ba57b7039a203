"""A listener keeps its connections bounded, and stops listening when its runner is cleaned up."""

import asyncio
import contextlib

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
