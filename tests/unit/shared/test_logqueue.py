"""Logging never waits for its reader, never grows, and says what was lost."""

import logging
import os
import re
import threading
from collections.abc import Callable, Iterator

import pytest

from kubedns.shared.logqueue import MOST_LINES, MOST_OCTETS, QueueingHandler

DEADLINE = 20.0


class Pipe:
    """A pipe that can be full: the handler's descriptor is its end for writing."""

    def __init__(self) -> None:
        self.reader, self.writer = os.pipe()
        self.handler = QueueingHandler(self.writer)

    def log(self, text: str, *arguments: object) -> None:
        record = logging.LogRecord("x", logging.INFO, "x.py", 1, text, arguments, None)
        self.handler.handle(record)

    def read_until(self, enough: Callable[[bytes], bool]) -> bytes:
        text = b""
        late = threading.Timer(DEADLINE, os.close, (self.writer,))
        late.start()
        try:
            while not enough(text):
                octets = os.read(self.reader, 1 << 20)
                assert octets, f"the log ends with {text[-200:]!r}"
                text += octets
        finally:
            late.cancel()
        return text


def said_lost(text: bytes) -> int:
    """Return how many lines the log says were dropped."""
    return sum(map(int, re.findall(rb"^(\d+) log lines dropped here", text, re.MULTILINE)))


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    made = Pipe()
    yield made
    made.handler.close()
    os.close(made.reader)  # ends a writer that waits


def test_lines_come_out_in_order(pipe):
    for number in range(100):
        pipe.log("line %d", number)
    text = pipe.read_until(lambda text: b"line 99\n" in text)
    assert text.decode().splitlines() == [f"line {number}" for number in range(100)]
    assert pipe.handler.dropped == 0


def test_what_does_not_fit_is_counted_and_the_place_is_marked(pipe):
    for number in range(4 * MOST_LINES):
        pipe.log("line %06d %s", number, "x" * 100)
    lost = pipe.handler.dropped
    assert MOST_LINES < lost < 4 * MOST_LINES
    text = pipe.read_until(lambda text: said_lost(text) == lost and text.endswith(b"\n"))
    numbers = [int(line.split()[1]) for line in text.decode().splitlines() if line.startswith("line ")]
    assert numbers == sorted(set(numbers))
    assert len(numbers) == 4 * MOST_LINES - lost
    pipe.log("afterwards")
    pipe.read_until(lambda text: b"afterwards\n" in text)
    assert pipe.handler.dropped == lost


def test_few_long_lines_fill_it_too(pipe):
    for _ in range(10):
        pipe.log("%s", "x" * (MOST_OCTETS // 2 + 1))
    assert pipe.handler.dropped >= 8


def test_a_line_that_cannot_be_formatted_is_said_and_raises_nothing(pipe):
    pipe.log("%d", "no number")
    assert b"x.py:1" in pipe.read_until(lambda text: b"\n" in text)


def test_a_reader_that_is_gone_costs_lines_only(pipe):
    os.close(pipe.reader)
    pipe.reader = os.dup(pipe.writer)
    for _ in range(3):
        pipe.log("into the void")
    pipe.handler.close()
    assert pipe.handler.dropped == 3
