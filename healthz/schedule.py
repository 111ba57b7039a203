"""Runs one thing again and again, never two at once."""

import asyncio
from collections.abc import Awaitable, Callable

Clock = Callable[[], float]
"""Monotonic seconds."""


async def periodically(period: float, run: Callable[[], Awaitable[None]], clock: Clock) -> None:
    """Run for ever: each run begins `period` seconds after the last began, or when that has ended.

    Missed beginnings are not made up for.
    """
    due = clock()
    while True:
        await run()
        now = clock()
        due = max(due + period, now)
        await asyncio.sleep(due - now)
