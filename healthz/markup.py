"""Pieces of HTML that all cards are made of; every text that comes from outside is escaped here.

A `state` is the word in a card's pill, a `tone` the class that gives it its colour.
"""

from collections.abc import Iterable
from html import escape

from kubedns.shared.durations import format_duration

Rows = Iterable[tuple[str, str]]


def card(tone: str, title: str, state: str, *parts: str, link: str = "") -> str:
    """Return a card of parts that are HTML already; `link` is a path that its title leads to."""
    name = escape(title)
    if link:
        name = f'<a href="{escape(link)}">{name}</a>'
    pill = f'<span class="pill">{escape(state)}</span>' if state else ""
    head = f'<div class="head"><h3>{name}</h3>{pill}</div>'
    return f'<section class="card {tone}">{head}{"".join(parts)}</section>'


def paragraph(kind: str, text: str) -> str:
    """Return a paragraph of a class, nothing for an empty text."""
    return f'<p class="{kind}">{escape(text)}</p>' if text else ""


def preformatted(text: str) -> str:
    """Return a text as it is, nothing for an empty one."""
    return f"<pre>{escape(text)}</pre>" if text else ""


def figures(rows: Rows) -> str:
    """Return terms and their values."""
    return (
        "<dl>" + "".join(f"<dt>{escape(term)}</dt><dd>{escape(value)}</dd>" for term, value in rows) + "</dl>"
    )


def percent(ratio: float | None) -> str:
    """Return a share for a person; a dash where there is nothing to share."""
    return "–" if ratio is None else f"{ratio:.1%}"


def rate(value: float | None) -> str:
    """Return a number per second for a person; a dash where it is not known."""
    return "–" if value is None else f"{value:,.1f}/s"


def span(seconds: float) -> str:
    """Return a short time for a person."""
    return f"{seconds * 1000:.1f} ms" if seconds < 1 else f"{seconds:.1f} s"


def ago(seconds: float) -> str:
    """Return a long time for a person, of its two largest units."""
    whole = round(max(seconds, 0))
    if whole >= 86400:
        return f"{whole // 86400}d{whole % 86400 // 3600}h"
    return format_duration(whole // 60 * 60 if whole >= 3600 else whole)
