"""Many datagrams in one system call: recvmmsg(2) and sendmmsg(2), which Python's sockets do not have.

In: a UDP socket and a responder.  Out: what has come is answered, and the replies are sent together.
The buffers and the structures that the two calls want are laid out once; after that a datagram costs
one copy in and one copy out, and addresses are never taken apart.  Against a recvfrom and a sendto for
each datagram an answer costs a sixth to a quarter less CPU time.
"""

import ctypes
import errno
import os
import socket
import sys
from collections.abc import Awaitable, Callable
from time import perf_counter
from typing import Any, Final

SIZE: Final = 32
"""Datagrams that are taken at a time."""
LARGEST_QUERY: Final = 4096
"""Octets of a query that are looked at."""
_REPLY_SLOT: Final = 1232
_ADDRESS_SLOT: Final = 28
_ADDRESS_OCTETS: Final = {socket.AF_INET: 16, socket.AF_INET6: _ADDRESS_SLOT}
"""Octets of a sockaddr_in and of a sockaddr_in6."""

Address = tuple[Any, ...]
Reply = bytes | Awaitable[bytes | None] | None
Responder = Callable[[bytes, bool], Reply]
Later = Callable[[socket.socket, Awaitable[bytes | None], Address], None]


class _IoVec(ctypes.Structure):
    _fields_ = (("base", ctypes.c_void_p), ("octets", ctypes.c_size_t))


class _MsgHdr(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_void_p),
        ("name_octets", ctypes.c_uint32),
        ("vectors", ctypes.c_void_p),
        ("vector_count", ctypes.c_size_t),
        ("control", ctypes.c_void_p),
        ("control_octets", ctypes.c_size_t),
        ("flags", ctypes.c_int),
    )


class _MMsgHdr(ctypes.Structure):
    _fields_ = (("header", _MsgHdr), ("octets", ctypes.c_uint))


_HEADER_OCTETS: Final = ctypes.sizeof(_MMsgHdr)
# Where lengths are in arrays of these structures, counted in items of their own size.
_FIRST_RECEIVED: Final = ctypes.sizeof(_MsgHdr) // ctypes.sizeof(ctypes.c_uint)
_NEXT_RECEIVED: Final = _HEADER_OCTETS // ctypes.sizeof(ctypes.c_uint)
_FIRST_SENT: Final = 1
_NEXT_SENT: Final = ctypes.sizeof(_IoVec) // ctypes.sizeof(ctypes.c_size_t)

_libc = ctypes.CDLL(None, use_errno=True)
_recvmmsg: Any = getattr(_libc, "recvmmsg", None)
_sendmmsg: Any = getattr(_libc, "sendmmsg", None)


def is_available(listener: socket.socket) -> bool:
    """Whether this system has the two calls and lets a process use them."""
    if _recvmmsg is None or _sendmmsg is None:
        return False
    nothing = (listener.fileno(), None, 0, socket.MSG_DONTWAIT)
    return bool(_recvmmsg(*nothing, None) >= 0 and _sendmmsg(*nothing) >= 0)


