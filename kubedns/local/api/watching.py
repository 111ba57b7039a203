"""The events of one watch, in batches ready to be sent.

In: the parameters of a watch, the store.  Out: chunks of event lines.  The invariant: the
stream shows every change above the version it began at exactly once and in order; a reader
too slow for the history kept gets an ERROR event and the end, never a gap.

All watches read one log; what one has not read yet is only its cursor.

Source: apiserver pkg/storage/cacher; recorded streams.
"""

import asyncio
import random
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final, Literal

from kubedns.local.api import errors
from kubedns.local.api.history import Change, ExpiredError
from kubedns.local.api.kinds import Resource
from kubedns.local.api.listing import parse_version
from kubedns.local.api.selectors import EVERYTHING, Selector
from kubedns.local.api.store import Store
from kubedns.local.api.wire import bookmark_line, error_line, event_line

_BATCH: Final = 256
StreamingLists = Literal["on", "off", "broken"]
"""How the server takes `sendInitialEvents`: as it should; HTTP 422, the feature being off; an
ERROR event with code 500, its etcd being too old."""


@dataclass(frozen=True, slots=True)
class WatchQuery:
    """What is asked for; `timeout` in seconds, 0 for the server's choice of half an hour or more."""

    namespace: str = ""
    selector: Selector = EVERYTHING
    version: str = ""
    bookmarks: bool = False
    timeout: float = 0
    initial_events: bool | None = None


class Watch:
    """One watch; `bookmark_interval` in seconds."""

    def __init__(self, store: Store, resource: Resource, query: WatchQuery, bookmark_interval: float) -> None:
        self._store = store
        self._resource = resource
        self._query = query
        self._interval = bookmark_interval
        self._start = parse_version(query.version)

    async def chunks(self, streaming_lists: StreamingLists = "on") -> AsyncIterator[bytes]:
        """Yield chunks of whole lines until the timeout."""
        if self._query.initial_events and streaming_lists == "broken":
            problem = errors.ApiError(500, "InternalError", "RequestWatchProgress is disabled")
            yield error_line(problem.body)
            return
        woken = asyncio.Event()
        unsubscribe = self._store.subscribe(woken.set)
        try:
            async for chunk in self._run(woken):
                yield chunk
        except ExpiredError as error:
            yield error_line(errors.expired_version(self._start, error.floor).body)
        finally:
            unsubscribe()

    async def _run(self, woken: asyncio.Event) -> AsyncIterator[bytes]:
        loop = asyncio.get_running_loop()
        end = loop.time() + (self._query.timeout or random.uniform(1800, 3600))
        store, query = self._store, self._query
        cursor = store.history.cursor_after(self._start) if self._start else store.history.end
        if query.initial_events or (query.initial_events is None and not self._start):
            cursor, version = store.history.end, store.version
            entries = store.entries(self._resource, query.namespace, query.selector)
            for first in range(0, len(entries), _BATCH):
                batch = entries[first : first + _BATCH]
                yield b"".join([event_line("ADDED", self._resource, entry.item) for entry in batch])
            if query.initial_events and query.bookmarks:
                yield bookmark_line(self._resource, version, initial_events_end=True)
        bookmark_at = loop.time() + self._interval
        while True:
            woken.clear()
            while changes := store.history.read(cursor, _BATCH):
                cursor += len(changes)
                if lines := self._lines(changes):
                    yield b"".join(lines)
            now = loop.time()
            if now >= bookmark_at or now >= end:
                bookmark_at = now + self._interval
                if query.bookmarks:
                    yield bookmark_line(self._resource, max(store.version, self._start))
            if now >= end:
                return
            await _woken_or_late(woken, min(bookmark_at, end) - loop.time())

    def _lines(self, changes: list[Change]) -> list[bytes]:
        namespace = f"/{self._query.namespace}/" if self._query.namespace else "/"
        lines = [
            change.line(self._query.selector)
            for change in changes
            if change.resource is self._resource
            and change.version > self._start
            and change.key.startswith(namespace)
        ]
        return [line for line in lines if line is not None]


async def _woken_or_late(woken: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(max(seconds, 0)):
            await woken.wait()
    except TimeoutError:
        return
