"""From the body of a request to an object as it may be stored.

In: JSON.  Out: the fields of the kind, in order, with static defaults; or the 400 of what
can't be read.

Source: apimachinery pkg/runtime/serializer (decoding, strict decoding).
"""

from dataclasses import dataclass, field
from typing import Any, Final

from kubedns.local.api import errors
from kubedns.local.api.defaults import apply_defaults
from kubedns.local.api.errors import ApiError
from kubedns.local.api.kinds import Resource
from kubedns.local.api.schema import SchemaError, normalize, unknown_fields

_Object = dict[str, Any]
_SETTLED: Final = frozenset({"endpoints", "subsets", "data", "binaryData"})
"""Bulky fields that nothing is added to once they are read."""


@dataclass(slots=True)
class Write:
    """How a write is meant, and what there is to say about it.

    `strict` refuses unknown fields; otherwise they are left out and `warnings` names them.
    """

    dry_run: bool = False
    strict: bool = False
    warnings: list[str] = field(default_factory=list)


def read_object(resource: Resource, namespace: str, body: _Object, write: Write | None) -> _Object:
    """Return the object in a request with defaults; raises 400 for one of another kind.

    Without `write` unknown fields are left out silently.
    """
    for name, wanted in (("apiVersion", resource.api_version), ("kind", resource.kind)):
        if body.get(name, wanted) != wanted:
            raise errors.bad_request(
                f"the object provided is unrecognized or of the wrong type: {name} is {body[name]!r}, "
                f"and this path takes {resource.api_version} {resource.kind}"
            )
    content = {name: part for name, part in body.items() if name not in {"apiVersion", "kind"}}
    try:
        value = normalize(resource.schema, content)
    except SchemaError as error:
        raise _unreadable(resource, str(error)) from error
    if write is not None:
        problems = [f'unknown field "{path}"' for path in unknown_fields(resource.schema, content)]
        if problems and write.strict:
            raise _unreadable(resource, f"strict decoding error: {', '.join(problems)}")
        write.warnings += problems
    metadata = value["metadata"]
    if metadata.get("namespace", namespace) != namespace and resource.namespaced:
        raise errors.bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    metadata.pop("namespace", None)
    if namespace:
        metadata["namespace"] = namespace
    apply_defaults(resource, value)
    return value


def check_name(body: _Object, name: str) -> None:
    """Raise the 400 of an object that names itself otherwise than its path; it need not name itself."""
    given = (body.get("metadata") or {}).get("name", name)
    if given != name:
        raise errors.bad_request(
            f"the name of the object ({given}) does not match the name on the URL ({name})"
        )


def reshape(resource: Resource, value: _Object) -> _Object:
    """Put in order again what defaults and decisions added."""
    value["metadata"].setdefault("resourceVersion", "0")
    changed = {name: part for name, part in value.items() if name not in _SETTLED}
    settled = {name: part for name, part in value.items() if name in _SETTLED}
    shaped = normalize(resource.schema, changed) | settled
    return {name: shaped[name] for name in resource.schema.fields if name in shaped}


def _unreadable(resource: Resource, problem: str) -> ApiError:
    version = resource.api_version.rpartition("/")[2]
    return errors.bad_request(
        f'{resource.kind} in version "{version}" cannot be handled as a {resource.kind}: {problem}'
    )
