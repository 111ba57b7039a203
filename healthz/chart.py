"""An hour of history -> small inline SVGs, the newest at the right: rates as areas, levels as a strip."""

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import Final

from healthz.traffic import POINT_SECONDS, POINTS, Point
from kubedns.shared.durations import format_duration

_HEIGHT: Final = 40
_STRIP_HEIGHT: Final = 8

Value = Callable[[Point], float | None]
"""A value of a point, None where nothing is known."""


def rates(points: Iterable[Point], rate: Value, failed: Value, label: str) -> str:
    """Return areas of a rate and of the part of it that failed, to one scale; `label` is read aloud."""
    seen = list(points)
    highest = max((value for point in seen if (value := rate(point)) is not None), default=0.0) or 1.0
    areas = "".join(
        f'<path class="{kind}" d="{_area([value(point) for point in seen], highest)}"/>'
        for kind, value in (("all", rate), ("failed", failed))
    )
    return _svg(
        _HEIGHT, f'<rect class="base" x="0" y="{_HEIGHT - 1}" width="{POINTS}" height="1"/>{areas}', label
    )


def levels(points: Sequence[Point]) -> str:
    """Return a strip that shows when something was wrong in the last hour."""
    spans, place = [], POINTS - len(points)
    for kind, group in groupby(points, key=_kind):
        width = len(list(group))
        spans.append(f'<rect class="{kind}" x="{place}" y="0" width="{width}" height="{_STRIP_HEIGHT}"/>')
        place += width
    wrong = sum(POINT_SECONDS for point in points if point.wrong or point.doubtful)
    label = f"something was wrong for {format_duration(wrong)}" if wrong else "nothing was wrong"
    base = f'<rect class="base" x="0" y="0" width="{POINTS}" height="{_STRIP_HEIGHT}"/>'
    return _svg(_STRIP_HEIGHT, base + "".join(spans), f"In the last hour {label}", "strip")


def _kind(point: Point) -> str:
    if point.wrong:
        return "failed"
    if point.doubtful:
        return "doubtful"
    return "ok" if point.kubedns_seconds or point.dnsmasq_seconds else "base"


def _area(values: Sequence[float | None], highest: float) -> str:
    """Return the path of steps, each as wide as one, ending at the right edge."""
    first = POINTS - len(values)
    steps = []
    for place, value in enumerate(values, first):
        if value:
            top = _HEIGHT - max(1.0, (_HEIGHT - 2) * value / highest)
            steps.append(f"M{place} {_HEIGHT}V{top:.1f}h1V{_HEIGHT}z")
    return "".join(steps)


def _svg(height: int, content: str, label: str, kind: str = "chart") -> str:
    return (
        f'<svg class="{kind}" viewBox="0 0 {POINTS} {height}" preserveAspectRatio="none" role="img" '
        f'aria-label="{label}">{content}</svg>'
    )
