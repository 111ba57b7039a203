"""Keeps a Delivery in step with one selection of the API: list, watch, and heal.

In: events of lists and watches.
Out: Changes, in batches that are small enough not to hold up the event loop.
Invariant: what was delivered is what the API server showed last.  A list replaces: what it lacks
is removed, and nothing is removed before the whole list was seen.  No end of a watch, whatever
its reason, leads to a try without a pause that grows, but for one list where a version expired; no
silence lasts longer than WATCH_LONGEST + SLACK seconds.
Source: the list-watch protocol of the Kubernetes API.  Differs: the original's resync replays its
own store; here a real list is compared.
"""

import asyncio
import logging
from collections.abc import Coroutine, Iterator
from random import Random
from typing import Any, Final, Generic, NoReturn, TypeVar

from kubedns.cluster.audit import audited
from kubedns.cluster.backoff import DOUBLING, Backoff
from kubedns.cluster.delivery import Delivery
from kubedns.cluster.errors import ApiError, Fault
from kubedns.cluster.intake import Intake, Pace
from kubedns.cluster.listing import error_of
from kubedns.cluster.project import Projection, version_text
from kubedns.cluster.replacement import replace
from kubedns.cluster.resources import Request, Selection
from kubedns.cluster.session import Api
from kubedns.cluster.watchstream import Event, StreamError, WatchStream
from kubedns.shared.tasks import cancel, spawn
from kubedns.telemetry.watches import ResourceStatistics

_log = logging.getLogger(__name__)
T = TypeVar("T")
R = TypeVar("R")

RELIST_PERIOD: Final = 1800.0
"""Seconds between the lists that are compared with what the watch delivered, plus up to 20 %."""
WATCH_SHORTEST: Final = 30.0
WATCH_LONGEST: Final = 45.0
SLACK: Final = 15.0
"""Seconds beyond the server's own end of a watch after which the peer counts as dead."""
ANSWER_WITHIN: Final = 10.0
"""Seconds within which a watch must be accepted."""
SETTLED: Final = 2.0
"""Seconds a watch must last to count as a success."""
LIST_AT_MOST: Final = 300.0
"""Seconds within which a list must be complete, however lively it is."""
_AUDIT_AGAIN: Final = 60.0
"""Seconds after which a periodic list that failed is tried again."""
_AWAY: Final = {Fault.CONNECT, Fault.CUT}
"""What the network says while no API server is there; with a load balancer before it, that it was cut."""
_WHILE_AWAY: Final = 1.25
"""Growth of the delay meanwhile: a server that comes back is found within a quarter of the time that it was
away, or LONGEST.  Longer waits would spare nothing: a server that is away does not see these tries."""
_RESUMABLE = 2
"""Failures in a row with an answer that blames the request, after which its version is given up."""


