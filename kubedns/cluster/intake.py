"""From events to Changes: what is news is projected, staged, and delivered in small batches.

In: events of lists and watches.
Out: batches of Changes to a Delivery.
Invariant: no more than SLICE seconds, and the one event or batch that passes them, go by between two
pauses, so that the loop's other work (answers) is never held up; a later change of an object replaces an
earlier one that still waits.
"""

import asyncio
import logging
from itertools import islice
from typing import Any, Final, Generic, TypeVar

from kubedns.cluster.delivery import Change, Delivery
from kubedns.cluster.holdings import Holdings
from kubedns.cluster.project import MalformedError, Projection, key_of, version_number, version_text
from kubedns.cluster.resources import Selection
from kubedns.cluster.watchstream import Event
from kubedns.objects import Key
from kubedns.telemetry.watches import ResourceStatistics

_log = logging.getLogger(__name__)
T = TypeVar("T")

BATCH: Final = 8
SLICE: Final = 0.0007
"""Seconds; three reflectors may be at it in one turn of the loop."""
_MOST_COMPLAINTS = 1000


class Pace:
    """Lets others run in time during a loop over many events."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.begin()

    def due(self) -> bool:
        """Whether this step has lasted SLICE seconds."""
        return self._loop.time() - self._began >= SLICE

    def begin(self) -> float:
        """Begin a new step, after others had their turn; return the loop's time."""
        self._began = self._loop.time()
        return self._began

    async def pause_if_due(self) -> None:
        """Let others run when it is time, and begin a new step."""
        if self.due():
            await asyncio.sleep(0)
            self.begin()


class Intake(Generic[T]):
    """The way of one reflector's objects from JSON to the Delivery.

    `version` is the resource version of the last event, as the API has it; empty: none, or not
    to be relied on.
    """

    def __init__(
        self,
        selection: Selection,
        project: Projection[T],
        delivery: Delivery[T],
        statistics: ResourceStatistics,
    ) -> None:
        self._selection = selection
        self._project = project
        self._delivery = delivery
        self.statistics = statistics
        self._staged: dict[Key, Change[T]] = {}
        self._complaints: dict[str, str] = {}
        self.holdings: Holdings[T] = Holdings()
        self.version = ""

    def identify(self, event: Event) -> tuple[Key, int] | None:
        """Return key and version of an event's object, None for one that cannot be used."""
        kind = event.object.get("kind")
        if kind is not None and kind != self._selection.resource.kind:
            self._complain(
                str(kind)[:80], f"an object of kind {str(kind)[:80]!r} came among {self._selection.name}"
            )
            return None
        try:
            return key_of(event.object), version_number(version_text(event.object))
        except MalformedError as error:
            self._complain("", f"skipped one of {self._selection.name}: {error}")
            return None

    def projected(self, key: Key, body: dict[str, Any]) -> T | None:
        """Return what is kept of an object, None for nothing; logs what was refused, once."""
        refused: list[str] = []
        try:
            value = self._project(key, body, refused)
        except MalformedError as error:
            self._complain("/".join(key), f"skipped one of {self._selection.name}: {error}")
            return None
        if refused:
            shown = "; ".join(refused[:5]) + (f"; and {len(refused) - 5} more" if len(refused) > 5 else "")
            kind = self._selection.resource.kind
            self._complain("/".join(key), f"{kind} {key[0]}/{key[1]}: left out: {shown}")
        return value

    def take(self, event: Event, arrival: float | None) -> None:
        """Stage the change that an ADDED, MODIFIED or DELETED event of a watch makes, if any."""
        self.version = version_text(event.object) or self.version
        identity = self.identify(event)
        if identity is None:
            return
        key, version = identity
        if self.holdings.is_stale(key, version):
            return
        if event.type == "DELETED":
            if self.holdings.audited:
                self.holdings.bury(key, version)
            self.stage(self.holdings.remove(key, version, arrival))
        elif event.type in {"ADDED", "MODIFIED"}:
            self.take_object(key, version, event.object, arrival)
        else:
            self._complain(event.type[:80], f"unknown event {event.type[:80]!r} among {self._selection.name}")

    def take_object(self, key: Key, version: int, body: dict[str, Any], arrival: float | None = None) -> None:
        """Stage an object's new state, unless exactly this version is held."""
        if self.holdings.has(key, version):
            return
        value = self.projected(key, body)
        if value is not None:
            self.stage(self.holdings.put(key, version, value, arrival))

    def stage(self, change: Change[T] | None) -> None:
        """Let a change wait for the next delivery; None is no change."""
        if change is None:
            return
        waiting = self._staged.pop(change.key, None)
        if waiting is not None:
            change = Change(change.key, change.version, waiting.previous, change.object, waiting.arrival)
        self._staged[change.key] = change

    def is_behind(self, pace: Pace) -> bool:
        """Whether a whole batch waits or it is time to pause; to be asked after each event."""
        return len(self._staged) >= BATCH or pace.due()

    async def keep_up(self, pace: Pace) -> None:
        """Deliver all that waits, and pause when it is time even if nothing does."""
        await self.drain(pace)
        await pace.pause_if_due()

    async def drain(self, pace: Pace) -> None:
        """Deliver all that waits, and pause when it is time."""
        while self._staged:
            batch = list(islice(self._staged.values(), BATCH))
            for change in batch:
                del self._staged[change.key]
            self._delivery.apply(batch)
            await pace.pause_if_due()

    def reached(self) -> None:
        """Tell that everything up to `version` was delivered."""
        version = version_number(self.version)
        self._delivery.reached(version)
        self.holdings.reached(version)

    def distrust(self) -> None:
        """Begin anew after a fault of our own: the next list delivers every object again."""
        self._staged.clear()
        self.version = ""
        self.holdings.distrust()

    def _complain(self, subject: str, text: str) -> None:
        """Log a line, unless it was the last one about this subject."""
        if self._complaints.get(subject) == text:
            return
        if len(self._complaints) >= _MOST_COMPLAINTS:
            self._complaints.clear()
        self._complaints[subject] = text
        _log.warning("%s", text)
