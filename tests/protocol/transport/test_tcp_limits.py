"""Connections that hold on, flood, trickle or do not read: each limit, and that others are served."""

import asyncio
import gc
import os
from typing import Protocol

IDLE = 0.3
PATIENCE = 20


def echo(message: bytes, tcp: bool) -> bytes:
    return message


class Client(Protocol):
    async def reply(self) -> bytes | None: ...


async def closed(client: Client) -> bool:
    async with asyncio.timeout(PATIENCE):
        return await client.reply() is None


async def test_idle_connection_is_closed(serve, connect):
    server, port = await serve(echo, idle_timeout=IDLE)
    silent, asked = await connect(port), await connect(port)
    assert await asked.ask(b"question") == b"question"
    assert await closed(silent)
    assert await closed(asked)
    assert not server.connections


async def test_connection_in_use_outlives_the_idle_timeout(serve, connect):
    _, port = await serve(echo, idle_timeout=IDLE)
    silent, busy = await connect(port), await connect(port)
    over = asyncio.create_task(closed(silent))
    while not over.done():
        assert await busy.ask(b"question") == b"question"
    assert await over
    assert await busy.ask(b"question") == b"question"


async def test_connection_that_waits_for_its_reply_is_not_idle(serve, connect):
    ready = asyncio.Event()

    async def wait() -> bytes:
        await ready.wait()
        return b"at last"

    _, port = await serve(lambda m, tcp: wait(), idle_timeout=IDLE)
    waiting, silent = await connect(port), await connect(port)
    waiting.send(b"question")
    assert await closed(silent)
    assert await closed(await connect(port))
    ready.set()
    assert await waiting.reply() == b"at last"


async def test_trickle_of_octets_does_not_keep_a_connection(serve, connect):
    _, port = await serve(echo, idle_timeout=IDLE)
    slow = await connect(port)
    over = asyncio.create_task(closed(slow))
    slow.writer.write(b"\xff\xff")
    async with asyncio.timeout(PATIENCE):
        while not over.done():
            slow.writer.write(b"x")
            await asyncio.sleep(0.01)
    assert await over


async def test_empty_messages_do_not_keep_a_connection(serve, connect):
    _, port = await serve(echo, idle_timeout=IDLE)
    client = await connect(port)
    over = asyncio.create_task(closed(client))
    async with asyncio.timeout(PATIENCE):
        while not over.done():
            client.send(b"")
            await asyncio.sleep(0.01)
    assert await over


async def test_longest_idle_connection_makes_room_for_a_new_one(serve, connect):
    server, port = await serve(echo, most_connections=3)
    clients = [await connect(port) for _ in range(3)]
    for client in clients:
        await client.ask(b"question")
    await clients[0].ask(b"question")
    late = await connect(port)
    assert await late.ask(b"question") == b"question"
    assert await closed(clients[1])
    assert await clients[0].ask(b"question") == b"question"
    assert await clients[2].ask(b"question") == b"question"
    assert len(server.connections) == 3


async def test_new_connection_is_refused_while_all_others_are_busy(serve, connect):
    ready = asyncio.Event()

    async def wait() -> bytes:
        await ready.wait()
        return b"at last"

    _, port = await serve(lambda m, tcp: wait() if m == b"slow" else m, most_connections=2)
    busy = [await connect(port) for _ in range(2)]
    for client in busy:
        client.send(b"slow", b"fast")
        assert await client.reply() == b"fast"
    assert await closed(await connect(port))
    ready.set()
    assert [await client.reply() for client in busy] == [b"at last"] * 2
    assert await (await connect(port)).ask(b"question") == b"question"


async def test_two_thousand_connections_leave_room_for_questions(serve, connect, caplog):
    server, port = await serve(echo)
    for number in range(2000):
        await connect(port)
        if number % 100 == 0:
            assert await (await connect(port)).ask(b"question") == b"question"
    assert len(server.connections) <= 1000
    assert await (await connect(port)).ask(b"question") == b"question"
    assert caplog.text.count("1000 connections over TCP are open") == 1


async def test_questions_in_flight_are_bounded_and_all_answered(serve, connect):
    running, most, release = 0, 0, asyncio.Semaphore(0)

    async def wait(message: bytes) -> bytes:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await release.acquire()
        running -= 1
        return message

    _, port = await serve(lambda m, tcp: wait(m), most_in_flight=10)
    client = await connect(port)
    messages = {b"%d" % number for number in range(3000)}
    client.send(*messages)
    replies = set()
    for _ in messages:
        release.release()
        replies.add(await client.reply())
    assert replies == messages
    assert most == 10


async def test_client_that_reads_nothing_is_cut_and_others_are_answered(serve, connect):
    answered = 0

    def respond(message, tcp):
        nonlocal answered
        answered += message == b"large"
        return bytes(60000) if message == b"large" else message

    server, port = await serve(respond, idle_timeout=IDLE)
    deaf, other = await connect(port, receive_buffer=4096), await connect(port)
    deaf.writer.transport.pause_reading()
    deaf.send(*[b"large"] * 5000)
    async with asyncio.timeout(PATIENCE):
        while len(server.connections) > 1:
            assert await other.ask(b"question") == b"question"
    assert answered < 500


async def test_replies_under_way_cannot_pile_up_at_a_client_that_reads_nothing(serve, connect):
    release = asyncio.Event()

    async def large() -> bytes:
        await release.wait()
        return bytes(65535)

    server, port = await serve(lambda m, tcp: large())
    deaf = await connect(port, receive_buffer=4096)
    deaf.writer.transport.pause_reading()
    deaf.send(*[b"question"] * 100)
    async with asyncio.timeout(PATIENCE):
        while not server.connections:
            await asyncio.sleep(0)
        release.set()
        while server.connections:
            await asyncio.sleep(0.01)


async def test_large_unfinished_messages_are_bounded(serve, connect):
    server, port = await serve(echo)
    for _ in range(150):
        client = await connect(port)
        client.writer.write(b"\xff\xff" + bytes(20000))
        await client.writer.drain()
    async with asyncio.timeout(PATIENCE):
        while len(server.connections) > 100:
            await asyncio.sleep(0.01)
    assert await (await connect(port)).ask(b"question") == b"question"


async def test_flood_of_one_client_leaves_turns_to_everything_else(serve, connect):
    since_turn, most = 0, 0

    def respond(message, tcp):
        nonlocal since_turn, most
        since_turn += 1
        most = max(most, since_turn)
        return message

    def turn() -> None:
        nonlocal since_turn
        since_turn = 0
        asyncio.get_running_loop().call_soon(turn)

    _, port = await serve(respond)
    clients = [await connect(port) for _ in range(20)]
    turn()
    for client in clients:
        client.send(*[b"question"] * 300)
    for client in clients:
        for _ in range(300):
            assert await client.reply() == b"question"
    assert 1 < most <= 32


async def test_files_and_tasks_do_not_add_up(serve, connect):
    server, port = await serve(echo)

    async def round_of_connections() -> tuple[int, int]:
        for number in range(50):
            client = await connect(port)
            client.send(b"question")
            if number % 2:
                client.writer.transport.abort()
            await client.close()
        async with asyncio.timeout(PATIENCE):
            while server.connections:
                await asyncio.sleep(0.01)
        gc.collect()
        return len(os.listdir("/proc/self/fd")), len(asyncio.all_tasks())

    assert await round_of_connections() == await round_of_connections()
