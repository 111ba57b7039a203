"""A check's history -> a small inline SVG, one bar for each run, the newest at the right."""

from collections.abc import Sequence
from math import log10
from typing import Final

from healthz.results import HISTORY

_STEP: Final = 4
_HEIGHT: Final = 30
_LOWEST: Final = 4
_DECADES: Final = 5
"""From 0.1 ms, which is the lowest bar, to 10 s, which is the full height."""


def sparkline(history: Sequence[tuple[float | None, bool]]) -> str:
    """Return the SVG of (duration in seconds or None, healthy) pairs; failures have full height."""
    width = _STEP * HISTORY
    bars = [f'<rect class="base" x="0" y="{_HEIGHT - 1}" width="{width}" height="1"/>']
    first = HISTORY - len(history)
    for place, (duration, healthy) in enumerate(history, start=first):
        height = _height(duration) if healthy else _HEIGHT
        kind = "ok" if healthy else "failed"
        bars.append(
            f'<rect class="{kind}" x="{place * _STEP}" y="{_HEIGHT - height}" width="{_STEP - 1}" height="{height}"/>'
        )
    return (
        f'<svg viewBox="0 0 {width} {_HEIGHT}" preserveAspectRatio="none" role="img" '
        f'aria-label="{_summary(history)}">{"".join(bars)}</svg>'
    )


def _height(duration: float | None) -> int:
    decades = log10(max(duration or 0, 1e-4) / 1e-4)
    return _LOWEST + round((_HEIGHT - _LOWEST) * min(decades / _DECADES, 1))


def _summary(history: Sequence[tuple[float | None, bool]]) -> str:
    failed = sum(not healthy for _, healthy in history)
    return f"{len(history)} runs, {failed} failed"
