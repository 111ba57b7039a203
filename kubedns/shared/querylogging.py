"""The key `logQueries`: which queries are logged, and for how long.

In: words such as `10m`, `corp.example`, or both; commas may stand between them.  Out: a
QueryLogging.  A query log never stays on by itself: without a duration it lasts ten minutes.
"""

import re
from dataclasses import dataclass
from typing import Final

from kubedns.dns.names import parse_name, quoted
from kubedns.shared.durations import format_duration, parse_duration
from kubedns.shared.keyforms import Findings

USUAL_SECONDS: Final = 600.0
LONGEST_SECONDS: Final = 86400.0
_DOT_OF_A_NAME = re.compile(r"\.(?![0-9])")
_FORM: Final = "write a duration, domains, or both: 10m corp.example"


@dataclass(frozen=True, slots=True)
class QueryLogging:
    """Log for `seconds` what is in one of `domains`; no domains: everything."""

    seconds: float
    domains: tuple[str, ...] = ()

    def __str__(self) -> str:
        return " ".join((format_duration(self.seconds), *self.domains))


def log_queries(text: str, apex: str, found: Findings) -> QueryLogging | None:
    """Return what the key says; None where it is empty, or a duration of nothing."""
    words = [word for part in re.split(r"[\s,]+", text) if (word := part.strip("'\""))]
    if not words or words == ["null"]:
        return None
    durations = [word for word in words if word[0].isdigit() and not _DOT_OF_A_NAME.search(word)]
    domains = [_domain(word) for word in words if word not in durations]
    if len(durations) > 1:
        raise ValueError(f"has two durations, {durations[0]} and {durations[1]}; {_FORM}")
    seconds = parse_duration(durations[0]) if durations else USUAL_SECONDS
    if seconds > LONGEST_SECONDS:
        limit = format_duration(LONGEST_SECONDS)
        raise ValueError(f"{durations[0]} is longer than {limit}; --v=3 logs for ever")
    return QueryLogging(seconds, tuple(dict.fromkeys(domains))) if seconds else None


def _domain(word: str) -> str:
    if word.lower() in {"true", "false"} or word[0] in "{[-":
        raise ValueError(f"{quoted(word)} is neither a duration nor a domain; {_FORM}")
    try:
        return parse_name(word)
    except ValueError as error:
        raise ValueError(f"{error}; {_FORM}") from error
