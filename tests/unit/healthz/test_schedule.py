"""Runs begin on the period, never overlap, and are not made up for."""

import asyncio
import contextlib

from healthz.schedule import periodically


async def begins(period: float, durations: list[float]) -> list[float]:
    """Return at what times the runs began; each takes its time on a clock that only they move."""
    now, begun = 0.0, []
    done = asyncio.Event()
    left = list(durations)

    async def run() -> None:
        nonlocal now
        if not left:
            done.set()
            await asyncio.Event().wait()
        begun.append(now)
        now += left.pop(0)

    task = asyncio.get_running_loop().create_task(periodically(period, run, lambda: now))
    await asyncio.wait_for(done.wait(), 30)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    return begun


async def test_run_longer_than_the_period_is_followed_at_once():
    assert await begins(1.0, [5.0, 5.0, 5.0]) == [0.0, 5.0, 10.0]


async def test_missed_beginnings_are_not_made_up_for():
    assert await begins(0.001, [50.0, 0.001, 0.001]) == [0.0, 50.0, 50.001]


async def test_first_run_begins_at_once():
    assert await begins(0.01, [0.01]) == [0.0]
