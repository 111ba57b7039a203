"""The collector keeps its hands off what stays, and finds what is dead."""

import asyncio
import gc
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kubedns.process import garbage
from kubedns.process.garbage import GarbageKeeper, defer_full_collections

MANY = 500


class Loop:
    """A cycle, as a connection is one."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture(autouse=True)
def collector_as_before():
    thresholds = gc.get_threshold()
    yield
    gc.unfreeze()
    gc.set_threshold(*thresholds)


@pytest.fixture
def connections() -> list[Loop]:
    """The open ones, to be changed."""
    return []


@pytest.fixture
def begin(connections) -> Callable[..., GarbageKeeper]:
    """Makes a keeper that has just begun."""

    def begin(*, filling: bool = False) -> GarbageKeeper:
        defer_full_collections()
        return GarbageKeeper(lambda: connections, lambda: filling, lambda: iter(()))

    return begin


def in_sight() -> int:
    return sum(isinstance(found, Loop) for found in gc.get_objects())


def end(connections: list[Loop]) -> "weakref.ref[Loop]":
    """End all; return a sign whether they are still there."""
    last = weakref.ref(connections[-1])
    connections.clear()
    return last


def test_what_is_alive_at_the_start_is_frozen():
    kept = [Loop() for _ in range(MANY)]
    defer_full_collections()
    assert gc.get_freeze_count() > len(kept)
    assert in_sight() == 0


def test_what_died_young_is_collected(begin):
    keeper = begin()
    dead = weakref.ref(Loop())
    keeper.look()
    assert dead() is None


def test_what_is_alive_is_frozen_by_a_look(begin):
    keeper = begin()
    kept = [Loop() for _ in range(MANY)]
    keeper.look()
    assert in_sight() == 0
    assert kept


@pytest.mark.parametrize("looks", [1, 20])
def test_connections_that_were_open_at_looks_and_ended_are_collected(begin, connections, looks):
    keeper = begin()
    connections += [Loop() for _ in range(MANY)]
    for _ in range(looks):
        keeper.look()
    dead = end(connections)
    keeper.look()
    assert dead() is None


def test_connections_that_come_and_go_are_collected_while_others_are_open(begin, connections):
    keeper = begin()
    for _ in range(20):
        connections[:] = [Loop() for _ in range(MANY)]
        keeper.look()
    assert in_sight() == MANY


def test_when_the_connections_have_ended_what_came_meanwhile_is_frozen(begin, connections):
    keeper = begin()
    connections += [Loop() for _ in range(MANY)]
    keeper.look()
    kept = [Loop() for _ in range(MANY)]
    end(connections)
    keeper.look()
    assert in_sight() == 0
    assert kept


def test_a_few_connections_that_stay_are_frozen_in_the_end(begin, connections):
    keeper = begin()
    connections += [Loop() for _ in range(8)]
    for _ in range(50):
        keeper.look()
    assert in_sight() == 8
    keeper.look()
    assert in_sight() == 0


@pytest.mark.parametrize("filling", [False, True])
def test_many_frozen_connections_that_ended_are_collected(begin, connections, monkeypatch, filling):
    monkeypatch.setattr(garbage, "_LONG", 0.0)
    monkeypatch.setattr(garbage, "_LONG_FOR_CONNECTION", 0.0)
    keeper = begin(filling=filling)
    connections += [Loop() for _ in range(501)]
    keeper.look()
    assert in_sight() == 0
    dead = weakref.ref(connections[0])
    del connections[1:]
    keeper.look()
    assert dead() is not None
    end(connections)
    keeper.look()
    assert dead() is None


def test_everything_is_looked_at_after_hours(begin, monkeypatch):
    hours: list[Any] = [0]
    monkeypatch.setattr(garbage, "monotonic", lambda: 3600.0 * hours[0])
    keeper = begin()
    frozen = Loop()
    keeper.look()
    dead = weakref.ref(frozen)
    del frozen
    keeper.look()
    assert dead() is not None
    hours[0] = 6
    keeper.look()
    assert dead() is None


async def run_until(keeper: GarbageKeeper, happened: Callable[[], bool]) -> None:
    running = asyncio.create_task(keeper.run())
    async with asyncio.timeout(30):
        while not happened():
            await asyncio.sleep(0.01)
    running.cancel()


async def test_what_can_be_made_again_is_forgotten_when_memory_has_grown_much(begin, monkeypatch):
    monkeypatch.setattr(garbage, "_MOST_GROWTH", 20_000)
    made: list[object] = []
    forgot: list[int] = []

    def forget() -> Iterator[None]:
        yield
        forgot.append(len(made))
        made.clear()

    defer_full_collections()
    keeper = GarbageKeeper(lambda: (), lambda: False, forget)
    frozen = Loop()
    keeper.look()
    dead = weakref.ref(frozen)
    del frozen
    made += [object() for _ in range(30_000)]
    await run_until(keeper, lambda: bool(forgot))
    assert forgot == [30_000]
    made += [object() for _ in range(30_000)]
    await run_until(keeper, lambda: len(forgot) == 2)
    assert dead() is not None, "nothing else is looked at when that was enough"


async def test_everything_is_looked_at_when_forgetting_was_not_enough(begin, monkeypatch):
    monkeypatch.setattr(garbage, "_MOST_GROWTH", 20_000)
    keeper = begin()
    frozen = Loop()
    keeper.look()
    dead = weakref.ref(frozen)
    del frozen
    kept = [object() for _ in range(30_000)]
    await run_until(keeper, lambda: dead() is None)
    assert gc.get_freeze_count() > 0
    assert kept
