"""Memory given back: what is dead, in little time and never in one piece, and what need not be kept.

A full collection looks at every object of the tree, some 100 ms in a large cluster whose names were
all asked for, to find nothing: the tree has no cycles and its nodes go when they are replaced.  So
what is alive is frozen, which means out of the collector's sight, several times a second, while it is
little; only rarely is everything looked at.

A connection is a cycle when it has ended, and garbage until the next look at everything if it was
frozen.  So nothing is frozen while there are new connections, and what is in sight is looked at as a
whole when one of them has ended.  Where that would take too long, or there are few of them that stay, they
are frozen too, and counted: when many of those have ended, everything is looked at.  Clients can neither fill
the memory with dead connections nor, while the cluster is quiet, have everything looked at again and again.

When much more memory is in use than after the last time, what was made for answers is forgotten first: one
client can ask for every name there is.  Where that does not bring it down, everything is looked at.

Left to its thresholds the collector would wait too long: it counts what is made less what goes, and under
steady changes old nodes go as fast as young ones come.
"""

import asyncio
import gc
import sys
from collections.abc import Callable, Iterable, Iterator
from time import monotonic, thread_time
from typing import Any, Final

_PERIOD: Final = 0.1
_SHARE: Final = 0.05
"""How much of the time may go into looks, which become rarer when they are long."""
_LOOKS_AT_EVERYTHING: Final = 6 * 3600.0
_MOST_DEAD: Final = 500
"""Ended connections among the frozen that make a look at everything due: up to 5 MiB."""
_MOST_GROWTH: Final = 400_000
"""Blocks of memory in use, some 40 MiB, more than after the last time."""
_PAUSE: Final = 0.001
"""Seconds between two steps of forgetting."""
_FEW: Final = 8
_PATIENCE: Final = 50
"""Looks after which so few new connections do not keep everything else in sight any more."""
_LONG: Final = 0.005
_LONG_FOR_CONNECTION: Final = 20e-6
"""Seconds of a look, and those for each open connection, from which on there is too much in sight."""
_YOUNG: Final = 1
_OLDEST: Final = 2
_NEVER: Final = 1 << 30
_THRESHOLDS: Final = (500, 3, _NEVER)
"""Young objects between two looks, and looks between two of the middle generation: some 2,000 objects,
which take half a millisecond."""


def defer_full_collections() -> None:
    """Let the collector look at young objects only, from now on."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_THRESHOLDS)


class GarbageKeeper:
    """Looks for garbage, and freezes what is alive.

    `connections` returns those that are open, each the same object for its life; `is_filling` whether
    the tree is being filled for the first time: then most of what comes stays, and a look would be long;
    `forget` gives up what can be made again, in short steps.
    """

    def __init__(
        self,
        connections: Callable[[], Iterable[Any]],
        is_filling: Callable[[], bool],
        forget: Callable[[], Iterator[None]],
    ) -> None:
        self._connections = connections
        self._is_filling = is_filling
        self._forget = forget
        self._seen: set[Any] = set()
        """Connections that were open at the last look, and not frozen."""
        self._frozen: set[Any] = set()
        self._looks_since = 0
        self._everything_at = monotonic() + _LOOKS_AT_EVERYTHING
        self._blocks = sys.getallocatedblocks()

    async def run(self) -> None:
        """Look ten times a second, or as often as is affordable, for ever."""
        took = 0.0
        while True:
            await asyncio.sleep(max(_PERIOD, took / _SHARE))
            took = self.look()
            if self._growth() > _MOST_GROWTH:
                await self._shrink()

    async def _shrink(self) -> None:
        for _ in self._forget():
            await asyncio.sleep(_PAUSE)
        if self._growth() > _MOST_GROWTH // 2:
            self._everything_at = monotonic()
        else:
            self._blocks = sys.getallocatedblocks()

    def _growth(self) -> int:
        return sys.getallocatedblocks() - self._blocks

    def look(self) -> float:
        """Look at what is new, or at more when that is due; return the seconds it took."""
        is_open = set(self._connections())
        has_ended = not self._seen <= is_open
        self._seen = is_open  # and no longer those that have ended, which would be alive with it
        begun = thread_time()
        if self._is_everything_due(is_open):
            self._look_at_everything()
            self._freeze(is_open)
        elif self._is_filling():
            gc.collect(_YOUNG)
            self._freeze(is_open)
            self._blocks = sys.getallocatedblocks()
        else:
            gc.collect(_OLDEST if has_ended else _YOUNG)
            self._looks_since += 1
            new = len(is_open - self._frozen)
            too_much = thread_time() - begun > _LONG + _LONG_FOR_CONNECTION * len(is_open)
            if not new or too_much or (new <= _FEW and self._looks_since > _PATIENCE):
                self._freeze(is_open)
        self._seen = is_open - self._frozen
        return thread_time() - begun

    def _is_everything_due(self, is_open: set[Any]) -> bool:
        return monotonic() >= self._everything_at or len(self._frozen - is_open) > _MOST_DEAD

    def _look_at_everything(self) -> None:
        self._everything_at = monotonic() + _LOOKS_AT_EVERYTHING
        self._frozen.clear()
        gc.unfreeze()
        gc.collect()
        self._blocks = sys.getallocatedblocks()

    def _freeze(self, is_open: set[Any]) -> None:
        gc.freeze()
        self._frozen |= is_open
        self._looks_since = 0
