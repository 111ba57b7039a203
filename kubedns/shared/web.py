"""One HTTP listener on every address of both families, used by all three programs."""

import asyncio
import errno
import socket
from collections.abc import Callable
from typing import Final

from aiohttp import web

MOST_CONNECTIONS: Final = 512
"""Open connections of one program; past it the oldest gives way, so that silent clients cost little."""
_SILENCE_MS: Final = 10_000
"""Milliseconds that a client may take nothing of what is sent; connections inherit it from their listener."""
_BACKLOG: Final = 512
_ACCEPTED_AT_ONCE: Final = 2
"""Connections taken from the backlog before everything else has its turn."""


class PortBusyError(OSError):
    """The port of a listener is taken; the text names it and what it was for."""


def listening_sockets(port: int, purpose: str, address: str = "") -> list[socket.socket]:
    """Return listening TCP sockets on `0.0.0.0` and, where the host has IPv6, `[::]`; or on one address.

    With port 0 both get the same free port.  Raises PortBusyError when the port is taken,
    and OSError for any other reason.
    """
    if address not in {"", "::"}:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        return [_listen(family, address, port, purpose)]
    four = _listen(socket.AF_INET, "0.0.0.0", port, purpose)
    sockets = [four]
    if socket.has_ipv6:
        try:
            sockets.append(_listen(socket.AF_INET6, "::", four.getsockname()[1], purpose))
        except PortBusyError:
            four.close()
            raise
        except OSError:
            return sockets  # a host without IPv6 has nothing to listen on
    return sockets


def _listen(family: socket.AddressFamily, host: str, port: int, purpose: str) -> socket.socket:
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _SILENCE_MS)
        listener.bind((host, port))
        listener.listen(_BACKLOG)
        listener.setblocking(False)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise PortBusyError(f"port {port} for {purpose} is in use by another process") from error
        raise
    return listener


async def serve(
    app: web.Application, port: int, purpose: str, address: str = ""
) -> tuple[web.AppRunner, int]:
    """Serve an application on `port` of an address, else of all; return its runner and the actual port.

    The caller ends it with `await runner.cleanup()`.  A handler whose client leaves is cancelled.
    Raises as `listening_sockets`.
    """
    sockets = listening_sockets(port, purpose, address)
    runner = web.AppRunner(
        app,
        access_log=None,
        handle_signals=False,
        shutdown_timeout=0.1,
        lingering_time=0,
        handler_cancellation=True,
    )
    servers: list[asyncio.Server] = []

    async def stop_listening(_app: web.Application) -> None:
        for server in servers:
            server.close()

    app.on_shutdown.append(stop_listening)
    await runner.setup()
    assert runner.server is not None
    loop = asyncio.get_running_loop()
    factory = _bounded(runner.server)
    for listener in sockets:
        servers.append(await loop.create_server(factory, sock=listener, backlog=_ACCEPTED_AT_ONCE))
        listener.listen(_BACKLOG)  # asyncio has made it as short as what is taken at once
    return runner, sockets[0].getsockname()[1]


def _bounded(server: web.Server) -> Callable[[], asyncio.Protocol]:
    def accept() -> asyncio.Protocol:
        if len(server.connections) >= MOST_CONNECTIONS:
            still_open = [connection for connection in server.connections if connection.transport is not None]
            if len(still_open) >= MOST_CONNECTIONS:
                still_open[0].force_close()
        return server()

    return accept
