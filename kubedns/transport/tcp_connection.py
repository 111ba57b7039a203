"""One DNS connection over TCP: octets in, messages out to be answered, framed replies back.

In: a stream of messages, each after its length in two octets (RFC 1035 4.2.2).  Out: replies, each
as soon as it is ready, in any order (RFC 7766 6.2.1.1).  Invariants: what a connection holds in
memory is bounded, whatever the client sends or leaves unread; reading stops while the client is
ahead of its replies.
"""

import asyncio
from time import perf_counter
from typing import Final, Protocol, cast

from kubedns.shared.reply import Observer, Peer, Reply, Responder
from kubedns.transport.observed import respond_observed

_LENGTH_OCTETS: Final = 2
_READ_AHEAD: Final = 4096
"""Octets that wait to be answered before reading stops; an unfinished message above it is heavy."""

_UNSENT_HIGH: Final = 64 * 1024
"""Octets of replies the client left unread, from which on its questions wait."""

_UNSENT_MOST: Final = 4 * _UNSENT_HIGH
"""With more of them the connection is cut: replies that were under way add to the first limit."""


class Owner(Protocol):
    """The server, as its connections see it."""

    @property
    def responder(self) -> Responder:
        """What answers messages."""

    @property
    def observer(self) -> Observer | None:
        """Who is told of each message and its reply."""

    @property
    def most_in_flight(self) -> int:
        """How many replies of one connection may be under way."""

    def read_buffer(self) -> memoryview:
        """Return where the next octets go; they are taken out before the next call."""

    def opened(self, connection: "TcpConnection") -> None:
        """Admit a new connection, or abort it."""

    def closed(self, connection: "TcpConnection") -> None:
        """Forget a connection."""

    def active(self, connection: "TcpConnection") -> None:
        """Take note that a message came or a reply went."""

    def has_message(self, connection: "TcpConnection") -> None:
        """Call `answer` when it is this connection's turn."""

    def weighs(self, connection: "TcpConnection", *, heavy: bool) -> None:
        """Take note that it began or ceased to hold a large message or many unread replies."""


class TcpConnection(asyncio.BufferedProtocol):
    """The protocol of one accepted connection, and the sink of its later replies; it has but one peer."""

    transport: asyncio.Transport

    def __init__(self, owner: Owner) -> None:
        self._owner = owner
        self._received = bytearray()
        self._in_flight = 0
        self._stalled = False
        self._heavy = False
        self._reading = True
        self._ended = False

    @property
    def is_idle(self) -> bool:
        """Whether no reply is under way; a question that is still arriving does not count."""
        return not self._in_flight

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin (called by the event loop)."""
        self.transport = cast("asyncio.Transport", transport)
        self.transport.set_write_buffer_limits(high=_UNSENT_HIGH)
        self._owner.opened(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """End, for whatever reason; replies that are still to come go nowhere."""
        self._owner.closed(self)
        self._received.clear()

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return where to read to."""
        return self._owner.read_buffer()

    def buffer_updated(self, nbytes: int) -> None:
        """Take octets that were read."""
        self._received += self._owner.read_buffer()[:nbytes]
        self._go_on()

    def eof_received(self) -> bool:
        """Keep a half-closed connection until its questions are answered (RFC 7766 6.2.4)."""
        self._ended = True
        self._go_on()
        return True

    def pause_writing(self) -> None:
        """Stop answering a client that does not read."""
        self._stalled = True
        self._weigh()

    def resume_writing(self) -> None:
        """Go on once it reads."""
        self._stalled = False
        self._go_on()

    def answer(self, most: int, until: float) -> int:
        """Answer one message, and more until a moment of `perf_counter`, at most so many; return how many."""
        taken, offset = 0, 0
        out = bytearray()
        try:
            while (
                taken < most
                and (not taken or perf_counter() < until)
                and len(out) < _UNSENT_HIGH
                and self._may_answer(offset)
            ):
                begin = offset + _LENGTH_OCTETS
                offset = begin + int.from_bytes(self._received[offset:begin])
                taken += 1
                if offset > begin:  # a length of 0 is no message
                    self._owner.active(self)
                    self._take(self._respond(bytes(self._received[begin:offset])), out)
        finally:
            del self._received[:offset]
            self._write(out)
            self._go_on()
        return taken

    def deliver(self, peer: Peer, reply: bytes | None) -> None:
        """Send a reply that had to be waited for."""
        self._in_flight -= 1
        if self.transport.is_closing():
            return
        if reply is not None:
            self._write(len(reply).to_bytes(_LENGTH_OCTETS) + reply)
        self._owner.active(self)
        self._go_on()

    def address(self, peer: Peer) -> tuple[str, int]:
        """Return IP address and port of the client."""
        host, port, *_ = self.transport.get_extra_info("peername")
        return host, port

    def _respond(self, message: bytes) -> Reply:
        observer = self._owner.observer
        if observer is None:
            return self._owner.responder(message, True)
        return respond_observed(self._owner.responder, observer, message, True, self, None)

    def _take(self, reply: Reply, out: bytearray) -> None:
        if isinstance(reply, bytes):
            out += len(reply).to_bytes(_LENGTH_OCTETS) + reply
        elif reply is not None:
            self._in_flight += 1
            reply.begin(self, None)

    def _write(self, octets: bytes | bytearray) -> None:
        if octets and not self.transport.is_closing():
            self.transport.write(octets)
            if self.transport.get_write_buffer_size() > _UNSENT_MOST:
                self.transport.abort()

    def _go_on(self) -> None:
        """Ask for a turn, read or wait, and close, as the present state requires."""
        if self.transport.is_closing():
            return
        whole = self._has_message(0)
        if whole and self._may_answer(0):
            self._owner.has_message(self)
        self._read(not whole or len(self._received) < _READ_AHEAD)
        self._weigh()
        if self._ended and not whole and not self._in_flight:
            self.transport.close()

    def _may_answer(self, offset: int) -> bool:
        waits = self._stalled or self._in_flight >= self._owner.most_in_flight
        return not waits and self._has_message(offset)

    def _has_message(self, offset: int) -> bool:
        begin = offset + _LENGTH_OCTETS
        received = len(self._received)
        return received >= begin and received >= begin + int.from_bytes(self._received[offset:begin])

    def _read(self, wanted: bool) -> None:
        if wanted is self._reading or self._ended:
            return
        self._reading = wanted
        if wanted:
            self.transport.resume_reading()
        else:
            self.transport.pause_reading()

    def _weigh(self) -> None:
        heavy = self._stalled or (len(self._received) > _READ_AHEAD and not self._has_message(0))
        if heavy is not self._heavy:
            self._heavy = heavy
            self._owner.weighs(self, heavy=heavy)
