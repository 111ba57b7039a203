"""The JSON of a configuration key: read strictly, and refused with the form to write instead.

In: the text of a key.  Out: its JSON value, None where the key stands as absent (empty, `null`, and
what is empty of the right type).  Duplicate names, NaN and other things that only some readers take
are refused (RFC 8259 4, 6).
"""

import json
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from kubedns.dns.names import quoted

_LONGEST_ADVICE: Final = 200
_COMMA_TOO_MANY = re.compile(r",(\s*[\]}])")
_YAML = re.compile(r"\s*(-\s|[\w.-]+:(\s|$))")
_NAMES: Final = {bool: "a boolean", str: "a string", list: "an array", dict: "an object", type(None): "null"}


@dataclass(slots=True)
class Findings:
    """What is wrong with the value of one key: `faults` refuse it, `idle` has no effect, `doubts` may be meant."""

    faults: list[str] = field(default_factory=list)
    idle: list[str] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Form:
    """What a key's JSON looks like: the type of its value, and an example as it is written."""

    kind: type[list[Any]] | type[dict[str, Any]]
    example: str

    def parse(self, text: str) -> Any:
        """Return the value, None where it stands for an absent key.

        Raises ValueError; its text has the form to write, with the user's own words where they fit.
        """
        if not text.strip():
            return None
        try:
            value = _loads(text)
        except json.JSONDecodeError as error:
            raise ValueError(f"is not JSON: {self._advice(text, error.msg, error.pos)}") from error
        except RecursionError as error:
            raise ValueError("is nested too deeply") from error
        if value is None:
            return None
        if not isinstance(value, self.kind):
            wanted = "a JSON array" if self.kind is list else "a JSON object"
            advice = self._of_words(text) or self.example
            raise ValueError(f"must be {wanted}, not {type_name(value)}; write {advice}")
        return value or None

    def of_servers(self, servers: Any) -> str:
        """Return the array to write for servers that stand there in another type than an array's."""
        words = _words(servers) if isinstance(servers, str) else []
        return _shortened(words) or self.example

    def _advice(self, text: str, message: str, position: int) -> str:
        repaired, found = text, []
        if '"' not in text and "'" in text:
            repaired = text.replace("'", '"')
            found.append("strings stand in double quotes")
        if (fewer := _COMMA_TOO_MANY.sub(r"\1", repaired)) != repaired:
            repaired = fewer
            found.append("there is a comma too many before the end")
        if found and (advice := self._valid(repaired)):
            return f"{' and '.join(found)}; write {advice}"
        if _YAML.match(text):
            return f"it is YAML; write {self._of_words(text) or self.example}"
        return f"{message} at character {position}; write {self._of_words(text) or self.example}"

    def _valid(self, text: str) -> str:
        try:
            value = _loads(text)
        except (ValueError, RecursionError):
            return ""
        return text.strip() if isinstance(value, self.kind) and len(text) <= _LONGEST_ADVICE else ""

    def _of_words(self, text: str) -> str:
        """Return the array of the words of a text; empty where they could be something else."""
        return _shortened(_words(text)) if self.kind is list else ""


def type_name(value: Any) -> str:
    """Return what kind of JSON a value is, with its article."""
    return _NAMES.get(type(value), "a number")


def _words(text: str) -> list[str]:
    """Return the words of a list as people write it: with commas, spaces, quotes, or as YAML."""
    parts = [
        part.strip("'\"") for part in re.split(r"[\s,]+", text.strip().removeprefix("[").removesuffix("]"))
    ]
    words = [part for part in parts if part and part != "-"]
    is_list = not any(word.endswith(":") or "{" in word for word in words)
    return words if is_list else []


def _shortened(words: Iterable[str]) -> str:
    advice = json.dumps(list(words))
    return advice if 2 < len(advice) <= _LONGEST_ADVICE else ""


def _loads(text: str) -> Any:
    return json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"has the name {quoted(twice)} twice")
    return value


def _no_constant(text: str) -> Any:
    raise ValueError(f"is not JSON: {text} is no JSON number")
