"""The DNS server over TCP: its listeners and the limits that all connections share.

In: connections.  Out: their messages handed to a responder, its replies sent back.  Source: RFC 7766.
Connections take turns: in one turn of the event loop messages are answered for a bounded time,
however many connections there are, so that UDP and the rest of the process get their share.
A connection is idle from its last whole message or reply on; octets of an unfinished message do
not count, so sending them slowly gains nothing.  At the limit the longest idle one makes room.
"""

import asyncio
import logging
from collections import OrderedDict, deque
from collections.abc import Collection
from time import perf_counter
from typing import Final

from kubedns.shared.files import share_of_open_files
from kubedns.shared.listeners import BACKLOG, PortBusyError, tcp_listeners
from kubedns.shared.reply import Observer, Responder
from kubedns.transport.tcp_connection import TcpConnection

_MESSAGES_PER_TURN: Final = 32
_LONGEST_TURN: Final = 0.001
"""Seconds of one turn, as over UDP; the connections that wait share them evenly."""
_MESSAGES_PER_CONNECTION: Final = 8
_READ_OCTETS: Final = 16 * 1024
_MOST_HEAVY: Final = 100
"""Connections that may hold a large unfinished message or many unread replies, up to 0.3 MiB each."""

_ACCEPTS_PER_TURN: Final = 16
_SWEEPS_PER_TIMEOUT: Final = 5
_MOST_CONNECTIONS: Final = 1000
_FILES_PER_CONNECTION: Final = 4
"""Open files that the process may have for each connection: the others are for everything else."""
_log = logging.getLogger(__name__)


