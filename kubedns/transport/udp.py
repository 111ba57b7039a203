"""The DNS server over UDP: raw sockets, drained for a bounded time.

In: datagrams.  Out: each handed to a responder, its reply sent back to where it came from.
Under load one wake-up of the event loop serves many datagrams, and after a millisecond everything
else on the loop has its turn.

The reply must leave from the address that was asked.  Each interface's own address gets a socket
of its own, which settles that for nothing; what reaches the host at any other address comes in at
the wildcard socket, where the kernel is asked which one it was (RFC 3542, ip(7) IP_PKTINFO).
"""

import asyncio
import errno
import fcntl
import logging
import socket
import struct
from collections.abc import Callable
from time import perf_counter
from typing import Any, Final

from kubedns.shared.datagrams import is_available
from kubedns.shared.listeners import PortBusyError
from kubedns.shared.reply import Observer, Responder
from kubedns.transport.batch import LARGEST_QUERY, Batch
from kubedns.transport.observed import respond_observed

_log = logging.getLogger(__name__)
_LONGEST_WAKE_UP: Final = 0.001
"""Seconds after which everything else on the loop has its turn: some hundred plain questions."""
_RECEIVE_BUFFER: Final = 4 << 20
_SO_RCVBUFFORCE: Final = 33
_IP_PKTINFO: Final = getattr(socket, "IP_PKTINFO", 8)
_SIOCGIFADDR: Final = 0x8915
_ANCILLARY_SIZE: Final = 64
_MOST_BINDS: Final = 16


class UdpServer:
    """Answers datagrams.

    `observe` is told the seconds that each wake-up took, and how many replies it gave at once.
    """

    def __init__(self, responder: Responder, observe: Callable[[float, int], None]) -> None:
        self._respond = responder
        self._observe = observe
        self._sockets: list[socket.socket] = []
        self._batches: list[Batch] = []
        self._wildcards: list[_Wildcard] = []
        self._observer: Observer | None = None
        self._resuming: set[Batch] = set()

    @property
    def dropped(self) -> int:
        """Replies that could not be sent."""
        return sum(batch.dropped for batch in self._batches) + sum(sink.dropped for sink in self._wildcards)

    @property
    def observer(self) -> Observer | None:
        """Who is told of each message and its reply, None for nobody; may change at any time."""
        return self._observer

    @observer.setter
    def observer(self, observer: Observer | None) -> None:
        self._observer = observer
        for batch in self._batches:
            batch.observer = observer

    def start(self, host: str, port: int) -> int:
        """Listen, and return the port, which is a free one where 0 was asked for.

        `host` is an IP address; `0.0.0.0` stands for all IPv4 addresses, `::` for all of both
        families.  Raises PortBusyError when the port is taken, and OSError.
        """
        loop = asyncio.get_running_loop()
        families = [socket.AF_INET6, socket.AF_INET] if host == "::" else [_family(host)]
        for family in families:
            address = _wildcard(family) if host in {"::", "0.0.0.0"} else host
            try:
                bound = _bind_free(family, address, port)
            except OSError as error:
                if error.errno == errno.EAFNOSUPPORT and len(families) > 1:
                    continue  # a host without IPv6
                self.stop()
                raise
            port = bound.getsockname()[1]
            if address != _wildcard(family):
                self._listen(loop, bound)
                continue
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._ask_for_destination(bound, family)
            self._listen(loop, bound, wildcard=True)
            for own in _own_addresses(family):
                self._listen_beside(loop, family, own, port)
        return port

    def stop(self) -> None:
        """Close the sockets; replies that are waited for are not sent."""
        loop = asyncio.get_running_loop()
        for listener in self._sockets:
            loop.remove_reader(listener)
            listener.close()
        self._sockets.clear()

    def _listen(
        self, loop: asyncio.AbstractEventLoop, listener: socket.socket, *, wildcard: bool = False
    ) -> None:
        listener.setblocking(False)
        _enlarge_buffer(listener)
        self._sockets.append(listener)
        if wildcard or not is_available(listener):
            sink = _Wildcard(listener)
            self._wildcards.append(sink)
            loop.add_reader(listener, self._drain_any, sink)
            return
        batch = Batch(listener, self._respond)
        batch.observer = self._observer
        self._batches.append(batch)
        loop.add_reader(listener, self._drain, batch)

    def _listen_beside(
        self, loop: asyncio.AbstractEventLoop, family: socket.AddressFamily, address: str, port: int
    ) -> None:
        """Listen at one of the host's addresses; without that the wildcard socket serves it."""
        listener = socket.socket(family, socket.SOCK_DGRAM)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((address, port))
        except OSError as error:
            listener.close()
            _log.debug("no socket of its own for %s: %s", address, error)
        else:
            self._listen(loop, listener)

    @staticmethod
    def _ask_for_destination(listener: socket.socket, family: socket.AddressFamily) -> None:
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVPKTINFO, 1)
        else:
            listener.setsockopt(socket.IPPROTO_IP, _IP_PKTINFO, 1)

    def _drain(self, batch: Batch) -> None:
        """Answer what has come to a socket of one address, many datagrams at a time."""
        begun, replies = perf_counter(), 0
        try:
            replies = batch.answer(begun + _LONGEST_WAKE_UP)
        except OSError as error:
            _log.debug("receiving: %s", error)
        self._observe(perf_counter() - begun, replies)
        if not batch.is_empty and batch not in self._resuming:
            self._resuming.add(batch)
            asyncio.get_running_loop().call_soon(self._resume, batch)

    def _resume(self, batch: Batch) -> None:
        self._resuming.discard(batch)
        if batch.listener.fileno() >= 0:
            self._drain(batch)

    def _drain_any(self, sink: "_Wildcard") -> None:
        """Answer what has come to the wildcard socket, from the address that it was sent to."""
        begun, replies = perf_counter(), 0
        until = begun + _LONGEST_WAKE_UP
        try:
            while perf_counter() < until:
                message, ancillary, _, address = sink.listener.recvmsg(LARGEST_QUERY, _ANCILLARY_SIZE)
                peer = address, tuple(_as_source(item) for item in ancillary)
                if self._observer is None:
                    reply = self._respond(message, False)
                else:
                    reply = respond_observed(self._respond, self._observer, message, False, sink, peer)
                if isinstance(reply, bytes):
                    replies += 1
                    sink.deliver(peer, reply)
                elif reply is not None:
                    reply.begin(sink, peer)
        except BlockingIOError:
            pass
        except OSError as error:
            _log.debug("receiving: %s", error)
        self._observe(perf_counter() - begun, replies)


