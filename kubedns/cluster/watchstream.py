"""The body of a watch: chunks of bytes in, events out.

In: the bytes of a watch's response, cut anywhere.
Out: Event, one for each line `{"type": ..., "object": {...}}`.
Invariant: no more than one line is held, and none longer than LONGEST_LINE; blank lines are
nothing; a line that is no event raises StreamError and ends the stream's use.
"""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import orjson

LONGEST_LINE: Final = 16 * 1024 * 1024
"""Octets; etcd refuses objects above 1.5 MiB, so that nothing honest comes near."""


class StreamError(Exception):
    """The stream cannot be understood any more; the text says why."""


class Event(NamedTuple):
    """An event of a watch: `type` is ADDED, MODIFIED, DELETED, BOOKMARK, ERROR or unknown."""

    type: str
    object: dict[str, Any]


class WatchStream:
    """Takes a watch's body apart; `feed` it every chunk in order."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._held = 0

    def feed(self, chunk: bytes) -> Iterator[Event]:
        """Yield the events that a chunk completes, each decoded when it is asked for.

        The iterator must be used up before the next chunk is fed.  Raises StreamError.
        """
        begin, end = 0, chunk.find(b"\n")
        while end >= 0:
            line = chunk[begin:end]
            if self._parts:
                self._parts.append(line)
                line = b"".join(self._parts)
                self._parts.clear()
                self._held = 0
            if len(line) > LONGEST_LINE:
                raise StreamError(_TOO_LONG)
            if line and not line.isspace():
                yield parse_event(line)
            begin = end + 1
            end = chunk.find(b"\n", begin)
        if begin < len(chunk):
            self._parts.append(chunk[begin:])
            self._held += len(chunk) - begin
            if self._held > LONGEST_LINE:
                self._parts.clear()
                raise StreamError(_TOO_LONG)


_TOO_LONG = f"an event is longer than {LONGEST_LINE} octets"


def parse_event(line: bytes) -> Event:
    """Return the event of one line; raises StreamError."""
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise StreamError(f"an event is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise StreamError("an event is not an object")
    kind, body = value.get("type"), value.get("object")
    if not isinstance(kind, str) or not isinstance(body, dict):
        raise StreamError("an event lacks its type or its object")
    return Event(kind, body)
