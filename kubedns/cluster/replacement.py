"""The list that replaces: the first one, and the one after a version expired.

In: a list as a stream of events.
Out: its objects in the Intake, delivered as they come; then the removal of what it lacks.
Invariant: nothing is removed before the whole list was seen, so that a list that fails half-way
takes nothing away.  The list is right even where its versions are older than those held, and it ends
a comparison with a list beside the watch.
"""

from collections.abc import Callable
from contextlib import aclosing
from typing import TypeVar

from kubedns.cluster.intake import Intake, Pace
from kubedns.cluster.listing import RESTART, Events, listed
from kubedns.cluster.project import version_number, version_text
from kubedns.cluster.resources import Selection
from kubedns.cluster.session import Api
from kubedns.objects import Key

T = TypeVar("T")


async def replace(
    api: Api, selection: Selection, intake: Intake[T], note_paging: Callable[[str], None]
) -> None:
    """List into an Intake and set its version; raises ApiError.

    `note_paging` is called with the reason when the server does not stream the list.
    """
    pace, seen = Pace(), set[Key]()
    intake.holdings.void_audit()
    try:
        version = await _take(listed(api, selection), intake, seen, pace, note_paging)
    finally:
        await intake.drain(pace)
    held = intake.holdings.held_keys()
    while held:
        key = held.pop()
        if key in seen:
            seen.remove(key)  # one by one: to let go of all at once holds up answers for milliseconds
        else:
            intake.stage(intake.holdings.remove(key, version_number(version)))
        if intake.is_behind(pace):
            await intake.keep_up(pace)
    await intake.drain(pace)
    intake.version = version
    intake.reached()


async def _take(
    events: Events, intake: Intake[T], seen: set[Key], pace: Pace, note_paging: Callable[[str], None]
) -> str:
    """Take over what a list shows, noting its keys; return its version."""
    version = ""
    async with aclosing(events):
        async for event in events:
            if event.type == "BOOKMARK":
                version = version_text(event.object)
            elif event.type == RESTART:
                note_paging(str(event.object["message"]))
                seen.clear()
            elif (identity := intake.identify(event)) is not None:
                key, number = identity
                if event.type == "DELETED":
                    seen.discard(key)
                else:
                    seen.add(key)
                    intake.take_object(key, number, event.object)
            if intake.is_behind(pace):
                await intake.keep_up(pace)
    return version
