"""The collector keeps its hands off what is alive, and still finds what is dead."""

import gc
import weakref

import pytest

from kubedns.garbage import defer_full_collections


class Loop:
    """A cycle."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture(autouse=True)
def collector_as_before():
    thresholds = gc.get_threshold()
    yield
    gc.unfreeze()
    gc.set_threshold(*thresholds)


def test_what_is_alive_is_out_of_the_collectors_sight():
    kept = [Loop() for _ in range(100)]
    defer_full_collections()
    assert gc.get_freeze_count() > len(kept)
    assert not any(isinstance(found, Loop) for found in gc.get_objects())


def test_young_cycle_is_still_collected():
    defer_full_collections()
    dead = weakref.ref(Loop())
    gc.collect(1)
    assert dead() is None
