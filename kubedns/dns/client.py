"""One DNS exchange of a client: a question over UDP, over TCP when the reply is truncated.

In: a query as octets and a server's address.  Out: the octets of the reply, or an exception
that says why there is none.  Every exchange has its own random ID and its own source port; the socket is
connected, so that only the server's datagrams arrive and its ICMP refusals are seen.  What is
not the reply to this question is ignored until the deadline (RFC 5452 4 and 9.1).
"""

import asyncio
import os
import secrets
import struct

from kubedns.dns.message import is_reply_to

Server = tuple[str, int]
"""IP address and port."""

_TC = 0x02


class DNSExchangeError(Exception):
    """No usable reply; the text names the server and the reason."""

    def __init__(self, server: Server, reason: str) -> None:
        super().__init__(f"{server_text(server)}: {reason}")
        self.server = server
        self.reason = reason


class DNSTimeout(DNSExchangeError):  # noqa: N818 - dnspython's and everybody's word
    """The deadline passed before a reply came."""


def server_text(server: Server) -> str:
    """Return `ip:port`, with an IPv6 address in brackets."""
    host, port = server
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


async def exchange(query: bytes, server: Server, timeout: float) -> bytes:  # noqa: ASYNC109 - one deadline over UDP and TCP
    """Ask `server` (IP address, port) and return its reply, whatever its RCODE.

    `query` is a message with one question; the reply bears its ID, not the one that was on the
    wire.  `timeout` is in seconds and holds for all of it, the repetition over TCP included.  A
    reply that is truncated even over TCP is returned as it came.  Raises DNSTimeout, and
    DNSExchangeError for a refusal or an unreachable server.
    """
    wire = secrets.token_bytes(2) + query[2:]
    try:
        async with asyncio.timeout(timeout):
            reply = await _over_udp(wire, server)
            if reply[2] & _TC:
                reply = await _over_tcp(wire, server)
    except TimeoutError as error:
        raise DNSTimeout(server, f"no reply within {timeout:g} s") from error
    return query[:2] + reply[2:]


async def _over_udp(wire: bytes, server: Server) -> bytes:
    loop = asyncio.get_running_loop()
    reply: asyncio.Future[bytes] = loop.create_future()
    try:
        transport, _ = await loop.create_datagram_endpoint(
            lambda: _UdpClient(wire, reply), remote_addr=server
        )
        try:
            transport.sendto(wire)
            return await reply
        finally:
            transport.close()
    except OSError as error:
        raise DNSExchangeError(server, _reason(error)) from error


class _UdpClient(asyncio.DatagramProtocol):
    """Completes the future with the first reply to the question, or with the socket's error."""

    def __init__(self, wire: bytes, reply: "asyncio.Future[bytes]") -> None:
        self._wire = wire
        self._reply = reply

    def datagram_received(self, data: bytes, addr: object) -> None:
        if not self._reply.done() and is_reply_to(data, self._wire):
            self._reply.set_result(data)

    def error_received(self, exc: Exception) -> None:
        if not self._reply.done():
            self._reply.set_exception(exc)


async def _over_tcp(wire: bytes, server: Server) -> bytes:
    try:
        reader, writer = await asyncio.open_connection(*server)
        try:
            writer.write(struct.pack("!H", len(wire)) + wire)
            (length,) = struct.unpack("!H", await reader.readexactly(2))
            reply_wire = await reader.readexactly(length)
        finally:
            writer.close()
    except OSError as error:
        raise DNSExchangeError(server, f"{_reason(error)} (over TCP, after a truncated reply)") from error
    except asyncio.IncompleteReadError as error:
        raise DNSExchangeError(server, "connection closed before the reply (over TCP)") from error
    if not is_reply_to(reply_wire, wire):
        raise DNSExchangeError(server, "reply to another question (over TCP)")
    return reply_wire


def _reason(error: OSError) -> str:
    return os.strerror(error.errno).lower() if error.errno else str(error)
