"""Label and field selectors.

In: the text of `labelSelector` or `fieldSelector`.  Out: a test of an object's labels, or of
its name and namespace.  As in Kubernetes `!=` and `notin` hold for objects without the label.

Source: apimachinery pkg/labels/selector.go, pkg/fields/selector.go.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

Labels = Mapping[str, str]
Requirement = Callable[[Labels], bool]

_KEY: Final = r"[A-Za-z0-9](?:[A-Za-z0-9_./-]*[A-Za-z0-9])?"
_VALUE: Final = r"(?:[A-Za-z0-9](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?)?"
_EXISTS: Final = re.compile(rf"(!?)\s*({_KEY})")
_EQUALITY: Final = re.compile(rf"({_KEY})\s*(==|=|!=)\s*({_VALUE})")
_ORDER: Final = re.compile(rf"({_KEY})\s*([<>])\s*(-?\d+)")
_SET: Final = re.compile(rf"({_KEY})\s+(in|notin)\s*\(([^()]*)\)")
_COMMA_OUTSIDE: Final = re.compile(r",(?![^(]*\))")
_FIELD: Final = re.compile(r"([A-Za-z.]+)\s*(==|=|!=)\s*(\S*)")


@dataclass(frozen=True, slots=True)
class Selector:
    """Which objects are meant: all label requirements and all field requirements hold.

    A requirement is called with the labels, or with the fields `metadata.name` and
    `metadata.namespace`.
    """

    labels: tuple[Requirement, ...] = ()
    fields: tuple[Requirement, ...] = ()

    def __bool__(self) -> bool:
        """Whether anything is left out."""
        return bool(self.labels or self.fields)

    def matches(self, labels: Labels, namespace: str, name: str) -> bool:
        """Whether an object is meant."""
        if self.fields:
            fields = {"metadata.name": name, "metadata.namespace": namespace}
            if not all(holds(fields) for holds in self.fields):
                return False
        return all(holds(labels) for holds in self.labels)


EVERYTHING: Final = Selector()


def parse_labels(text: str) -> tuple[Requirement, ...]:
    """Return the requirements of a label selector; raises ValueError with the reason."""
    if not text.strip():
        return ()
    return tuple(_requirement(part.strip()) for part in _COMMA_OUTSIDE.split(text))


def _requirement(part: str) -> Requirement:
    if match := _SET.fullmatch(part):
        values = frozenset(value.strip() for value in match[3].split(","))
        return _one_of(match[1], values, wanted=match[2] == "in")
    if match := _EQUALITY.fullmatch(part):
        return _one_of(match[1], frozenset({match[3]}), wanted=match[2] != "!=")
    if match := _ORDER.fullmatch(part):
        return _order(match[1], match[2], int(match[3]))
    if match := _EXISTS.fullmatch(part):
        return _exists(match[2], wanted=not match[1])
    raise ValueError(f"unable to parse requirement: {part!r}")


def _one_of(key: str, values: frozenset[str], *, wanted: bool) -> Requirement:
    return lambda labels: (labels.get(key) in values) is wanted


def _exists(key: str, *, wanted: bool) -> Requirement:
    return lambda labels: (key in labels) is wanted


def _order(key: str, operator: str, bound: int) -> Requirement:
    def holds(labels: Labels) -> bool:
        try:
            value = int(labels[key])
        except (KeyError, ValueError):
            return False
        return value > bound if operator == ">" else value < bound

    return holds


def parse_fields(text: str) -> tuple[Requirement, ...]:
    """Return the requirements of a field selector on name and namespace; raises ValueError."""
    requirements = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        match = _FIELD.fullmatch(part)
        if match is None:
            raise ValueError(f"invalid selector: {text!r}; can't understand {part!r}")
        if match[1] not in {"metadata.name", "metadata.namespace"}:
            raise ValueError(f"field label not supported: {match[1]}")
        requirements.append(_field(match[1], match[3], wanted=match[2] != "!="))
    return tuple(requirements)


def named(name: str) -> Requirement:
    """Return the requirement that an object has a name."""
    return _field("metadata.name", name, wanted=True)


def _field(name: str, value: str, *, wanted: bool) -> Requirement:
    return lambda fields: (fields[name] == value) is wanted
