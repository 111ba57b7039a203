"""Replies that come later, in tests: made from coroutines, and waited for."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from kubedns.dns.query import Query, parse_query
from kubedns.dns.records import Said
from kubedns.shared.reply import Awaited, Reply, Responder
from kubedns.upstream.forward import Forwarder


def awaiting(respond: Callable[[bytes, bool], Any]) -> Responder:
    """Make a responder of a function that may also return a coroutine."""

    def responder(message: bytes, tcp: bool) -> Reply:
        reply = respond(message, tcp)
        return Awaited(reply, name="later") if isinstance(reply, Coroutine) else reply

    return responder


class Mailbox:
    """A sink for one reply; `client` is whom it pretends to serve."""

    def __init__(self, client: tuple[str, int] = ("192.0.2.200", 40000)) -> None:
        self.client = client
        self.reply: asyncio.Future[bytes | None] = asyncio.get_running_loop().create_future()

    def deliver(self, peer: Any, reply: bytes | None) -> None:
        self.reply.set_result(reply)

    def address(self, peer: Any) -> tuple[str, int]:
        return self.client


async def passed_on(query: Query, said: Said, tcp: bool) -> bytes | None:
    """Find nothing in a reply that is ours."""
    return None


async def forwarded(
    forwarder: Forwarder,
    wire: bytes,
    *,
    tcp: bool = False,
    client: tuple[str, int] = ("192.0.2.200", 40000),
) -> bytes:
    """Return the forwarder's reply to a query in wire form."""
    query = parse_query(wire)
    assert isinstance(query, Query)
    reply = await settled(forwarder.forward(query, tcp=tcp, revise=passed_on), client)
    assert reply is not None
    return reply


async def settled(reply: Reply, client: tuple[str, int] = ("192.0.2.200", 40000)) -> bytes | None:
    """Return a reply, waited for where it comes later."""
    if reply is None or isinstance(reply, bytes):
        return reply
    box = Mailbox(client)
    reply.begin(box, None)
    return await box.reply
