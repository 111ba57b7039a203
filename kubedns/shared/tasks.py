"""Tasks that are named, referenced and never fail unseen."""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, TypeVar

_log = logging.getLogger(__name__)
T = TypeVar("T")
_running: set[asyncio.Task[Any]] = set()


def spawn(coroutine: Coroutine[Any, Any, T], *, name: str) -> "asyncio.Task[T]":
    """Start a task on the running loop and keep it referenced until it ends.

    An exception that leaves the coroutine is logged with its traceback when the task ends;
    whoever awaits the task gets it too.
    """
    task = asyncio.get_running_loop().create_task(coroutine, name=name)
    _running.add(task)
    task.add_done_callback(_ended)
    return task


def _ended(task: asyncio.Task[Any]) -> None:
    _running.discard(task)
    if not task.cancelled() and (error := task.exception()) is not None:
        _log.error("task %s failed", task.get_name(), exc_info=error)


async def cancel(*tasks: asyncio.Task[Any] | None) -> None:
    """Cancel tasks and wait until each has ended, however it ends."""
    live = [task for task in tasks if task is not None and not task.done()]
    for task in live:
        task.cancel()
    await asyncio.gather(*live, return_exceptions=True)
