"""A ClusterWatch on recording Sinks, for a test's duration."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

from kubedns.cluster.access import Credentials
from kubedns.cluster.clusterwatch import ClusterWatch
from kubedns.cluster.credentials import UrlCredentials
from kubedns.cluster.reflector import RELIST_PERIOD
from kubedns.objects import EndpointSlice, Service
from tests.unit.cluster.scriptedapi import RecordingSink


class Watching:
    """What a test looks at."""

    def __init__(self, credentials: Credentials, relist_period: float) -> None:
        self.services: RecordingSink[Service] = RecordingSink()
        self.slices: RecordingSink[EndpointSlice] = RecordingSink()
        self.watch = ClusterWatch(credentials, self.services, self.slices, relist_period)

    @property
    def names(self) -> set[str]:
        return {name for _, name in self.services.state}

    @property
    def slice_names(self) -> set[str]:
        return {name for _, name in self.slices.state}

    def live(self) -> bool:
        return all(reflector.live_since is not None for reflector in self.watch._reflectors)

    async def until(self, condition: Callable[[], bool], within: float = 20.0) -> float:
        """Wait until something holds; return the seconds it took."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        while not condition():
            assert loop.time() - began < within, f"not within {within} s; {self.watch.why_not_synced()}"
            await asyncio.sleep(0.005)
        return loop.time() - began

    async def synced(self) -> None:
        await self.until(self.watch.synced.is_set)
        await self.until(self.live)


@contextlib.asynccontextmanager
async def watching(
    credentials: Credentials | str, relist_period: float = RELIST_PERIOD, *, synced: bool = True
) -> AsyncIterator[Watching]:
    """Watch with credentials or a plain URL; first wait for the sync, unless told otherwise."""
    made = Watching(
        UrlCredentials(credentials) if isinstance(credentials, str) else credentials, relist_period
    )
    made.watch.start()
    try:
        if synced:
            await made.synced()
        yield made
    finally:
        await made.watch.stop()
