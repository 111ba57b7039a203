"""The garbage collector's share of the time: small, and never in one piece.

A full collection looks at every object of the tree, some 30 ms in a large cluster, to find
nothing: the tree has no cycles and its nodes go when they are replaced.  So what is alive is
taken out of the collector's sight several times a second, while it is little; only rarely is everything
looked at, for cycles that died out of sight.  Left to its thresholds the collector would wait too long: it
counts what is made less what goes, and under steady changes old nodes go as fast as young ones come.
"""

import asyncio
import gc
from typing import Final

_PERIOD: Final = 0.1
_LOOKS_AT_EVERYTHING: Final = 6 * 3600.0
_NEVER: Final = 1 << 30
_YOUNG: Final = 1
_THRESHOLDS: Final = (500, 3, _NEVER)
"""Young objects between two looks, and looks between two of the middle generation: some 2,000 objects,
which take half a millisecond."""


def defer_full_collections() -> None:
    """Let the collector look at young objects only, from now on."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_THRESHOLDS)


async def keep_collections_short() -> None:
    """Put all that is there out of sight, then what is new, ten times a second, for ever."""
    gc.freeze()
    loop = asyncio.get_running_loop()
    everything_at = loop.time() + _LOOKS_AT_EVERYTHING
    while True:
        await asyncio.sleep(_PERIOD)
        if loop.time() >= everything_at:
            everything_at = loop.time() + _LOOKS_AT_EVERYTHING
            gc.unfreeze()
            gc.collect()
        # Not the oldest generation, which after a burst of new names is as large as the tree.
        gc.collect(_YOUNG)
        gc.freeze()
