"""A child's output, whatever it is, as lines."""

import asyncio
import os

import pytest

from nanny.relay import LONGEST_LINE, LineRelay


class Pipe:
    """A relay on a pipe, and what it delivered."""

    def __init__(self) -> None:
        reading, self.writing = os.pipe()
        self.lines: list[str] = []
        self.relay = LineRelay(reading, self.lines.append)

    async def send(self, *chunks: bytes) -> list[str]:
        """Write, close, and return the lines."""
        for chunk in chunks:
            await asyncio.to_thread(self._write, chunk)
        os.close(self.writing)
        self.relay.finish()
        return self.lines

    def _write(self, chunk: bytes) -> None:
        while chunk:
            chunk = chunk[os.write(self.writing, chunk) :]


@pytest.mark.parametrize(
    ("chunks", "lines"),
    [
        ([b"one\ntwo\n"], ["one", "two"]),
        ([b"one\r\n\n  \ntwo\r\n"], ["one", "two"]),
        ([b"on", b"e\ntw", b"o\n"], ["one", "two"]),
        ([b"no end"], ["no end"]),
        ([b""], []),
        ([b"\xff\xfe\x00a\x1b[31m\n"], ["\\xff\\xfe\\x00a\\x1b[31m"]),
        (["ümläut\n".encode()], ["ümläut"]),
        ([b"%s %n {}\n"], ["%s %n {}"]),
    ],
)
async def test_output_becomes_lines(chunks, lines):
    assert await Pipe().send(*chunks) == lines


async def test_a_line_without_end_is_cut_and_nothing_is_lost():
    size = 40 * LONGEST_LINE + 7
    lines = await Pipe().send(b"x" * size, b"\nlast\n")
    assert max(map(len, lines)) <= LONGEST_LINE
    assert "".join(lines[:-1]) == "x" * size
    assert lines[-1] == "last"


async def test_the_end_does_not_wait_for_others_that_hold_the_pipe():
    pipe = Pipe()
    other = os.dup(pipe.writing)
    try:
        assert await pipe.send(b"one\nbegun") == ["one", "begun"]
    finally:
        os.close(other)
