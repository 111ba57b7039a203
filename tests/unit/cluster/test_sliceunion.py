import asyncio
from itertools import permutations

import pytest

from kubedns.cluster.delivery import Change
from kubedns.cluster.sliceunion import HELD_AT_MOST, LINGER, Side, SliceUnion
from kubedns.objects import EndpointSlice
from kubedns.telemetry.watches import ResourceStatistics
from tests.unit.cluster.scriptedapi import RecordingSink
from tests.unit.cluster.virtualtime import run_virtual

KEY = ("shop", "web-x")


def slice_at(version: int) -> EndpointSlice:
    return EndpointSlice("shop", "web-x", f"at-{version}")


def present(version: int, previous: int = 0) -> Change[EndpointSlice]:
    return Change(KEY, version, previous, slice_at(version))


def gone(version: int, previous: int) -> Change[EndpointSlice]:
    return Change(KEY, version, previous, None)


class Union:
    def __init__(self) -> None:
        self.sink: RecordingSink[EndpointSlice] = RecordingSink()
        self.union = SliceUnion(self.sink, ResourceStatistics("first"), ResourceStatistics("second"))
        self.first, self.second = self.union.first, self.union.second
        for side in (self.first, self.second):
            side.connected(live=True)

    @property
    def shown(self) -> str | None:
        held = self.sink.state.get(KEY)
        return held.service if held else None

    @property
    def ever_absent(self) -> bool:
        return any(batch.get(KEY, ...) is None for batch in self.sink.batches)


def test_slice_that_moves_deleted_first_is_never_missing():
    async def scenario() -> None:
        union = Union()
        union.first.apply([present(5)])
        union.first.apply([gone(7, previous=5)])
        union.first.reached(7)
        await asyncio.sleep(LINGER / 2)
        assert union.shown == "at-5"
        union.second.apply([present(7)])
        union.second.reached(7)
        assert union.shown == "at-7"
        await asyncio.sleep(10)
        assert union.shown == "at-7"
        assert not union.ever_absent

    run_virtual(scenario)


def test_slice_that_moves_added_first_is_never_missing():
    async def scenario() -> None:
        union = Union()
        union.first.apply([present(5)])
        union.second.apply([present(7)])
        union.first.apply([gone(7, previous=5)])
        await asyncio.sleep(10)
        assert union.shown == "at-7"
        assert not union.ever_absent

    run_virtual(scenario)


def test_deleted_slice_goes_after_the_linger():
    async def scenario() -> None:
        union = Union()
        union.first.apply([present(5)])
        union.first.apply([gone(7, previous=5)])
        await asyncio.sleep(LINGER * 0.9)
        assert union.shown == "at-5"
        await asyncio.sleep(LINGER * 0.3)
        assert union.shown is None

    run_virtual(scenario)


def test_deleted_slice_goes_at_once_when_the_other_watch_has_passed_its_version():
    async def scenario() -> None:
        union = Union()
        union.first.apply([present(5)])
        union.second.reached(7)
        union.first.apply([gone(7, previous=5)])
        assert union.shown is None

    run_virtual(scenario)


def test_deleted_slice_goes_when_the_other_watch_passes_its_version():
    async def scenario() -> None:
        union = Union()
        union.first.apply([present(5)])
        union.first.apply([gone(7, previous=5)])
        union.second.reached(6)
        assert union.shown == "at-5"
        union.second.reached(8)
        assert union.shown is None

    run_virtual(scenario)


def test_slice_that_gets_the_label_while_the_labels_watch_is_down_waits_for_it():
    async def scenario() -> None:
        union = Union()
        union.second.apply([present(5)])
        union.first.connected(live=False)
        union.second.apply([gone(7, previous=5)])
        await asyncio.sleep(30)
        assert union.shown == "at-5"
        union.first.connected(live=True)
        union.first.apply([present(7)])
        await asyncio.sleep(30)
        assert union.shown == "at-7"
        assert not union.ever_absent

    run_virtual(scenario)


def test_slice_deleted_while_the_labels_watch_stays_down_goes_in_the_end():
    async def scenario() -> None:
        union = Union()
        union.second.apply([present(5)])
        union.first.connected(live=False)
        union.second.apply([gone(7, previous=5)])
        await asyncio.sleep(HELD_AT_MOST + 1)
        assert union.shown is None

    run_virtual(scenario)


def test_labelled_slice_that_is_deleted_does_not_wait_for_a_silent_watch():
    async def scenario() -> None:
        union = Union()
        union.first.apply([present(5)])
        union.second.connected(live=False)
        union.first.apply([gone(7, previous=5)])
        await asyncio.sleep(1)
        assert union.shown is None

    run_virtual(scenario)


def test_labelled_slice_that_loses_its_label_in_an_outage_comes_back_with_the_other_watch():
    async def scenario() -> None:
        union = Union()
        union.first.apply([present(5)])
        union.second.connected(live=False)
        union.first.apply([gone(7, previous=5)])
        await asyncio.sleep(1)
        union.second.connected(live=True)
        union.second.apply([present(7)])
        assert union.shown == "at-7"

    run_virtual(scenario)


def test_removal_seen_by_a_list_is_recognised_as_a_move():
    async def scenario() -> None:
        union = Union()
        union.first.apply([present(5)])
        union.second.apply([present(7)])
        union.second.reached(9)
        # A list at version 20 shows only that the slice left this selector somewhere after 5.
        union.first.apply([gone(20, previous=5)])
        await asyncio.sleep(10)
        assert union.shown == "at-7"

    run_virtual(scenario)


def test_older_state_from_the_other_watch_is_not_shown():
    async def scenario() -> None:
        union = Union()
        union.second.apply([present(7)])
        union.first.apply([present(6, previous=5)])
        assert union.shown == "at-7"
        union.first.apply([gone(7, previous=6)])
        await asyncio.sleep(10)
        assert union.shown == "at-7"

    run_virtual(scenario)


FIRST = [present(5), gone(7, previous=5), present(9), gone(11, previous=9)]
SECOND = [present(7), gone(9, previous=7), present(11)]


def interleavings() -> list[tuple[int, ...]]:
    return sorted(set(permutations([0] * len(FIRST) + [1] * len(SECOND))))


@pytest.mark.parametrize("order", interleavings())
def test_slice_that_moves_to_and_fro_ends_where_it_is_however_the_watches_interleave(order):
    async def scenario() -> None:
        union = Union()
        queues: list[tuple[Side, list[Change[EndpointSlice]]]] = [
            (union.first, list(FIRST)),
            (union.second, list(SECOND)),
        ]
        newest = 0
        for turn in order:
            side, changes = queues[turn]
            change = changes.pop(0)
            side.apply([change])
            side.reached(change.version)
            newest = max(newest, change.version if change.object else 0)
            assert union.shown in {None, f"at-{newest}"} or int(union.shown[3:]) >= newest - 2
        await asyncio.sleep(2 * LINGER)
        assert union.shown == "at-11"

    run_virtual(scenario)


def test_timer_ends_when_nothing_is_held():
    async def scenario() -> None:
        union = Union()
        union.first.apply([present(5)])
        union.first.apply([gone(7, previous=5)])
        await asyncio.sleep(1)
        union.first.apply([present(9)])
        assert union.shown == "at-9"
        union.first.apply([gone(10, previous=9)])
        union.union.stop()

    run_virtual(scenario)
