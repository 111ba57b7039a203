"""What a responder returns for one message: octets, silence, or a reply that comes later.

The transport hands each message to a responder.  A reply that must be waited for is a `Later`: the
transport tells it where the reply goes, and it delivers there exactly once, whenever it is ready.
Whoever makes a `Later` bounds how many of them are under way; the transport does not.
"""

from collections.abc import Callable, Coroutine
from typing import Any, NamedTuple, Protocol

from kubedns.shared.tasks import spawn

Peer = Any
"""Where a sink sends a reply to; only the sink knows the shape."""


class Sink(Protocol):
    """Where replies go: a socket, or a connection."""

    def deliver(self, peer: Peer, reply: bytes | None) -> None:
        """Send a reply; None ends the question without one.  A peer that is gone is no fault."""

    def address(self, peer: Peer) -> tuple[str, int]:
        """Return IP address and port of a peer."""


class Later(Protocol):
    """A reply that is not there yet."""

    @property
    def by(self) -> str:
        """Address of the server that the reply came from; empty until there is one, or without any."""

    def begin(self, sink: Sink, peer: Peer) -> None:
        """Deliver the reply to a peer when it is there; called once."""


Reply = bytes | Later | None
Responder = Callable[[bytes, bool], Reply]
"""Called with a message and whether it came over TCP; does not raise.

Returns at most 65,535 octets; over UDP no more than the client takes.
"""


class Answered(NamedTuple):
    """One message and what became of it.

    `client` is IP address and port; `by` the server that the reply came from, empty for our own;
    `reply` None for silence.
    """

    client: tuple[str, int]
    tcp: bool
    message: bytes
    reply: bytes | None
    seconds: float
    by: str


Observer = Callable[[Answered], None]
"""Told of each message once its reply is on its way; does not raise."""


class Awaited:
    """A reply that a coroutine works out."""

    by = ""

    def __init__(self, coroutine: Coroutine[Any, Any, bytes | None], *, name: str) -> None:
        self._coroutine = coroutine
        self._name = name

    def begin(self, sink: Sink, peer: Peer) -> None:
        """Start the coroutine; one that fails delivers nothing."""
        _ = spawn(self._run(sink, peer), name=self._name)

    async def _run(self, sink: Sink, peer: Peer) -> None:
        reply = None
        try:
            reply = await self._coroutine
        finally:
            sink.deliver(peer, reply)
