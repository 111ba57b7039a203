"""Durations in Go's syntax: `300ms`, `10s`, `1m30s`, `1.5h`.

Source: the grammar of Go's time.ParseDuration, which the flags of the original use.
"""

import re

_UNIT_SECONDS = {
    "ns": 1e-9,
    "us": 1e-6,
    "µs": 1e-6,
    "μs": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "m": 60.0,
    "h": 3600.0,
}
_PART = re.compile(r"(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h)")
_LONGEST_SECONDS = (2**63 - 1) * 1e-9


def parse_duration(text: str) -> float:
    """Return the seconds of a Go duration, which may not be negative.

    `0` needs no unit.  Raises ValueError with a message fit for a person.
    """
    body = text.removeprefix("+")
    if body == "0":
        return 0.0
    seconds, position = 0.0, 0
    while position < len(body):
        part = _PART.match(body, position)
        if part is None:
            break
        seconds += float(part[1]) * _UNIT_SECONDS[part[2]]
        position = part.end()
    if not body or position != len(body):
        raise ValueError(f"{text!r} is not a duration such as 10s, 1m30s or 500ms")
    if seconds > _LONGEST_SECONDS:
        raise ValueError(f"{text!r} is longer than a duration can be (292 years)")
    return seconds


def format_duration(seconds: float) -> str:
    """Write seconds as the shortest of `h`, `m`, `s` and `ms`, as in help texts: `1m30s`."""
    if seconds == 0:
        return "0s"
    if seconds < 1:
        return f"{seconds * 1000:g}ms"
    hours, rest = divmod(seconds, 3600)
    minutes, left = divmod(rest, 60)
    parts = [f"{value:g}{unit}" for value, unit in ((hours, "h"), (minutes, "m"), (left, "s")) if value]
    return "".join(parts)