class _Wildcard:
    """A socket without an address of its own, as a sink: a peer comes with the source of its replies.

    `dropped` counts replies that could not be sent.
    """

    def __init__(self, listener: socket.socket) -> None:
        self.listener = listener
        self.dropped = 0

    def deliver(self, peer: Any, reply: bytes | None) -> None:
        if reply is None or self.listener.fileno() < 0:
            return
        address, source = peer
        try:
            self.listener.sendmsg([reply], source, 0, address)
        except OSError:
            self.dropped += 1

    def address(self, peer: Any) -> tuple[str, int]:
        (host, port, *_), _ = peer
        return host, port


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def _wildcard(family: socket.AddressFamily) -> str:
    return "::" if family == socket.AF_INET6 else "0.0.0.0"


def _bind_free(family: socket.AddressFamily, address: str, port: int) -> socket.socket:
    """Bind without sharing the port, so that a second server finds it taken."""
    bound = socket.socket(family, socket.SOCK_DGRAM)
    try:
        if family == socket.AF_INET6:
            bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        bound.bind((address, port))
    except OSError as error:
        bound.close()
        if error.errno == errno.EADDRINUSE:
            raise PortBusyError(f"UDP port {port} for DNS is in use by another process") from error
        raise
    return bound


def _own_addresses(family: socket.AddressFamily) -> list[str]:
    """Return the loopback address and, for IPv4, the first address of each interface."""
    if family == socket.AF_INET6:
        return ["::1"]
    addresses = ["127.0.0.1"]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        for _, name in socket.if_nameindex():
            request = struct.pack("16s240x", name.encode()[:15])
            try:
                found = fcntl.ioctl(probe, _SIOCGIFADDR, request)
            except OSError:
                continue  # an interface without an IPv4 address
            addresses.append(socket.inet_ntoa(found[20:24]))
    return list(dict.fromkeys(addresses))[:_MOST_BINDS]


def _enlarge_buffer(listener: socket.socket) -> None:
    """Ask for room for a burst; the kernel's limit holds unless the process may pass it."""
    for option in (_SO_RCVBUFFORCE, socket.SO_RCVBUF):
        try:
            listener.setsockopt(socket.SOL_SOCKET, option, _RECEIVE_BUFFER)
        except PermissionError:
            continue
        return


def _as_source(item: tuple[int, int, bytes]) -> tuple[int, int, bytes]:
    """Turn what the kernel says of a datagram's destination into the source of its reply."""
    level, kind, data = item
    if level == socket.IPPROTO_IP and kind == _IP_PKTINFO:
        # in_pktinfo: interface, then the local address, which is the one to send from.
        return level, kind, struct.pack("=I4s4s", 0, data[4:8], bytes(4))
    return level, kind, data
