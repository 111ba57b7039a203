"""Many datagrams in one system call: recvmmsg(2) and sendmmsg(2), which Python's sockets do not have.

In: the descriptor of a UDP socket, datagrams as octets.  Out: the same.  The buffers and the structures
that the two calls want are laid out once; after that a datagram costs one copy in and one copy out, and
an address stays in the form of the kernel (ip(7), ipv6(7)) until somebody wants to read it.
"""

import ctypes
import errno
import os
import socket
import sys
from typing import Any, Final

SIZE: Final = 32
"""Datagrams that are taken or sent at a time."""
ADDRESS_SLOT: Final = 28
"""Octets kept for an address: a sockaddr_in6."""
_ADDRESS_OCTETS: Final = {socket.AF_INET: 16, socket.AF_INET6: ADDRESS_SLOT}
"""Octets of a sockaddr_in and of a sockaddr_in6."""


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
FIRST_RECEIVED: Final = ctypes.sizeof(_MsgHdr) // ctypes.sizeof(ctypes.c_uint)
NEXT_RECEIVED: Final = _HEADER_OCTETS // ctypes.sizeof(ctypes.c_uint)
FIRST_SENT: Final = 1
NEXT_SENT: Final = ctypes.sizeof(_IoVec) // ctypes.sizeof(ctypes.c_size_t)

_libc = ctypes.CDLL(None, use_errno=True)
_recvmmsg: Any = getattr(_libc, "recvmmsg", None)
_sendmmsg: Any = getattr(_libc, "sendmmsg", None)


def is_available(listener: socket.socket) -> bool:
    """Whether this system has the two calls and lets a process use them."""
    if _recvmmsg is None or _sendmmsg is None:
        return False
    nothing = (listener.fileno(), None, 0, socket.MSG_DONTWAIT)
    return bool(_recvmmsg(*nothing, None) >= 0 and _sendmmsg(*nothing) >= 0)


class Inbox:
    """Room for SIZE datagrams of at most `slot` octets; a longer one is cut.

    `received` holds the length of number `n` at FIRST_RECEIVED + n * NEXT_RECEIVED, `octets` its octets
    at n * slot, `addresses` its sender at n * ADDRESS_SLOT, where the family of the socket was given.
    """

    def __init__(self, slot: int, family: socket.AddressFamily | None = None) -> None:
        buffer = bytearray(SIZE * slot)
        self.octets = memoryview(buffer)
        self.addresses = bytearray(SIZE * ADDRESS_SLOT)
        self._slot = slot
        self._vectors, self._headers = _structures(buffer, slot, self.addresses, family)
        self._at = ctypes.byref(self._headers)
        self.received = memoryview(self._headers).cast("B").cast("I")

    def receive(self, descriptor: int) -> int:
        """Take what has come to a socket and return how many datagrams that were.

        Raises OSError, on a connected socket also for what an ICMP message said.
        """
        count: int = _recvmmsg(descriptor, self._at, SIZE, socket.MSG_DONTWAIT, None)
        if count < 0:
            problem = ctypes.get_errno()
            if problem not in (errno.EAGAIN, errno.EINTR):
                raise OSError(problem, os.strerror(problem))
            count = 0
        return count

    def message(self, index: int) -> bytes:
        """Return one of the datagrams that were taken last."""
        start = index * self._slot
        return self.octets[start : start + self.received[FIRST_RECEIVED + index * NEXT_RECEIVED]].tobytes()

    def address(self, index: int) -> bytes:
        """Return where one of them came from."""
        start = index * ADDRESS_SLOT
        return bytes(self.addresses[start : start + ADDRESS_SLOT])


class Outbox:
    """Room for SIZE datagrams of at most `slot` octets that are sent together.

    With a `family` each goes to its own address, else to where the socket is connected; `addresses` are
    those of an Inbox whose senders get the replies in the same places.  `octets`, `sent` and the
    constants FIRST_SENT and NEXT_SENT are for whoever fills the places himself.
    """

    def __init__(
        self,
        slot: int,
        family: socket.AddressFamily | None = None,
        addresses: bytearray | None = None,
    ) -> None:
        self.slot = slot
        self.octets = bytearray(SIZE * slot)
        self.count = 0
        self._addresses = bytearray(SIZE * ADDRESS_SLOT) if addresses is None else addresses
        vectors, self._headers = _structures(self.octets, slot, self._addresses, family)
        self._at = [ctypes.byref(self._headers, _HEADER_OCTETS * index) for index in range(SIZE)]
        self.sent = memoryview(vectors).cast("B").cast("L")

    def add(self, message: bytes, address: bytes = b"") -> bool:
        """Put a datagram into the next place; return whether that was the last one."""
        index, length = self.count, len(message)
        start = index * self.slot
        self.octets[start : start + length] = message
        self.sent[FIRST_SENT + index * NEXT_SENT] = length
        if address:
            start = index * ADDRESS_SLOT
            self._addresses[start : start + ADDRESS_SLOT] = address
        self.count = index + 1
        return self.count == SIZE

    def flush(self, descriptor: int) -> tuple[int, int]:
        """Send all that was added; return how many could not be sent, and the errno of the last of these."""
        failed = self.send(descriptor, 0, self.count)
        self.count = 0
        return failed

    def send(self, descriptor: int, first: int, end: int) -> tuple[int, int]:
        """Send what is in some places; one that fails does not keep back the others."""
        failures = problem = 0
        while first < end:
            sent = _sendmmsg(descriptor, self._at[first], end - first, socket.MSG_DONTWAIT)
            if sent <= 0:
                failures, problem = failures + 1, ctypes.get_errno()
            first += max(sent, 1)
        return failures, problem


def host_and_port(packed: bytes, family: socket.AddressFamily) -> tuple[str, int]:
    """Return IP address and port of an address."""
    port = packed[2] << 8 | packed[3]
    if family is socket.AF_INET:
        return socket.inet_ntoa(packed[4:8]), port
    return socket.inet_ntop(socket.AF_INET6, packed[8:24]), port


def address_of(packed: bytes, family: socket.AddressFamily) -> tuple[Any, ...]:
    """Return an address as Python's sockets have it."""
    port = int.from_bytes(packed[2:4])
    if family == socket.AF_INET:
        return socket.inet_ntoa(packed[4:8]), port
    flow, scope = int.from_bytes(packed[4:8]), int.from_bytes(packed[24:28], sys.byteorder)
    return socket.inet_ntop(socket.AF_INET6, packed[8:24]), port, flow, scope


def _structures(
    buffer: bytearray, slot: int, addresses: bytearray, family: socket.AddressFamily | None
) -> tuple[Any, Any]:
    """Return the vectors and the message headers that lead to the slots of a buffer."""
    start, names = _place_of(buffer), _place_of(addresses)
    vectors = (_IoVec * SIZE)(*(_IoVec(start + slot * index, slot) for index in range(SIZE)))
    headers = (_MMsgHdr * SIZE)()
    for index in range(SIZE):
        header = headers[index].header
        if family is not None:
            header.name = names + ADDRESS_SLOT * index
            header.name_octets = _ADDRESS_OCTETS[family]
        header.vectors = ctypes.addressof(vectors[index])
        header.vector_count = 1
    return vectors, headers


def _place_of(buffer: bytearray) -> int:
    """Return where a buffer is in memory; it cannot be resized from then on."""
    return ctypes.addressof(ctypes.c_char.from_buffer(buffer))
