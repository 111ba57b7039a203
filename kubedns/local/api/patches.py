"""The patch formats that the API takes.

In: the media type and body of a PATCH, the object.  Out: the patched object.

Source: RFC 7386 (merge), RFC 6902 (JSON patch, by the library jsonpatch), strategic merge.
"""

from collections.abc import Callable
from typing import Any, Final

import jsonpatch
import jsonpointer

from kubedns.local.api.errors import ApiError, bad_request
from kubedns.local.api.schema import Json, Struct
from kubedns.local.api.strategic import PatchError, strategic_merge

_Object = dict[str, Any]


def apply_patch(media_type: str, schema: Struct, value: _Object, patch: Json) -> _Object:
    """Return a patched copy of an object.

    Raises ApiError: 415 for a media type that is not served, 400 for a patch that is none,
    422 for one that does not fit the object.
    """
    check_format(media_type)
    result = _FORMATS[media_type](schema, value, patch)
    if not isinstance(result, dict):
        raise bad_request("the patched object is not a JSON object")
    return result


def check_format(media_type: str) -> None:
    """Raise the 415 of a patch format that is not served."""
    if media_type in _FORMATS:
        return
    if media_type.startswith("application/apply-patch"):
        hint = "server-side apply is not served here; use `kubectl apply` without --server-side"
    else:
        hint = f"accepted media types include: {', '.join(_FORMATS)}"
    message = f"the body of the request was in an unknown format ({media_type}) - {hint}"
    raise ApiError(415, "UnsupportedMediaType", message)


_MOST_OPERATIONS: Final = 10_000
"""As of a real server."""
_MOST_COPIES: Final = 10
"""Each copy may double the object; a real server limits the octets that are copied instead."""


def merge_patch(value: Json, patch: Json) -> Json:
    """Return a value with a JSON merge patch applied (RFC 7386 2)."""
    if not isinstance(patch, dict):
        return patch
    result = dict(value) if isinstance(value, dict) else {}
    for name, change in patch.items():
        if change is None:
            result.pop(name, None)
        else:
            result[name] = merge_patch(result.get(name), change)
    return result


def _merge(_schema: Struct, value: _Object, patch: Json) -> Json:
    return merge_patch(value, patch)


def _json_patch(_schema: Struct, value: _Object, patch: Json) -> Json:
    if isinstance(patch, list) and len(patch) > _MOST_OPERATIONS:
        raise ApiError(
            413, "RequestEntityTooLarge", f"a JSON patch has at most {_MOST_OPERATIONS} operations"
        )
    try:
        copies = sum(isinstance(step, dict) and step.get("op") == "copy" for step in patch)
        if copies > _MOST_COPIES:
            raise bad_request(f"a JSON patch copies at most {_MOST_COPIES} values here")
        return jsonpatch.JsonPatch(patch).apply(value)
    except (jsonpatch.JsonPatchConflict, jsonpatch.JsonPatchTestFailed) as error:
        raise _unprocessable(error) from error
    except (jsonpatch.JsonPatchException, jsonpointer.JsonPointerException, TypeError) as error:
        raise bad_request(f"error decoding patch: {error}") from error


def _strategic(schema: Struct, value: _Object, patch: Json) -> Json:
    try:
        return strategic_merge(schema, value, patch)
    except PatchError as error:
        raise bad_request(str(error)) from error


def _unprocessable(error: Exception) -> ApiError:
    return ApiError(
        422, "Invalid", f"the server rejected our request due to an error in our request: {error}", {}
    )


_FORMATS: Final[dict[str, Callable[[Struct, _Object, Json], Json]]] = {
    "application/json-patch+json": _json_patch,
    "application/merge-patch+json": _merge,
    "application/strategic-merge-patch+json": _strategic,
}
