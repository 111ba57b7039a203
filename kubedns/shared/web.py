"""One HTTP listener on every address of both families, used by all three programs."""

import asyncio
import socket
from collections.abc import Callable
from typing import Final

from aiohttp import web

from kubedns.shared.listeners import BACKLOG, tcp_listeners

MOST_CONNECTIONS: Final = 512
"""Open connections of one program; past it the oldest gives way, so that silent clients cost little."""
_SILENCE_MS: Final = 10_000
"""Milliseconds that a client may take nothing of what is sent; connections inherit it from their listener."""
_ACCEPTED_AT_ONCE: Final = 2
"""Connections taken from the backlog before everything else has its turn."""


async def serve(
    app: web.Application, port: int, purpose: str, address: str = ""
) -> tuple[web.AppRunner, int]:
    """Serve an application on `port` of an address, else of all; return its runner and the actual port.

    The caller ends it with `await runner.cleanup()`.  A handler whose client leaves is cancelled.
    Raises PortBusyError when the port is taken, and OSError.
    """
    sockets = tcp_listeners(address or "::", port, f"port {port} for {purpose}")
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
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _SILENCE_MS)
        servers.append(await loop.create_server(factory, sock=listener, backlog=_ACCEPTED_AT_ONCE))
        listener.listen(BACKLOG)  # asyncio has made it as short as what is taken at once
    return runner, sockets[0].getsockname()[1]


def _bounded(server: web.Server) -> Callable[[], asyncio.Protocol]:
    def accept() -> asyncio.Protocol:
        if len(server.connections) >= MOST_CONNECTIONS:
            still_open = [connection for connection in server.connections if connection.transport is not None]
            if len(still_open) >= MOST_CONNECTIONS:
                still_open[0].force_close()
        return server()

    return accept
