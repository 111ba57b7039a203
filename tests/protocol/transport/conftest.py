"""A TCP server on a free port, and a client that speaks frames."""

import asyncio
import contextlib
import socket
import struct

import pytest

from kubedns.transport.tcp import TcpServer
from tests.later import awaiting


class Client:
    """One connection; `ask` sends a message, `reply` returns the next one, None when it is closed."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    def send(self, *messages: bytes) -> None:
        self.writer.write(b"".join(len(message).to_bytes(2) + message for message in messages))

    async def reply(self) -> bytes | None:
        try:
            length = int.from_bytes(await self.reader.readexactly(2))
            return await self.reader.readexactly(length)
        except (asyncio.IncompleteReadError, ConnectionError):
            return None

    async def ask(self, message: bytes) -> bytes | None:
        self.send(message)
        return await self.reply()

    def reset(self) -> None:
        linger_not = struct.pack("ii", 1, 0)
        self.writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger_not)
        self.writer.transport.abort()

    async def close(self) -> None:
        self.writer.close()
        with contextlib.suppress(OSError):
            await self.writer.wait_closed()


@pytest.fixture
async def serve():
    """Start a TcpServer with a responder and options; returns the server and its port."""
    servers = []

    async def start(responder, *, host="127.0.0.1", **options):
        server = TcpServer(awaiting(responder), **options)
        servers.append(server)
        return server, await server.start(host, 0)

    yield start
    for server in servers:
        await server.stop()
        assert not server.connections


@pytest.fixture
async def connect():
    """Open client connections, closed after the test."""
    clients = []

    async def open_one(port, *, host="127.0.0.1", receive_buffer=None):
        plain = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        plain.setblocking(False)
        if receive_buffer is not None:
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        await asyncio.get_running_loop().sock_connect(plain, (host, port))
        clients.append(Client(*await asyncio.open_connection(sock=plain, limit=1 << 20)))
        return clients[-1]

    yield open_one
    for client in clients:
        await client.close()
