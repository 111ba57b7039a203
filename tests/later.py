"""Replies that come later, in tests: made from coroutines, and waited for."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from kubedns.shared.reply import Awaited, Reply, Responder


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


async def settled(reply: Reply, client: tuple[str, int] = ("192.0.2.200", 40000)) -> bytes | None:
    """Return a reply, waited for where it comes later."""
    if reply is None or isinstance(reply, bytes):
        return reply
    box = Mailbox(client)
    reply.begin(box, None)
    return await box.reply
