"""Turns over TCP: dear questions of one connection do not keep the others waiting."""

import asyncio
from time import perf_counter

from kubedns.transport.tcp import TcpServer


async def test_pipelined_dear_questions_let_another_connection_in_between():
    order: list[bytes] = []

    def respond(message: bytes, _tcp: bool) -> bytes:
        order.append(message[:1])
        until = perf_counter() + 0.002
        while perf_counter() < until:
            pass
        return message

    server = TcpServer(respond)
    port = await server.start("127.0.0.1", 0)
    dear, other = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2)]
    dear[1].write((b"\0\x0c" + b"d" * 12) * 200)
    other[1].write(b"\0\x0c" + b"o" * 12)
    assert await other[0].readexactly(14)
    assert order.index(b"o") <= 5
    for _, writer in (dear, other):
        writer.close()
    await server.stop()
