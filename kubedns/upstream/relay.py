"""Questions in flight at the cache server as rows of a table: one socket, no task and no timer for each.

In: questions as they go out, each with a Waiter.  Out: one call for each waiter, whatever happens.  Equal
questions share a row.  Invariants: an ID stands for one row; a row ends by its reply, by its time, or when
the server is left; a late reply finds no row.  Halfway through its time a question is sent once more, as
the server's buffer has room for some 250 only.  At MOST_ROWS the oldest row gives way, so that names which the
server does not answer cost others nothing; with 300 octets a row and as many a waiter that is 6 MiB at most.

The server is on loopback, where only programs of this host can forge a reply: a random ID of 16 bits and the
question compared are enough there, and one socket with one port will do (RFC 5452 9 is about networks).
"""

import asyncio
import os
import socket
from ipaddress import ip_address
from typing import Final, Protocol

from kubedns.dns import numbers
from kubedns.dns.labels import MalformedMessage
from kubedns.dns.message import Sections, has_question, is_reply_to, is_truncated, rcode, sections
from kubedns.shared.datagrams import SIZE, Inbox, Outbox, is_available
from kubedns.upstream.cacheserver import CacheServer

MOST_ROWS: Final = 4096
MOST_WAITERS: Final = 4 * MOST_ROWS
"""Clients that may wait in all rows together."""
_REPLY_SLOT: Final = 4096
_QUERY_SLOT: Final = 300
"""Octets of the longest question with a header and an OPT record: 12 + 255 + 4 + 11."""
_BATCHES_PER_WAKE_UP: Final = 4
_RECEIVE_BUFFER: Final = 4 << 20
_IDS_AT_ONCE: Final = 512
_TRIES: Final = 2
_FAILURES: Final = {numbers.SERVFAIL: "servfail", numbers.REFUSED: "refused"}


class Waiter(Protocol):
    """Who waits for a reply; exactly one of the calls comes."""

    def answered(self, reply: bytes, found: Sections | None) -> None:
        """Take a reply and its records; None for an error that comes without the question."""

    def unanswered(self) -> None:
        """Learn that no reply came in time, or that there are too many questions."""

    def ask_elsewhere(self, *, truncated: bool) -> None:
        """Take the long way: the reply is cut short or can't be read, or the server was left."""


class _Row:
    __slots__ = ("begun", "end", "message", "question", "sent_at", "waiters")

    def __init__(self, message: bytes, question: bytes, end: int, begun: float, waiter: Waiter) -> None:
        self.message = message
        self.question = question
        self.end = end
        self.begun = self.sent_at = begun
        self.waiters = [waiter]