class Batch:
    """The buffers of one socket, and what has been taken from it and is not answered yet.

    A reply that must be waited for goes to `later`, with the socket and the peer's address.  `dropped`
    counts replies that could not be sent.
    """

    def __init__(self, listener: socket.socket, respond: Responder, later: Later) -> None:
        self.listener = listener
        self.dropped = 0
        self._respond = respond
        self._later = later
        self._descriptor = listener.fileno()
        self._next = self._count = 0
        self._addresses = bytearray(SIZE * _ADDRESS_SLOT)
        self._replies = bytearray(SIZE * _REPLY_SLOT)
        queries = bytearray(SIZE * LARGEST_QUERY)
        self._queries = memoryview(queries)
        self._receive_vectors, self._receive_headers = self._structures(queries, LARGEST_QUERY)
        send_vectors, self._send_headers = self._structures(self._replies, _REPLY_SLOT)
        self._receive_at = ctypes.byref(self._receive_headers)
        self._send_at = [ctypes.byref(self._send_headers, _HEADER_OCTETS * index) for index in range(SIZE)]
        self._received = memoryview(self._receive_headers).cast("B").cast("I")
        self._sent = memoryview(send_vectors).cast("B").cast("L")

    def _structures(self, buffer: bytearray, slot: int) -> tuple[Any, Any]:
        """Return the vectors and the message headers that lead to the slots of a buffer."""
        start, addresses = _address_of(buffer), _address_of(self._addresses)
        vectors = (_IoVec * SIZE)(*(_IoVec(start + slot * index, slot) for index in range(SIZE)))
        headers = (_MMsgHdr * SIZE)()
        for index in range(SIZE):
            header = headers[index].header
            header.name = addresses + _ADDRESS_SLOT * index
            header.name_octets = _ADDRESS_OCTETS[self.listener.family]
            header.vectors = ctypes.addressof(vectors[index])
            header.vector_count = 1
        return vectors, headers

    @property
    def is_empty(self) -> bool:
        """Whether all that has been taken is answered."""
        return self._next == self._count

    def answer(self, until: float) -> int:
        """Answer what has come until a moment of `perf_counter`, the question at hand included.

        Return how many replies there were at once.  What was taken and has to wait is answered first the
        next time; the socket does not become readable for it.  Raises OSError when receiving fails.
        """
        replies = 0
        while not self.is_empty or self._receive():
            replies += self._answer_taken(until)
            if self._count < SIZE or perf_counter() >= until:
                break
        return replies

    def _receive(self) -> int:
        count: int = _recvmmsg(self._descriptor, self._receive_at, SIZE, socket.MSG_DONTWAIT, None)
        if count < 0:
            problem = ctypes.get_errno()
            if problem not in (errno.EAGAIN, errno.EINTR):
                raise OSError(problem, os.strerror(problem))
            count = 0
        self._next, self._count = 0, count
        return count

    def _answer_taken(self, until: float) -> int:
        """Answer what was taken, until it is time; return how many replies there were at once."""
        respond, queries, received = self._respond, self._queries, self._received
        replies, sent = self._replies, self._sent
        index = begin = first = self._next
        without_reply = 0
        query_at, received_at = index * LARGEST_QUERY, _FIRST_RECEIVED + index * _NEXT_RECEIVED
        reply_at, sent_at = index * _REPLY_SLOT, _FIRST_SENT + index * _NEXT_SENT
        for index in range(first, self._count):
            reply = respond(queries[query_at : query_at + received[received_at]].tobytes(), False)
            if isinstance(reply, bytes) and (octets := len(reply)) <= _REPLY_SLOT:
                replies[reply_at : reply_at + octets] = reply
                sent[sent_at] = octets
            else:
                self._send(first, index)
                first = index + 1
                without_reply += not isinstance(reply, bytes)
                self._send_alone(index, reply)
            if perf_counter() >= until:
                break
            query_at += LARGEST_QUERY
            reply_at += _REPLY_SLOT
            received_at += _NEXT_RECEIVED
            sent_at += _NEXT_SENT
        self._next = index + 1
        self._send(first, index + 1)
        return index + 1 - begin - without_reply

    def _send(self, first: int, end: int) -> None:
        """Send the replies in some slots; one that fails does not keep back the others."""
        while first < end:
            sent = _sendmmsg(self._descriptor, self._send_at[first], end - first, socket.MSG_DONTWAIT)
            if sent <= 0:
                self.dropped += 1
            first += max(sent, 1)

    def _send_alone(self, index: int, reply: Reply) -> None:
        if isinstance(reply, bytes):
            try:
                self.listener.sendto(reply, self._peer(index))
            except OSError:
                self.dropped += 1
        elif reply is not None:
            self._later(self.listener, reply, self._peer(index))

    def _peer(self, index: int) -> Address:
        """Return an address as Python's sockets have it (ip(7), ipv6(7))."""
        start = _ADDRESS_SLOT * index
        octets = self._addresses[start : start + _ADDRESS_SLOT]
        port = int.from_bytes(octets[2:4])
        if self.listener.family == socket.AF_INET:
            return socket.inet_ntoa(octets[4:8]), port
        flow, scope = int.from_bytes(octets[4:8]), int.from_bytes(octets[24:28], sys.byteorder)
        return socket.inet_ntop(socket.AF_INET6, octets[8:24]), port, flow, scope


def _address_of(buffer: bytearray) -> int:
    """Return where a buffer is in memory; it cannot be resized from then on."""
    return ctypes.addressof(ctypes.c_char.from_buffer(buffer))
