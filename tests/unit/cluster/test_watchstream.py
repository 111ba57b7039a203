from itertools import pairwise
from pathlib import Path

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubedns.cluster import watchstream
from kubedns.cluster.watchstream import Event, StreamError, WatchStream

DATA = Path(__file__).parents[2] / "data" / "apiserver"


def body(name: str) -> bytes:
    return (DATA / name).read_bytes().partition(b"\r\n\r\n")[2]


def events(*chunks: bytes) -> list[Event]:
    stream = WatchStream()
    return [event for chunk in chunks for event in stream.feed(chunk)]


@pytest.mark.parametrize(
    "name", ["services-watch.http", "endpointslices-watch.http", "services-watchlist.http"]
)
def test_recorded_stream_split_at_any_byte_gives_the_same_events(name):
    raw = body(name)
    whole = events(raw)
    assert len(whole) >= 5
    assert events(*(raw[i : i + 1] for i in range(len(raw)))) == whole


@given(st.lists(st.integers(0, 9000)))
def test_recorded_stream_cut_anywhere_gives_the_same_events(cuts):
    raw = body("services-watch.http")
    edges = [0, *sorted(cut for cut in cuts if cut <= len(raw)), len(raw)]
    assert events(*(raw[a:b] for a, b in pairwise(edges))) == events(raw)


def test_blank_lines_are_nothing():
    line = b'{"type":"ADDED","object":{}}'
    assert events(b"\n\r\n  \n" + line + b"\n\n" + line + b"\r\n") == [Event("ADDED", {})] * 2


def test_line_without_its_end_is_no_event_yet():
    assert events(b'{"type":"ADDED","object":{}}') == []


@pytest.mark.parametrize(
    "line",
    [
        b"{",
        b"nonsense",
        b"[]",
        b"null",
        b"{}",
        b'{"type":"ADDED"}',
        b'{"type":1,"object":{}}',
        b'{"type":"ADDED","object":[]}',
        b'{"type":"ADDED","object":"\xff"}',
    ],
)
def test_line_that_is_no_event_raises(line):
    with pytest.raises(StreamError):
        events(line + b"\n")


def test_events_before_a_broken_line_are_delivered():
    stream = WatchStream()
    feed = stream.feed(b'{"type":"ADDED","object":{}}\n{"type":\n')
    assert next(feed) == Event("ADDED", {})
    with pytest.raises(StreamError):
        next(feed)


def test_line_without_end_is_refused_at_the_limit():
    stream, chunk = WatchStream(), b"x" * 65536
    for _ in range(watchstream.LONGEST_LINE // len(chunk)):
        assert list(stream.feed(chunk)) == []
    with pytest.raises(StreamError, match="longer than"):
        list(stream.feed(chunk))


def test_line_of_one_megabyte_in_small_chunks_is_read():
    line = orjson.dumps({"type": "ADDED", "object": {"data": "y" * 1_000_000}}) + b"\n"
    assert len(events(*(line[i : i + 1024] for i in range(0, len(line), 1024)))) == 1
