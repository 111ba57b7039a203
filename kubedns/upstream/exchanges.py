"""Questions in flight as tasks: each at several servers in turn, or waiting for the cache server.

In: a question as it goes out, the servers for its name.  Out: the reply and whose it is, or none in time.
Questions that are equal as they go out, over the same transport, share one exchange.  What is in flight, and
who waits for it, is bounded; `overloads` counts the questions beyond.
"""

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, Final

from kubedns.shared.files import share_of_open_files
from kubedns.shared.tasks import cancel, spawn
from kubedns.upstream.cacheserver import CacheServer
from kubedns.upstream.exchange import BUDGET_SECONDS, Exchange
from kubedns.upstream.servers import Upstream, in_order

MOST_IN_FLIGHT: Final = 1000
"""Questions that may wait for an upstream, unless the process may open few files."""

Found = tuple[bytes | None, str]
"""A reply, None without one, and the server that it came from."""
NOTHING: Final[Found] = (None, "")
_FILES_PER_QUESTION: Final = 4
_WAITERS_PER_QUESTION: Final = 4
"""Clients that may wait for each place, as many can wait for the same answer."""
_Key = tuple[bool, bool, bytes]
"""Over TCP, through the cache server, and the message as it goes out without its ID."""


class Exchanges:
    """All questions in flight at upstreams but those of the relay; `most` may be."""

    def __init__(self, most: int | None = None) -> None:
        self.most = most or share_of_open_files(MOST_IN_FLIGHT, _FILES_PER_QUESTION)
        self.overloads = 0
        self._in_flight: dict[_Key, asyncio.Task[Found]] = {}
        self._exchanges: set[asyncio.Task[Found]] = set()
        self._waiting = 0

    def share_no_more(self) -> None:
        """Let new questions join none of those in flight, which stay with the servers that they went to."""
        self._in_flight = {}

    async def close(self) -> None:
        """End all; whoever waits for one is cancelled."""
        await cancel(*self._exchanges)

    async def ask(
        self,
        query: bytes,
        end: int,
        upstreams: Sequence[Upstream],
        *,
        tcp: bool,
        cache: CacheServer | None = None,
    ) -> Found:
        """Return the first reply that answers, of the cache server while it is up, else of servers in order."""
        if not upstreams and cache is None:
            return NOTHING
        key = (tcp, cache is not None, query[2:])
        task = self._in_flight.get(key)
        if task is None:
            first = None if cache is None else cache.upstream
            order = in_order(upstreams, asyncio.get_running_loop().time())
            if self._is_overloaded(first or order[0]):
                self.overloads += 1
                return NOTHING
            task = self._begin(key, first or order[0], self._run(query, end, order, tcp=tcp, cache=cache))
        elif self._waiting >= self.most * _WAITERS_PER_QUESTION:
            self.overloads += 1
            return NOTHING
        self._waiting += 1
        try:
            return await asyncio.shield(task)
        finally:
            self._waiting -= 1

    async def _run(
        self, query: bytes, end: int, order: list[Upstream], *, tcp: bool, cache: CacheServer | None
    ) -> Found:
        """Ask the cache server while it is up, else the servers in order."""
        loop = asyncio.get_running_loop()
        begun = loop.time()
        if cache is not None:
            try:
                async with asyncio.timeout(BUDGET_SECONDS):
                    said = await cache.ask(query, end, tcp=tcp)
            except TimeoutError:
                return NOTHING
            if said is not None:
                return said, str(cache.upstream.server)
        exchange = Exchange(query, end, tcp=tcp, spent=loop.time() - begun)
        said = await exchange.run(order)
        return said, "" if exchange.by is None else str(exchange.by.server)

    def _is_overloaded(self, first: Upstream) -> bool:
        """Whether another question to this server first would take the place of those to others.

        One that answers may hold three quarters of all places, one that does not a quarter.
        """
        share = self.most // 4 * (1 if first.is_failing else 3)
        return first.under_way >= max(1, share) or len(self._exchanges) >= self.most

    def _begin(self, key: _Key, first: Upstream, exchange: Coroutine[Any, Any, Found]) -> asyncio.Task[Found]:
        first.under_way += 1
        task = spawn(exchange, name="upstream exchange")
        self._in_flight[key] = task
        self._exchanges.add(task)

        def ended(task: asyncio.Task[Found]) -> None:
            first.under_way -= 1
            self._exchanges.discard(task)
            if self._in_flight.get(key) is task:
                del self._in_flight[key]

        task.add_done_callback(ended)
        return task
