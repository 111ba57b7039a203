"""TCP connections to an upstream that are open and wait for their next question.

Opening a connection costs a round trip, and closing one keeps a local port for a minute, so that
few hundred a second could be opened to one server.  Invariant: a connection here has no question
under way, and is closed when it has waited for long.  Source: RFC 7766 6.2.1 and 6.2.3.
"""

import asyncio
import socket
from collections import deque
from typing import Final

MOST_IDLE: Final = 8
IDLE_SECONDS: Final = 5.0
"""Less than the time after which common servers close them."""


class IdleStreams:
    """The idle connections to one server."""

    def __init__(self) -> None:
        self._idle: deque[tuple[socket.socket, float]] = deque()
        self._expiry: asyncio.TimerHandle | None = None

    def take(self) -> socket.socket | None:
        """Return a connection that the server has not closed so far, None when there is none."""
        while self._idle:
            stream, _ = self._idle.pop()
            if _is_quiet(stream):
                return stream
            stream.close()
        return None

    def give(self, stream: socket.socket) -> None:
        """Keep a connection whose question was answered; the one that waited longest may be closed."""
        loop = asyncio.get_running_loop()
        self._idle.append((stream, loop.time() + IDLE_SECONDS))
        if len(self._idle) > MOST_IDLE:
            self._idle.popleft()[0].close()
        if self._expiry is None:
            self._expiry = loop.call_at(self._idle[0][1], self._expire, loop)

    def close(self) -> None:
        """Close all of them."""
        while self._idle:
            self._idle.pop()[0].close()
        if self._expiry is not None:
            self._expiry.cancel()
            self._expiry = None

    def _expire(self, loop: asyncio.AbstractEventLoop) -> None:
        while self._idle and self._idle[0][1] <= loop.time():
            self._idle.popleft()[0].close()
        self._expiry = loop.call_at(self._idle[0][1], self._expire, loop) if self._idle else None


def _is_quiet(stream: socket.socket) -> bool:
    """Whether the server has neither closed the connection nor sent what nobody asked for."""
    try:
        stream.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False
