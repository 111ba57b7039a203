"""The shape of API objects: which fields exist, in which order, and how patches merge them.

In: JSON values as users wrote them.  Out: the same with known fields only, in the order and
with the omissions of the Go structs of a real server, so that responses equal its own byte
for byte.  The invariant: `normalize` of its own result changes nothing.

Source: k8s.io/api types.go (field order, `omitempty`, `patchStrategy`, `patchMergeKey`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

Json = Any
"""A value as orjson reads it."""


class SchemaError(ValueError):
    """A value of the wrong type; the text names the field."""


@dataclass(frozen=True, slots=True)
class Scalar:
    """A plain value of one Go type.

    `keep_zero` says that the zero value (`""`, 0, false) stays when it was given: a pointer
    in Go, or a field without `omitempty`.
    """

    go_type: str
    accepts: tuple[type, ...]
    keep_zero: bool = False


@dataclass(frozen=True, slots=True)
class Anything:
    """A value that is kept as it is."""


@dataclass(frozen=True, slots=True)
class StringMap:
    """A map of strings, written with its keys sorted."""


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list; `merge_key` and `merge` are for strategic merge patches.

    `merge_key` names the field that tells items apart, `merge` stands for a list of plain
    values that patches add to; without either a patch replaces the list.  `null_when_empty`
    writes an empty list as null, as Go does for a nil slice without `omitempty`.
    """

    item: "Node"
    merge_key: str | None = None
    merge: bool = False
    null_when_empty: bool = False


@dataclass(frozen=True, slots=True)
class Struct:
    """An object with known fields, in order; `always` stands in the output even when empty."""

    fields: "Mapping[str, Node]" = field(default_factory=dict)
    always: bool = False


Node = Scalar | Anything | StringMap | ListOf | Struct

TEXT: Final = Scalar("string", (str,))
TEXT_POINTER: Final = Scalar("string", (str,), keep_zero=True)
INT: Final = Scalar("int32", (int,))
INT_POINTER: Final = Scalar("int32", (int,), keep_zero=True)
BOOL: Final = Scalar("bool", (bool,))
BOOL_POINTER: Final = Scalar("bool", (bool,), keep_zero=True)
INT_OR_TEXT: Final = Scalar("intstr.IntOrString", (int, str), keep_zero=True)
ANYTHING: Final = Anything()
_OMIT: Final = object()


def normalize(struct: Struct, value: Json, unknown: list[str]) -> dict[str, Json]:
    """Return an object with the fields of `struct` only, ordered and pruned as Go writes it.

    Paths of fields that are not known are added to `unknown`.  Raises SchemaError for a value
    of the wrong type.
    """
    result = _struct(struct, value, "", unknown)
    return result if isinstance(result, dict) else {}


def _node(node: Node, value: Json, path: str, unknown: list[str]) -> Json:
    match node:
        case Scalar():
            return _scalar(node, value, path)
        case Struct():
            return _struct(node, value, path, unknown)
        case ListOf():
            return _list(node, value, path, unknown)
        case StringMap():
            return _string_map(value, path)
        case Anything():
            return _OMIT if value is None else value


def _scalar(node: Scalar, value: Json, path: str) -> Json:
    if value is None:
        return _OMIT
    if not isinstance(value, node.accepts) or (isinstance(value, bool) and bool not in node.accepts):
        raise _wrong_type(value, path, node.go_type)
    if isinstance(value, int) and not -(2**31) <= value < 2**31 and node.go_type != "int64":
        raise SchemaError(f"json: cannot unmarshal number {value} into field {path[1:]} of type int32")
    return value if value or node.keep_zero else _OMIT


def _struct(node: Struct, value: Json, path: str, unknown: list[str]) -> Json:
    if value is None:
        value = {}
        if not node.always:
            return _OMIT
    if not isinstance(value, dict):
        raise _wrong_type(value, path, "object")
    result: dict[str, Json] = {}
    for name, child in node.fields.items():
        if name in value or isinstance(child, Struct | ListOf):
            written = _node(child, value.get(name), f"{path}.{name}", unknown)
            if written is not _OMIT:
                result[name] = written
    unknown += [f"{path}.{name}"[1:] for name in value if name not in node.fields]
    return result


def _list(node: ListOf, value: Json, path: str, unknown: list[str]) -> Json:
    if value is None or value == []:
        return None if node.null_when_empty else _OMIT
    if not isinstance(value, list):
        raise _wrong_type(value, path, "array")
    items = [_node(node.item, item, f"{path}[{index}]", unknown) for index, item in enumerate(value)]
    if isinstance(node.item, Scalar):
        return ["" if item is _OMIT else item for item in items]
    return [{} if item is _OMIT else item for item in items]


def _string_map(value: Json, path: str) -> Json:
    if not value and (value is None or value == {}):
        return _OMIT
    if not isinstance(value, dict):
        raise _wrong_type(value, path, "map[string]string")
    for key, text in value.items():
        if not isinstance(text, str):
            raise _wrong_type(text, f"{path}.{key}", "string")
    return dict(sorted(value.items()))


def _wrong_type(value: Json, path: str, wanted: str) -> SchemaError:
    kinds = {bool: "bool", int: "number", float: "number", str: "string", list: "array", dict: "object"}
    found = kinds.get(type(value), "null")
    return SchemaError(f"json: cannot unmarshal {found} into field {path[1:] or 'object'} of type {wanted}")
