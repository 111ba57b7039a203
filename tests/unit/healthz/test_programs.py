"""Reading another program over HTTP: what is no account is a failure with a reason; restarts are noticed."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator

import pytest

from healthz.fetch import FetchError, fetch
from healthz.programs import Program


class FakeProgram:
    """A TCP server that sends the same octets to everybody."""

    def __init__(self) -> None:
        self.said = b""
        self.heard = b""
        self.port = 0

    def says(self, body: bytes, status: str = "200 OK") -> None:
        self.said = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/status"

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.heard = await reader.readuntil(b"\r\n\r\n")
        writer.write(self.said)
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


@pytest.fixture
async def other() -> AsyncIterator[FakeProgram]:
    other = FakeProgram()
    server = await asyncio.start_server(other.answer, "127.0.0.1", 0)
    other.port = server.sockets[0].getsockname()[1]
    yield other
    server.close()


async def test_account_is_read_and_a_new_start_noticed(other):
    program = Program("kubedns", other.url, lambda: 100.0)
    for started, restarts in ((5, 0), (5, 0), (6, 1)):
        other.says(b'{"version": "1", "started": %d}' % started)
        await program.read()
        assert program.account is not None
        assert len(program.restarts) == restarts
    assert program.failure == ""
    assert other.heard.startswith(b"GET /status HTTP/1.0\r\nHost: 127.0.0.1:")


async def test_failure_takes_the_account_away_and_is_no_restart(other):
    program = Program("kubedns", other.url, lambda: 100.0)
    other.says(b'{"started": 5}')
    await program.read()
    for said, status, failure in (
        (b"gone", "404 Not Found", "HTTP 404"),
        (b"[]", "200 OK", "it is no JSON object"),
    ):
        other.says(said, status)
        await program.read()
        assert (program.account, program.failure) == (None, failure)
    other.says(b'{"started": 5}')
    await program.read()
    assert (program.account is not None, program.failure, len(program.restarts)) == (True, "", 0)


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (b"", "not HTTP"),
        (b"hello\r\n\r\n", "not HTTP"),
        (b"HTTP/1.1 abc\r\n\r\n", "not HTTP"),
        (b"HTTP/1.1 200 " + b"x" * 100_000, "not HTTP"),
        (b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * ((1 << 20) + 1), "more than 1 MiB"),
    ],
    ids=["nothing", "no HTTP", "no number", "endless head", "endless body"],
)
async def test_what_is_no_answer_is_said(other, said, reason):
    other.said = said
    with pytest.raises(FetchError, match=reason):
        await fetch(other.url, 5)


async def test_server_that_is_silent_is_said():
    expected = pytest.raises(FetchError, match=r"no answer within 0\.2 s")
    with socket.create_server(("127.0.0.1", 0)) as silent, expected:
        await fetch(f"http://127.0.0.1:{silent.getsockname()[1]}/", 0.2)


async def test_server_that_is_not_there_is_said():
    with socket.create_server(("127.0.0.1", 0)) as gone:
        port = gone.getsockname()[1]
    with pytest.raises(FetchError, match="not reachable"):
        await fetch(f"http://127.0.0.1:{port}/", 5)
