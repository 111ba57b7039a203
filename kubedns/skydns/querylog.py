"""A line for every query, at log verbosity 3 and above only: what was asked, what came of it."""

import logging
from collections.abc import Awaitable, Callable
from time import perf_counter

from kubedns.dns import numbers
from kubedns.dns.names import to_text
from kubedns.dns.query import Query, parse_query

_log = logging.getLogger(__name__)
Reply = bytes | Awaitable[bytes | None] | None


def logged(respond: Callable[[bytes, bool], Reply]) -> Callable[[bytes, bool], Reply]:
    """Return a responder that answers as `respond` does, and logs."""

    def respond_logged(message: bytes, tcp: bool) -> Reply:
        begun = perf_counter()
        reply = respond(message, tcp)
        if isinstance(reply, bytes) or reply is None:
            _line(message, tcp, reply, perf_counter() - begun)
            return reply
        return _later(message, tcp, reply, begun)

    return respond_logged


async def _later(message: bytes, tcp: bool, reply: Awaitable[bytes | None], begun: float) -> bytes | None:
    octets = await reply
    _line(message, tcp, octets, perf_counter() - begun)
    return octets


def _line(message: bytes, tcp: bool, reply: bytes | None, seconds: float) -> None:
    query = parse_query(message)
    asked = (
        f"{to_text(query.labels)} class {query.qclass} type {query.qtype}"
        if isinstance(query, Query)
        else "no question"
    )
    said = f"rcode {reply[3] & 0xF}, {len(reply)} octets" if reply is not None else "nothing"
    cut = ", truncated" if reply is not None and reply[2] << 8 & numbers.TC else ""
    _log.debug("%s over %s: %s%s in %.3f ms", asked, "TCP" if tcp else "UDP", said, cut, seconds * 1000)