def open_relay(cache: CacheServer, within: float) -> "Relay | None":
    """Return a relay to a cache server, None where it is not on loopback or the system lacks the calls."""
    if not ip_address(cache.upstream.server.host).is_loopback:
        return None
    connected = socket.socket(cache.upstream.family, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
    connected.connect(cache.upstream.sockaddr)
    if not is_available(connected):
        connected.close()
        return None
    return Relay(cache, connected, within)


class Relay:
    """The table and the socket to one cache server; `within` is in seconds.

    `overloads` counts questions that were given up because there were too many others.
    """

    def __init__(self, cache: CacheServer, connected: socket.socket, within: float) -> None:
        self._cache = cache
        self._try_within = within / _TRIES
        self._traffic = cache.upstream.traffic
        self._loop = asyncio.get_running_loop()
        self._rows: dict[bytes, _Row] = {}
        """By ID, the one that was sent first at the beginning."""
        self._by_question: dict[bytes, _Row] = {}
        self._waiters = 0
        self.overloads = 0
        self._ids = b""
        self._inbox = Inbox(_REPLY_SLOT)
        self._outbox = Outbox(_QUERY_SLOT)
        self._flush_is_due = False
        self._expiry: asyncio.TimerHandle | None = None
        self._socket = connected
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BUFFER)
        self._descriptor = self._socket.fileno()
        self._loop.add_reader(self._descriptor, self._readable)
        cache.when_left = self._leave

    def ask(self, message: bytes, end: int, waiter: Waiter) -> None:
        """Send a question, whose ID is replaced, or join an equal one; its question section ends at `end`."""
        question = message[2:]
        row = self._by_question.get(question)
        if self._waiters >= MOST_WAITERS:
            self.overloads += 1
            waiter.unanswered()
            return
        self._waiters += 1
        if row is not None:
            row.waiters.append(waiter)
            return
        if len(self._rows) >= MOST_ROWS:
            self.overloads += 1
            self._give_up(next(iter(self._rows.values())))
        message_id = self._unused_id()
        row = _Row(message_id + question, question, end, self._loop.time(), waiter)
        self._rows[message_id] = self._by_question[question] = row
        self._traffic.requests += 1
        self._traffic.in_flight += 1
        self._cache.sent()
        self._send(row)
        if self._expiry is None:
            self._expiry = self._loop.call_at(row.sent_at + self._try_within, self._expire)

    def close(self) -> None:
        """Close the socket; who waits gets nothing any more."""
        self._loop.remove_reader(self._descriptor)
        self._socket.close()
        if self._expiry is not None:
            self._expiry.cancel()

    def _unused_id(self) -> bytes:
        while True:
            if not self._ids:
                self._ids = os.urandom(_IDS_AT_ONCE)
            message_id, self._ids = self._ids[:2], self._ids[2:]
            if message_id not in self._rows:
                return message_id

    def _send(self, row: _Row) -> None:
        if self._outbox.add(row.message):
            self._flush()
        elif not self._flush_is_due:
            self._flush_is_due = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._flush_is_due = False
        if self._socket.fileno() < 0 or not self._outbox.count:
            return
        failed, problem = self._outbox.flush(self._descriptor)
        if failed and problem:
            self._cache.fail(os.strerror(problem).lower())

    def _readable(self) -> None:
        try:
            for _ in range(_BATCHES_PER_WAKE_UP):
                count = self._inbox.receive(self._descriptor)
                if count:
                    self._cache.heard()
                for index in range(count):
                    self._take(self._inbox.message(index))
                if count < SIZE:
                    return
        except OSError as error:
            self._cache.fail((error.strerror or str(error)).lower())

    def _take(self, reply: bytes) -> None:
        row = self._rows.get(reply[:2])
        if row is None:
            return
        message, end = row.message, row.end
        same = reply[12:end] == message[12:end] and reply[4:6] == b"\0\1" and reply[2] & 0xF8 == 0x80
        if not same and not is_reply_to(reply, message):
            self._traffic.failures["mismatch"] += 1
            return
        self._traffic.seconds.observe(self._loop.time() - row.begun)
        waiters = self._end(row)
        if (reason := _FAILURES.get(rcode(reply))) is not None:
            self._traffic.failures[reason] += 1
        found = None
        if has_question(reply):
            truncated = is_truncated(reply)
            try:
                found = None if truncated else sections(reply, end)
            except MalformedMessage:
                self._traffic.failures["malformed"] += 1
            if found is None:
                for waiter in waiters:
                    waiter.ask_elsewhere(truncated=truncated)
                return
        for waiter in waiters:
            waiter.answered(reply, found)

    def _end(self, row: _Row) -> list[Waiter]:
        del self._rows[row.message[:2]], self._by_question[row.question]
        self._waiters -= len(row.waiters)
        self._traffic.in_flight -= 1
        self._cache.ended()
        return row.waiters

    def _give_up(self, row: _Row) -> None:
        self._traffic.failures["timeout"] += 1
        for waiter in self._end(row):
            waiter.unanswered()

    def _expire(self) -> None:
        """Send again, or give up, what was sent too long ago."""
        self._expiry = None
        now = self._loop.time()
        while self._rows:
            message_id, oldest = next(iter(self._rows.items()))
            if oldest.sent_at > now - self._try_within:
                self._expiry = self._loop.call_at(oldest.sent_at + self._try_within, self._expire)
                return
            if oldest.sent_at > oldest.begun:
                self._give_up(oldest)
                continue
            del self._rows[message_id]
            oldest.sent_at = now
            self._rows[message_id] = oldest
            self._send(oldest)

    def _leave(self) -> None:
        """Send everybody the long way: the server is down."""
        while self._rows:
            for waiter in self._end(next(iter(self._rows.values()))):
                waiter.ask_elsewhere(truncated=False)