class Reflector(Generic[T]):
    """One list-watch; `run` it as a task.

    `synced` is set once the first list is delivered; `failure` is what stands in the way now,
    empty when nothing does; `live_since` is the loop's time at which the current watch was
    accepted, None without one.
    """

    def __init__(
        self,
        api: Api,
        selection: Selection,
        project: Projection[T],
        delivery: Delivery[T],
        statistics: ResourceStatistics,
        relist_period: float = RELIST_PERIOD,
    ) -> None:
        self._api = api
        self._selection = selection
        self._delivery = delivery
        self._relist_period = relist_period
        self._intake = Intake(selection, project, delivery, statistics)
        self._statistics = statistics
        self._random = Random()
        self._backoff = Backoff(self._random)
        self._renewed = False  # whether the waiting began anew since a watch lasted
        self._listed = False  # whether a list was tried last, so that another one at once heals nothing
        self._logged = ""
        self._paging = False
        self.failure = ""
        self.live_since: float | None = None
        self.synced = asyncio.Event()

    async def run(self) -> NoReturn:
        """List and watch for ever."""
        relists = spawn(self._audit(), name=f"relists of {self._selection.name}")
        try:
            while True:
                delay = await self._guarded(self._round())
                await asyncio.sleep(self._backoff.next() if delay is None else delay)
        finally:
            await cancel(relists)

    async def _audit(self) -> NoReturn:
        """Compare a list with what was delivered, every `relist_period` seconds and up to a fifth more."""
        await self.synced.wait()
        delay = self._relist_period
        while True:
            await asyncio.sleep(delay * self._random.uniform(1.0, 1.2))
            complete = await self._guarded(audited(self._api, self._selection, self._intake, self))
            delay = self._relist_period if complete else min(_AUDIT_AGAIN, self._relist_period)

    async def _guarded(self, work: Coroutine[Any, Any, R]) -> R | None:
        """Do one step as a task of its own: a fault of ours on one object must not freeze all others.

        None when it failed, which is logged; the next list then delivers every object again.
        """
        task = spawn(work, name=f"list-watch of {self._selection.name}")
        try:
            await asyncio.wait([task])
        finally:
            await cancel(task)
        if task.exception() is None:
            return task.result()
        self.failure = "an internal error, which is in the log"
        self._intake.distrust()
        return None

    async def _round(self) -> float:
        """List if there is no version to watch from, then watch; return the seconds to wait."""
        try:
            if not self._intake.version:
                await self._replace()
            return await self._watch()
        except ApiError as error:
            return self._failed(error)

    def _failed(self, error: ApiError) -> float:
        expired = error.fault is Fault.EXPIRED
        in_vain, self._listed = self._listed, expired
        if expired and not in_vain:
            self._renew()
            self._intake.version = ""
            _log.info("listing %s again: %s", self._selection.name, error)
            return 0.0
        delay = self._backoff.next(_WHILE_AWAY if error.fault in _AWAY else DOUBLING)
        blamed = error.code in {400, 422, 500, 504} and self._backoff.failures > _RESUMABLE
        if expired or blamed or error.fault is Fault.PROTOCOL:
            # After etcd was restored from a backup no version of before is known any more.
            self._intake.version = ""
        delay = max(delay, error.retry_after or 0.0)
        self._report(str(error), delay)
        return delay

    def _report(self, failure: str, delay: float) -> None:
        """Log a failure: each one before the first sync, then only what was not logged last."""
        self.failure = failure
        if failure != self._logged or not self.synced.is_set():
            self._logged = failure
            self._api.failures.note(failure, delay)

    def _renew(self) -> None:
        """Begin the waiting anew, as the API server works, however long it was away.

        Only once until a watch lasts: one that lists and then ends every watch must be backed off from.
        """
        if not self._renewed:
            self._renewed = True
            self._backoff.reset()

    def _recovered(self) -> None:
        self._renewed = self._listed = False
        self._backoff.reset()
        if self.failure:
            self.failure = self._logged = ""
            _log.info("the watch of %s works again", self._selection.name)

    async def _replace(self) -> None:
        try:
            async with asyncio.timeout(LIST_AT_MOST):
                await replace(self._api, self._selection, self._intake, self._note_paging)
        except TimeoutError as error:
            self._statistics.lists[Fault.TIMEOUT] += 1
            raise ApiError(
                Fault.TIMEOUT,
                f"the list of {self._selection.name} was not complete after {LIST_AT_MOST:.0f} s",
            ) from error
        except ApiError as error:
            self._statistics.lists[error.fault] += 1
            raise
        self._listed = True
        self._renew()
        self._statistics.lists["ok"] += 1
        self._statistics.last_activity = asyncio.get_running_loop().time()
        if not self.synced.is_set():
            self.failure = self._logged = ""
            self.synced.set()
            _log.info("listed %d %s", len(self._intake.holdings), self._selection.name)

    def _note_paging(self, reason: str) -> None:
        if not self._paging:
            self._paging = True
            _log.info(
                "listing %s in pages, as the server does not stream the list: %s",
                self._selection.name,
                reason,
            )

    async def _watch(self) -> float:
        """Watch until the stream ends; return the seconds to wait before the next one."""
        lasts = self._random.uniform(WATCH_SHORTEST, WATCH_LONGEST)
        params = {
            "watch": "1",
            "allowWatchBookmarks": "true",
            "resourceVersion": self._intake.version,
            "timeoutSeconds": f"{lasts:.0f}",
        }
        request = self._selection.request("watch", params, ANSWER_WITHIN)
        version, accepted = self._intake.version, 0.0
        try:
            async with asyncio.timeout(lasts + SLACK):
                accepted = await self._read(request)
        except TimeoutError:
            _log.info(
                "no end of the watch of %s %.0f s after it was due; reopening it", self._selection.name, SLACK
            )
            self._statistics.watches["quiet"] += 1
            return 0.0
        except ApiError as error:
            self._statistics.watches[error.fault] += 1
            raise
        lasted = asyncio.get_running_loop().time() - accepted
        if lasted >= SETTLED:
            self._statistics.watches["timeout" if lasted >= lasts - SETTLED else "closed"] += 1
            return 0.0
        self._statistics.watches["short"] += 1
        if self._intake.version != version:
            return self._backoff.shortest()
        delay = self._backoff.next()
        self._report(f"cannot {request}: the API server accepts it but ends it at once", delay)
        return delay

    async def _read(self, request: Request) -> float:
        """Take over a watch's events until it ends; return the loop's time at which it was accepted."""
        loop, stream, pace = asyncio.get_running_loop(), WatchStream(), Pace()
        async with self._api.open(request) as chunks:
            accepted = self.live_since = loop.time()
            self._delivery.connected(live=True)
            settled = loop.call_later(SETTLED, self._recovered)
            try:
                async for chunk in chunks:
                    await self._take_chunk(request, stream.feed(chunk), pace)
            except StreamError as error:
                raise ApiError(Fault.PROTOCOL, f"cannot {request}: {error}") from error
            finally:
                settled.cancel()
                self.live_since = None
                self._delivery.connected(live=False)
        return accepted

    async def _take_chunk(self, request: Request, events: Iterator[Event], pace: Pace) -> None:
        arrival = pace.begin()
        try:
            for event in events:
                self._take(request, event, arrival)
                if self._intake.is_behind(pace):
                    await self._intake.keep_up(pace)
        finally:
            # What came before an error counts.
            await self._intake.drain(pace)
        self._intake.reached()

    def _take(self, request: Request, event: Event, arrival: float) -> None:
        if event.type == "ERROR":
            raise error_of(request, event)
        self._statistics.last_activity = arrival
        if event.type == "BOOKMARK":
            self._intake.version = version_text(event.object) or self._intake.version
        else:
            self._intake.take(event, arrival)
