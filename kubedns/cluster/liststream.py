"""The body of a list: chunks of bytes in, its items one by one, and what stands around them.

In: the bytes of a `...List`, cut anywhere.
Out: each member of `items` decoded, then the envelope with an empty `items`.
Invariant: no more than one item is held, and none longer than LONGEST_ITEM, so that a page of any
size costs neither its memory nor one long step of the decoder.  An item is an object or array
directly inside an array of the outermost object: a list has no other such array.
Source: RFC 8259; only strings, brackets and escapes have to be told apart.  Where an item probably
ends is guessed first, which is right for what API servers write and ten times as fast: a guess that
decodes is right, as no JSON object is the beginning of another.
"""

import re
from collections.abc import Iterator
from typing import Any, Final

import orjson

from kubedns.cluster.watchstream import StreamError

LONGEST_ITEM: Final = 16 * 1024 * 1024
_MOST_ARRAYS: Final = 16

_RUN = re.compile(rb'(?:[^"{}\[\]]++|"[^"\\]*+(?:\\.[^"\\]*+)*")*(["{}\[\]])?', re.DOTALL)
"""Whole strings and what is neither string nor bracket, then the bracket, or the quote of a cut string.

No group is possessive: until Python 3.11.4, Debian 12's among them, one that backtracks inside matches wrongly.
"""
_STRING_REST = re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*', re.DOTALL)
_ITEMS_DEPTH: Final = 2
_LONGEST_BEGIN: Final = 32


class ListStream:
    """Takes a list's body apart; `feed` it every chunk in order, then ask for the `envelope`."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._at = 0  # where scanning goes on
        self._keep = 0  # where the item or the stretch of envelope that is being read began
        self._depth = 0
        self._in_string = False
        self._in_items = False
        self._guess = True
        self._around: list[bytearray] = []

    def feed(self, chunk: bytes) -> Iterator[dict[str, Any]]:
        """Yield the items that a chunk completes; one that is no object as an empty object.

        The iterator must be used up before the next chunk is fed.  Raises StreamError.
        """
        del self._buffer[: self._keep]
        self._buffer += chunk
        self._at -= self._keep
        self._keep = 0
        self._guess = True
        if self._in_string and not self._string_ends():
            return self._check_size()
        yield from self._guessed_items()
        while (token := _RUN.match(self._buffer, self._at)) and (octet := token[1]):
            self._at = token.end()
            if octet == b'"':
                self._in_string = True
                if not self._string_ends():
                    break
            elif octet in b"{[":
                self._opened(self._at - 1, octet)
                if self._in_items and self._depth == _ITEMS_DEPTH:
                    yield from self._guessed_items()
            else:
                self._depth -= 1
                if self._in_items and self._depth == _ITEMS_DEPTH:
                    yield _decoded(self._buffer[self._keep : self._at])
                    self._keep = self._at
                    yield from self._guessed_items()
                elif self._in_items and self._depth < _ITEMS_DEPTH:
                    self._in_items = False
                    self._keep = self._at - 1
        else:
            self._at = len(self._buffer)
        self._check_size()

    def _guessed_items(self) -> Iterator[dict[str, Any]]:
        """Yield items from where the scan stands, between two of them, for as long as guessing works."""
        if not self._guess or not self._in_items or self._in_string or self._depth != _ITEMS_DEPTH:
            return
        self._guess = False  # once it does not work, not again in this chunk
        begin = self._at + self._buffer.startswith(b",", self._at)
        colon = self._buffer.find(b":", begin, begin + _LONGEST_BEGIN)
        item_begin = self._buffer[begin : colon + 1]
        if not item_begin.startswith(b"{"):
            return
        # All items of a list begin with the same key.
        while end := self._buffer.find(b"}," + item_begin, begin) + 1:
            try:
                item = _decoded(self._buffer[begin:end])
            except StreamError:
                return
            self._at = self._keep = end
            begin = end + 1
            yield item

    def _opened(self, start: int, octet: bytes) -> None:
        if self._in_items:
            if self._depth == _ITEMS_DEPTH:
                self._keep = start
        elif self._depth == _ITEMS_DEPTH - 1 and octet == b"[":
            self._in_items = True
            self._around.append(self._buffer[self._keep : start + 1])
            self._keep = start + 1
        self._depth += 1

    def _string_ends(self) -> bool:
        """Go on within a string; False when the buffer ends before it does."""
        rest = _STRING_REST.match(self._buffer, self._at)
        self._at = rest.end() if rest else self._at
        if self._at >= len(self._buffer) or self._buffer[self._at] != 0x22:
            return False  # also where the buffer's last octet is a backslash
        self._at += 1
        self._in_string = False
        return True

    def _check_size(self) -> None:
        if len(self._buffer) - self._keep > LONGEST_ITEM:
            raise StreamError(f"a list has an item longer than {LONGEST_ITEM} octets")
        if len(self._around) > _MOST_ARRAYS:
            raise StreamError("a list has more than one array")

    def envelope(self) -> dict[str, Any]:
        """Return the list without its items, once the body has ended; raises StreamError if it was cut."""
        try:
            value = orjson.loads(b"".join([*self._around, self._buffer[self._keep :]]))
        except orjson.JSONDecodeError as error:
            raise StreamError(f"a list is cut or not JSON: {error}") from error
        if not isinstance(value, dict):
            raise StreamError("a list is not an object")
        return value


def _decoded(item: bytearray) -> dict[str, Any]:
    try:
        value = orjson.loads(item)
    except orjson.JSONDecodeError as error:
        raise StreamError(f"an item of the list is not JSON: {error}") from error
    return value if isinstance(value, dict) else {}
