"""A responder with somebody who is told of each message and its reply, as a query log is.

In: a responder and an observer.  Out: the same replies.  Nothing here is on the way of a question
while nobody observes.
"""

from time import perf_counter

from kubedns.shared.reply import Answered, Later, Observer, Peer, Reply, Responder, Sink


def respond_observed(
    respond: Responder, observe: Observer, message: bytes, tcp: bool, sink: Sink, peer: Peer
) -> Reply:
    """Answer one message as `respond` does, and tell the observer, of a later reply when it is there."""
    begun = perf_counter()
    reply = respond(message, tcp)
    if isinstance(reply, bytes) or reply is None:
        observe(Answered(sink.address(peer), tcp, message, reply, perf_counter() - begun, ""))
        return reply
    return _Observed(reply, observe, message, tcp, begun)


class _Observed:
    """A later reply on its way through the observer: a `Later`, and the sink of the one inside."""

    def __init__(self, later: Later, observe: Observer, message: bytes, tcp: bool, begun: float) -> None:
        self._later = later
        self._observe = observe
        self._message = message
        self._tcp = tcp
        self._begun = begun

    @property
    def by(self) -> str:
        return self._later.by

    def begin(self, sink: Sink, peer: Peer) -> None:
        self._sink = sink
        self._later.begin(self, peer)

    def deliver(self, peer: Peer, reply: bytes | None) -> None:
        seconds = perf_counter() - self._begun
        self._observe(
            Answered(self._sink.address(peer), self._tcp, self._message, reply, seconds, self._later.by)
        )
        self._sink.deliver(peer, reply)

    def address(self, peer: Peer) -> tuple[str, int]:
        return self._sink.address(peer)