class TcpServer:
    """Answers questions over TCP.

    `responder` and `most_in_flight` are those given to the constructor; `observer` is told of each
    message and its reply, and may change at any time.
    """

    def __init__(
        self,
        responder: Responder,
        *,
        idle_timeout: float = 10.0,
        most_connections: int | None = None,
        most_in_flight: int = 100,
    ) -> None:
        """Prepare; nothing is opened yet.

        `idle_timeout` is in seconds, and also the patience with a client that does not read its
        replies; `most_connections` None means 1,000 or what the limit of open files allows;
        `most_in_flight` replies of one connection may be under way.
        """
        self.responder = responder
        self.most_in_flight = most_in_flight
        self.observer: Observer | None = None
        self._idle_timeout = idle_timeout
        self._most_connections = most_connections or share_of_open_files(
            _MOST_CONNECTIONS, _FILES_PER_CONNECTION
        )
        self._is_full = False
        self._connections: OrderedDict[TcpConnection, float] = OrderedDict()
        self._heavy: dict[TcpConnection, float] = {}
        self._queue: deque[TcpConnection] = deque()
        self._queued: set[TcpConnection] = set()
        self._turn_is_due = False
        self._buffer = memoryview(bytearray(_READ_OCTETS))
        self._servers: list[asyncio.Server] = []
        self._sweeper: asyncio.TimerHandle | None = None

    @property
    def connections(self) -> Collection[TcpConnection]:
        """The connections that are open."""
        return self._connections.keys()

    async def start(self, host: str, port: int) -> int:
        """Listen, and return the port, which is a free one where 0 was asked for.

        `host` is an IP address; `::` stands for all addresses of both families.  Raises
        PortBusyError when the port is taken, and OSError with a text for a person.
        """
        where = f"{f'[{host}]' if ':' in host else host}:{port}"
        try:
            listeners = tcp_listeners(host, port, f"{where} for DNS over TCP")
        except PortBusyError:
            raise
        except OSError as error:
            raise OSError(error.errno, f"cannot listen on {where} over TCP: {error.strerror}") from error
        self._loop = asyncio.get_running_loop()
        for listener in listeners:
            # asyncio takes the backlog also as the number of connections to accept in one turn.
            server = await self._loop.create_server(
                lambda: TcpConnection(self), sock=listener, backlog=_ACCEPTS_PER_TURN
            )
            listener.listen(BACKLOG)
            self._servers.append(server)
        return int(listeners[0].getsockname()[1])

    async def stop(self) -> None:
        """Close listeners and connections; replies under way are not sent."""
        for server in self._servers:
            server.close()
        for connection in self._connections:
            connection.transport.abort()
        if self._sweeper is not None:
            self._sweeper.cancel()
        await asyncio.sleep(0)  # each connection_lost
        for server in self._servers:
            await server.wait_closed()
        self._servers.clear()

    def read_buffer(self) -> memoryview:
        """Return the one buffer; a connection takes its octets before another is read."""
        return self._buffer

    def opened(self, connection: TcpConnection) -> None:
        """Admit a connection, in place of the longest idle one where there are too many."""
        if len(self._connections) >= self._most_connections:
            self._warn_full()
            idle = next((other for other in self._connections if other.is_idle), None)
            if idle is None:
                connection.transport.abort()
                return
            self._drop(idle)
        self._connections[connection] = self._loop.time()
        if self._sweeper is None:
            self._schedule_sweep()

    def closed(self, connection: TcpConnection) -> None:
        """Forget a connection."""
        self._connections.pop(connection, None)
        self._heavy.pop(connection, None)
        self._is_full = self._is_full and len(self._connections) > self._most_connections // 2

    def active(self, connection: TcpConnection) -> None:
        """Begin a connection's idle time anew."""
        if connection in self._connections:
            self._connections[connection] = self._loop.time()
            self._connections.move_to_end(connection)

    def has_message(self, connection: TcpConnection) -> None:
        """Put a connection in the queue for its turn."""
        if connection not in self._queued:
            self._queued.add(connection)
            self._queue.append(connection)
            self._schedule_turn()

    def weighs(self, connection: TcpConnection, *, heavy: bool) -> None:
        """Keep account of connections that hold much memory; of too many the earliest is cut."""
        if not heavy:
            self._heavy.pop(connection, None)
            return
        self._heavy[connection] = self._loop.time()
        if len(self._heavy) > _MOST_HEAVY:
            self._drop(next(iter(self._heavy)))

    def _schedule_turn(self) -> None:
        if self._queue and not self._turn_is_due:
            self._turn_is_due = True
            self._loop.call_soon(self._turn)

    def _turn(self) -> None:
        self._turn_is_due = False
        left, now = _MESSAGES_PER_TURN, perf_counter()
        until = now + _LONGEST_TURN
        try:
            while self._queue and left > 0 and now < until:
                connection = self._queue.popleft()
                self._queued.discard(connection)
                share = (until - now) / (len(self._queue) + 1)
                left -= connection.answer(min(left, _MESSAGES_PER_CONNECTION), now + share)
                now = perf_counter()
        finally:
            self._schedule_turn()

    def _schedule_sweep(self) -> None:
        self._sweeper = self._loop.call_later(self._idle_timeout / _SWEEPS_PER_TIMEOUT, self._sweep)

    def _sweep(self) -> None:
        """Close what was idle for the timeout, cut what was heavy for as long."""
        expired = self._loop.time() - self._idle_timeout
        for connection in [heavy for heavy, since in self._heavy.items() if since <= expired]:
            self._drop(connection)
        while self._connections:
            connection, since = next(iter(self._connections.items()))
            if since > expired:
                break
            if not connection.is_idle:
                self.active(connection)
            elif connection.transport.get_write_buffer_size():
                self._drop(connection)
            else:
                del self._connections[connection]
                connection.transport.close()
        self._sweeper = None
        if self._connections:
            self._schedule_sweep()

    def _drop(self, connection: TcpConnection) -> None:
        self._connections.pop(connection, None)
        self._heavy.pop(connection, None)
        connection.transport.abort()

    def _warn_full(self) -> None:
        if not self._is_full:
            _log.warning(
                "%d connections over TCP are open, the most there may be; idle ones are closed early",
                self._most_connections,
            )
        self._is_full = True
