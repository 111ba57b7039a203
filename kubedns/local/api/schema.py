"""The shape of API objects: which fields exist, in which order, and how patches merge them.

In: JSON values as users wrote them.  Out: the same with known fields only, in the order and
with the omissions of the Go structs of a real server, so that responses equal its own byte
for byte.  The invariant: `normalize` of its own result changes nothing.

A large cluster has a million of these fields, so that paths are made only for messages.

Source: k8s.io/api types.go (field order, `omitempty`, `patchStrategy`, `patchMergeKey`).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

Json = Any
"""A value as orjson reads it."""
_OMIT: Final = object()
_MISSING: Final = object()
_INT32: Final = range(-(2**31), 2**31)
_JSON_TYPES: Final[dict[type, str]] = {
    bool: "bool",
    int: "number",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
}


class SchemaError(ValueError):
    """A value of the wrong type; the text names the field."""

    def __init__(self, problem: str, go_type: str, path: str = "") -> None:
        where = f"field {path.removeprefix('.')}" if path else "object"
        super().__init__(f"json: cannot unmarshal {problem} into {where} of type {go_type}")
        self._problem, self._go_type, self._path = problem, go_type, path

    def inside(self, part: str) -> "SchemaError":
        """Return the same error seen from one level up."""
        return SchemaError(self._problem, self._go_type, part + self._path)


class Node(Protocol):
    """What a field may hold."""

    def read(self, value: Json) -> Json:
        """Return a value as it is stored, or _OMIT; raises SchemaError."""

    def unknown(self, value: Json) -> Iterator[str]:
        """Yield the paths of fields that the schema does not have."""


class _Leaf:
    """A node without fields."""

    def unknown(self, _value: Json) -> Iterator[str]:
        """Yield nothing."""
        return iter(())


@dataclass(frozen=True, slots=True)
class Scalar(_Leaf):
    """A plain value of one Go type.

    `keep_zero` says that the zero value (`""`, 0, false) stays when it was given: a pointer
    in Go, or a field without `omitempty`.
    """

    go_type: str
    accepts: tuple[type, ...]
    keep_zero: bool = False

    def read(self, value: Json) -> Json:
        """Check the type."""
        if value is None:
            return _OMIT
        if type(value) not in self.accepts:
            raise _wrong_type(value, self.go_type)
        if type(value) is int and value not in _INT32 and self.go_type != "int64":
            raise SchemaError(f"number {value}", "int32")
        return value if value or self.keep_zero else _OMIT


class Anything(_Leaf):
    """A value that is kept as it is."""

    def read(self, value: Json) -> Json:
        """Keep it."""
        return _OMIT if value is None else value


class StringMap(_Leaf):
    """A map of strings, written with its keys sorted."""

    def read(self, value: Json) -> Json:
        """Check and sort it."""
        if value is None or value == {}:
            return _OMIT
        if type(value) is not dict:
            raise _wrong_type(value, "map[string]string")
        for key, text in value.items():
            if type(text) is not str:
                raise _wrong_type(text, "string").inside(f".{key}")
        return dict(sorted(value.items()))


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list; `merge_key` and `merge` are for strategic merge patches.

    `merge_key` names the field that tells items apart, `merge` stands for a list of plain
    values that patches add to; without either a patch replaces the list.  `null_when_empty`
    writes an empty list as null, as Go does for a nil slice without `omitempty`.
    """

    item: Node
    merge_key: str | None = None
    merge: bool = False
    null_when_empty: bool = False

    def read(self, value: Json) -> Json:
        """Read each item."""
        if value is None or value == []:
            return None if self.null_when_empty else _OMIT
        if type(value) is not list:
            raise _wrong_type(value, "array")
        result: list[Json] = []
        read, empty = self.item.read, "" if isinstance(self.item, Scalar) else {}
        for item in value:
            try:
                written = read(item)
            except SchemaError as error:
                raise error.inside(f"[{len(result)}]") from error
            result.append(empty if written is _OMIT else written)
        return result

    def unknown(self, value: Json) -> Iterator[str]:
        """Yield unknown fields of the items."""
        for index, item in enumerate(value or ()):
            for path in self.item.unknown(item):
                yield f"[{index}]{path}"


@dataclass(frozen=True, slots=True)
class Struct:
    """An object with known fields, in order; `always` stands in the output even when empty."""

    fields: Mapping[str, Node] = field(default_factory=dict)
    always: bool = False

    def read(self, value: Json) -> Json:
        """Read each known field."""
        if value is None:
            if not self.always:
                return _OMIT
            value = {}
        if type(value) is not dict:
            raise _wrong_type(value, "object")
        result: dict[str, Json] = {}
        for name, child in self.fields.items():
            given = value.get(name, _MISSING)
            if given is _MISSING:
                if type(child) not in {Struct, ListOf}:
                    continue
                given = None
            try:
                written = child.read(given)
            except SchemaError as error:
                raise error.inside(f".{name}") from error
            if written is not _OMIT:
                result[name] = written
        return result

    def unknown(self, value: Json) -> Iterator[str]:
        """Yield unknown fields, here and below."""
        for name, part in (value or {}).items():
            if name not in self.fields:
                yield f".{name}"
            else:
                for path in self.fields[name].unknown(part):
                    yield f".{name}{path}"


TEXT: Final = Scalar("string", (str,))
TEXT_POINTER: Final = Scalar("string", (str,), keep_zero=True)
INT: Final = Scalar("int32", (int,))
INT_POINTER: Final = Scalar("int32", (int,), keep_zero=True)
BOOL: Final = Scalar("bool", (bool,))
BOOL_POINTER: Final = Scalar("bool", (bool,), keep_zero=True)
INT_OR_TEXT: Final = Scalar("intstr.IntOrString", (int, str), keep_zero=True)
ANYTHING: Final = Anything()


def normalize(struct: Struct, value: Json) -> dict[str, Json]:
    """Return an object with the fields of `struct` only, ordered and pruned as Go writes it.

    Raises SchemaError for a value of the wrong type.
    """
    result = struct.read({} if value is None else value)
    return result if isinstance(result, dict) else {}


def unknown_fields(struct: Struct, value: Json) -> list[str]:
    """Return the paths of fields that `normalize` leaves out because nobody knows them."""
    return [path.removeprefix(".") for path in struct.unknown(value)]


def _wrong_type(value: Json, go_type: str) -> SchemaError:
    return SchemaError(_JSON_TYPES.get(type(value), "null"), go_type)
