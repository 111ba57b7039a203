"""One question to one server: over UDP, over TCP when the reply is truncated or TCP was asked for.

In: a query as the client sent it.  Out: one report, when there is a reply or no hope of one.
The query goes out byte for byte but for its ID (RFC 5625 3).  Each question has a random ID and
its own connected socket: the kernel picks a random port, takes datagrams of that server alone,
and hands on its ICMP errors (RFC 5452 4 and 9).  A datagram that is not the reply is passed over;
so many of them are an attack, and the question moves to TCP, where guessing is of no use.
"""

import asyncio
import errno
import secrets
import socket
from collections.abc import Callable
from contextlib import ExitStack, suppress
from typing import Final

from kubedns.dns import numbers
from kubedns.dns.message import Verdict, bare, is_reply_to, is_well_formed, rcode, verdict
from kubedns.shared.tasks import spawn
from kubedns.upstream.servers import Upstream

_MOST_STRAYS: Final = 16
_OWN_FAULTS: Final = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM, errno.EMSGSIZE}
"""Errors of a socket that say nothing about the server."""


class Ask:
    """A question under way; it ends by one call of `report`, or by `close` without one.

    `reply` is what came, with the ID of the wire; `verdict` what it is worth, None without a reply;
    `error` why there is none.  `truncated` is a reply cut short, while TCP is tried for the whole.
    """

    def __init__(self, upstream: Upstream, query: bytes, end: int, report: "Callable[[Ask], None]") -> None:
        self.upstream = upstream
        self.reply: bytes | None = None
        self.verdict: Verdict | None = None
        self.error: OSError | None = None
        self.truncated: bytes | None = None
        self._message = secrets.token_bytes(2) + query[2:]
        self._end = end
        self._report = report
        self._strays = 0
        self._sent_at: float | None = None
        self._loop = asyncio.get_running_loop()
        self._socket: socket.socket | None = None
        self._stream: asyncio.Task[None] | None = None

    @property
    def is_open(self) -> bool:
        """Whether a reply can still come."""
        return self._socket is not None or self._stream is not None

    @property
    def fault(self) -> str | None:
        """What the error says against the server; None when it is our own, such as too many open files."""
        if self.error is None or self.error.errno in _OWN_FAULTS:
            return None
        return (self.error.strerror or str(self.error)).lower()

    def over_udp(self) -> None:
        """Send the question in a datagram, once more where it was sent before, unless it has moved to TCP."""
        if self._stream is not None:
            return
        self._count_sent()
        try:
            if self._socket is None:
                self._socket = socket.socket(self.upstream.family, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
                self._socket.connect(self.upstream.sockaddr)
                self._loop.add_reader(self._socket.fileno(), self._readable)
            self._socket.send(self._message)
        except BlockingIOError:
            pass  # as good as lost on the way
        except OSError as error:
            self._failed(error)

    def over_tcp(self) -> None:
        """Send the question over a connection, on which no other one is under way."""
        self._count_sent()
        self._close_socket()
        self._stream = spawn(self._exchange(), name=f"ask {self.upstream.server} over TCP")

    def close(self) -> None:
        """End it without a report."""
        self._count_ended()
        self._close_socket()
        if self._stream is not None:
            self._stream.cancel()
            self._stream = None

    def _readable(self) -> None:
        while self._socket is not None:
            try:
                datagram = self._socket.recv(numbers.LARGEST_MESSAGE)
            except BlockingIOError:
                return
            except OSError as error:
                self._failed(error)
                return
            if is_reply_to(datagram, self._message):
                self._take_datagram(datagram)
                return
            self._strays += 1
            self.upstream.traffic.failures["mismatch"] += 1
            if self._strays >= _MOST_STRAYS:
                self.over_tcp()

    def _take_datagram(self, reply: bytes) -> None:
        worth = verdict(reply, self._end)
        if worth is Verdict.TRUNCATED:
            self.truncated = reply if is_well_formed(reply, self._end) else bare(reply, self._end)
            self.over_tcp()
        else:
            self._take(reply, worth)

    async def _exchange(self) -> None:
        try:
            reply = await self._over_stream()
        except OSError as error:
            self._stream = None
            self._failed(error)
            return
        self._stream = None
        worth = verdict(reply, self._end)
        self._take(reply, Verdict.ANSWER if worth is Verdict.TRUNCATED else worth)

    async def _over_stream(self) -> bytes:
        """Ask over a connection that is idle, else over a new one.

        The server may close an idle connection just now, which says nothing about the question.
        """
        idle = self.upstream.streams.take()
        if idle is not None:
            with suppress(ConnectionError):
                return await self._ask_over(idle, connected=True)
        stream = socket.socket(self.upstream.family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        return await self._ask_over(stream, connected=False)

    async def _ask_over(self, stream: socket.socket, *, connected: bool) -> bytes:
        """Return the reply that comes over a stream, which is kept for others then, else closed."""
        with ExitStack() as undo:
            undo.callback(stream.close)
            if not connected:
                await self._loop.sock_connect(stream, self.upstream.sockaddr)
            await self._loop.sock_sendall(stream, len(self._message).to_bytes(2) + self._message)
            length = int.from_bytes(await self._receive(stream, 2))
            reply = await self._receive(stream, length)
            if not is_reply_to(reply, self._message):
                raise OSError(errno.EBADMSG, "reply to another question")
            undo.pop_all()
        self.upstream.streams.give(stream)
        return reply

    async def _receive(self, stream: socket.socket, octets: int) -> bytes:
        received = bytearray()
        while len(received) < octets:
            part = await self._loop.sock_recv(stream, octets - len(received))
            if not part:
                raise ConnectionResetError(errno.ECONNRESET, "connection closed before the reply")
            received += part
        return bytes(received)

    def _take(self, reply: bytes, worth: Verdict) -> None:
        self._count_reply(reply, worth)
        self.close()
        self.reply, self.verdict = reply, worth
        self._report(self)

    def _failed(self, error: OSError) -> None:
        self.close()
        if self.truncated is not None:
            self.reply, self.verdict = self.truncated, Verdict.TRUNCATED
        else:
            self.error = error
            if self.fault is not None:
                self.upstream.traffic.failures["refused"] += 1
        self._report(self)

    def _count_sent(self) -> None:
        """Count the question once, however often and in whatever way it is sent."""
        if self._sent_at is None:
            self._sent_at = self._loop.time()
            self.upstream.traffic.requests += 1
            self.upstream.traffic.in_flight += 1

    def _count_reply(self, reply: bytes, worth: Verdict) -> None:
        traffic = self.upstream.traffic
        if self._sent_at is not None:
            traffic.seconds.observe(self._loop.time() - self._sent_at)
        if worth is Verdict.MALFORMED:
            traffic.failures["malformed"] += 1
        elif rcode(reply) == numbers.SERVFAIL:
            traffic.failures["servfail"] += 1
        elif worth is Verdict.UNWELCOME:
            traffic.failures["refused"] += 1

    def _count_ended(self) -> None:
        if self._sent_at is not None:
            self._sent_at = None
            self.upstream.traffic.in_flight -= 1

    def _close_socket(self) -> None:
        if self._socket is not None:
            self._loop.remove_reader(self._socket.fileno())
            self._socket.close()
            self._socket = None
