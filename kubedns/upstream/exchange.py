"""One question to several servers in turn, within the time that a client waits.

In: a query, servers in the order to ask them.  Out: the best reply there was, or None.  The time
is divided evenly; a server that has not replied in its share is left behind but still listened to.
The next one is asked at once on an ICMP error, SERVFAIL, REFUSED, a lame or malformed reply.
When no server has said anything, a question over UDP is sent once more round, as datagrams get lost.
"""

import asyncio
from collections.abc import Sequence
from itertools import cycle, islice
from typing import Final

from kubedns.dns.message import Verdict
from kubedns.upstream.ask import Ask
from kubedns.upstream.servers import Upstream

BUDGET_SECONDS: Final = 1.9
"""All of it: the contract gives the client 2 s."""

_FEWEST_SHARES: Final = 3
_MOST_OPEN: Final = 3
"""Sockets that one question holds; with more servers than these the earliest is no longer heard."""


class Exchange:
    """A question under way at one or more servers."""

    def __init__(self, query: bytes, end: int, *, tcp: bool, spent: float = 0.0) -> None:
        """Take a query whose question ends at `end`; it goes over UDP unless `tcp` (RFC 5625 4.4.1).

        `spent` are seconds that the client has waited already.
        """
        self._budget = BUDGET_SECONDS - spent
        self._query = query
        self._end = end
        self._tcp = tcp
        self._asks: dict[Upstream, Ask] = {}
        self._reports: asyncio.Queue[Ask] = asyncio.Queue()
        self._unwelcome: bytes | None = None
        self.by: Upstream | None = None
        """Whose reply `run` returned."""

    async def run(self, order: Sequence[Upstream]) -> bytes | None:
        """Return the first reply that answers, else the last refusal, else None.

        The reply bears a random ID.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._budget
        shares = len(order) if self._tcp or not order else max(len(order), _FEWEST_SHARES)
        try:
            for turn, upstream in enumerate(islice(cycle(order), shares)):
                if turn >= len(order) and self._unwelcome is not None:
                    break
                if (ask := self._send(upstream)) is None:
                    continue
                share = (deadline - loop.time()) / (shares - turn)
                if (reply := await self._reply_within(share, ask)) is not None:
                    return reply
        finally:
            for ask in self._asks.values():
                ask.close()
        return self._unwelcome

    def _send(self, upstream: Upstream) -> Ask | None:
        """Ask a server, or ask it again; None when it was asked before and nothing can come of it."""
        ask = self._asks.get(upstream)
        if ask is None:
            ask = self._asks[upstream] = Ask(upstream, self._query, self._end, self._reports.put_nowait)
            for earlier in [ask for ask in self._asks.values() if ask.is_open][: 1 - _MOST_OPEN]:
                earlier.close()
        elif not ask.is_open:
            return None
        if self._tcp:
            ask.over_tcp()
        else:
            ask.over_udp()
        return ask

    async def _reply_within(self, share: float, current: Ask) -> bytes | None:
        """Return a reply that answers; None when the current server is of no help."""
        try:
            async with asyncio.timeout(share):
                while True:
                    ask = await self._reports.get()
                    if (reply := self._judge(ask)) is not None or ask is current:
                        return reply
        except TimeoutError:
            if current.truncated is None:
                now = asyncio.get_running_loop().time()
                current.upstream.traffic.failures["timeout"] += 1
                current.upstream.failed(f"no reply within {share:.2f} s", now)
            return current.truncated

    def _judge(self, ask: Ask) -> bytes | None:
        if ask.verdict is None:
            if (fault := ask.fault) is not None:
                ask.upstream.failed(fault, asyncio.get_running_loop().time())
            return None
        ask.upstream.answered()
        self.by = ask.upstream
        if ask.verdict in {Verdict.ANSWER, Verdict.TRUNCATED}:
            return ask.reply
        if ask.verdict is Verdict.UNWELCOME:
            self._unwelcome = ask.reply
        return None
