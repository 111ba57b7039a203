"""The slow periodic list that finds out what the watch did not deliver, and repairs it.

In: a list, read beside the live watch; what the watch has delivered.
Out: the Changes that were missing, counted as repairs.
Invariant: nothing older than what was delivered is delivered, so a list that replaces ends the
comparison; a difference that a healthy watch explains within GRACE seconds is no repair.
"""

import asyncio
import logging
from contextlib import aclosing
from typing import Final, Protocol, TypeVar

from kubedns.cluster.errors import ApiError
from kubedns.cluster.holdings import Audit
from kubedns.cluster.intake import Intake, Pace
from kubedns.cluster.listing import RESTART, listed
from kubedns.cluster.project import version_number, version_text
from kubedns.cluster.resources import Selection
from kubedns.cluster.session import Api
from kubedns.cluster.watchstream import Event

_log = logging.getLogger(__name__)
T = TypeVar("T")

GRACE: Final = 2.0
_PATIENCE = 30
"""How often GRACE is waited for a live watch."""
_COMPLETE_WITHIN: Final = 300.0


class Watcher(Protocol):
    """The watch beside which the list is read; `live_since` as the Reflector's."""

    live_since: float | None


async def audited(api: Api, selection: Selection, intake: Intake[T], watcher: Watcher) -> bool:
    """Compare once and repair; return whether it came to an end.

    It does not without a watch, nor where a list replaces everything meanwhile.
    """
    if watcher.live_since is None:
        return False
    audit: Audit[T] = Audit(intake.holdings)
    try:
        async with asyncio.timeout(_COMPLETE_WITHIN):
            await _read(api, selection, intake, audit)
        if audit.suspicious and not await _settled(watcher):
            return False
        if audit.void:
            return False
        changes = audit.repairs()
        for change in changes:
            intake.stage(change)
        await intake.drain(Pace())
    except ApiError as error:
        intake.statistics.lists[error.fault] += 1
        _log.info("the periodic list of %s failed: %s", selection.name, error)
        return False
    except TimeoutError:
        intake.statistics.lists["timeout"] += 1
        _log.info("the periodic list of %s was not complete in time", selection.name)
        return False
    finally:
        audit.end()
    intake.statistics.lists["ok"] += 1
    intake.statistics.repairs += len(changes)
    if changes:
        names = ", ".join("/".join(change.key) for change in changes[:5])
        more = f" and {len(changes) - 5} more" if len(changes) > 5 else ""
        _log.warning("the watch of %s had missed changes, repaired: %s%s", selection.name, names, more)
    return True


async def _read(api: Api, selection: Selection, intake: Intake[T], audit: Audit[T]) -> None:
    pace, version = Pace(), 0
    async with aclosing(listed(api, selection)) as events:
        async for event in events:
            if event.type == "BOOKMARK":
                version = version_number(version_text(event.object))
            elif event.type == RESTART:
                audit.restart()
            else:
                _note(event, intake, audit)
            await pace.pause_if_due()
    for key in intake.holdings.held_keys():
        audit.compare(key, version)
        await pace.pause_if_due()


def _note(event: Event, intake: Intake[T], audit: Audit[T]) -> None:
    identity = intake.identify(event)
    if identity is None:
        return
    key, version = identity
    if event.type == "DELETED":
        audit.unsee(key)
    elif audit.see(key, version):
        value = intake.projected(key, event.object)
        if value is not None:
            audit.suspect(key, version, value)


async def _settled(watcher: Watcher) -> bool:
    """Wait until one watch has been live for GRACE seconds from now on; False if none comes to be."""
    loop = asyncio.get_running_loop()
    earliest = loop.time()
    for _ in range(_PATIENCE):
        await asyncio.sleep(GRACE)
        since = watcher.live_since
        if since is not None and loop.time() - max(since, earliest) >= GRACE:
            return True
    return False
