"""Refusals as the API server words them: Status objects with code, reason and details.

Source: apimachinery pkg/api/errors; recorded responses.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kubedns.local.api.kinds import Resource


@dataclass(frozen=True, slots=True)
class Cause:
    """One fault of one field; `kind` is the text before the detail, such as `Invalid value`."""

    reason: str
    kind: str
    field: str
    detail: str = ""

    @property
    def message(self) -> str:
        """The text without the field's name."""
        return f"{self.kind}: {self.detail}" if self.detail else self.kind


def required(field: str, detail: str = "") -> Cause:
    """Return the cause of a missing field."""
    return Cause("FieldValueRequired", "Required value", field, detail)


def invalid_value(field: str, value: object, detail: str) -> Cause:
    """Return the cause of a value that can't stand."""
    shown = f'"{value}"' if isinstance(value, str) else _go_text(value)
    return Cause("FieldValueInvalid", f"Invalid value: {shown}", field, detail)


def duplicate(field: str, value: object) -> Cause:
    """Return the cause of a value that stands twice."""
    shown = f'"{value}"' if isinstance(value, str) else _go_text(value)
    return Cause("FieldValueDuplicate", f"Duplicate value: {shown}", field)


def not_supported(field: str, value: str, supported: tuple[str, ...]) -> Cause:
    """Return the cause of a value outside an enumeration."""
    listed = ", ".join(f'"{one}"' for one in supported)
    return Cause(
        "FieldValueNotSupported", f'Unsupported value: "{value}"', field, f"supported values: {listed}"
    )


def forbidden_field(field: str, detail: str) -> Cause:
    """Return the cause of a field that may not be set here."""
    return Cause("FieldValueForbidden", "Forbidden", field, detail)


def _go_text(value: object) -> str:
    if isinstance(value, list):
        return "[" + ",".join(f'"{item}"' for item in value) + "]"
    if isinstance(value, dict):
        return "{...}"
    return "null" if value is None else str(value)


class ApiError(Exception):
    """A refused request: the HTTP status, and the Status object that tells why."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        details: Mapping[str, Any] | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details
        self.metadata = metadata or {}

    @property
    def body(self) -> dict[str, Any]:
        """The Status object."""
        status: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": dict(self.metadata),
            "status": "Failure",
            "message": self.message,
        }
        if self.reason:
            status["reason"] = self.reason
        if self.details is not None:
            status["details"] = dict(self.details)
        status["code"] = self.code
        return status


def details_of(resource: Resource, name: str = "", *, kind: str = "") -> dict[str, Any]:
    """Return the details of a Status about one object or, without a name, a collection."""
    details: dict[str, Any] = {"name": name} if name else {}
    if resource.group:
        details["group"] = resource.group
    details["kind"] = kind or resource.plural
    return details


def not_found(resource: Resource, name: str) -> ApiError:
    """Return the 404 of an object that does not exist."""
    return ApiError(404, "NotFound", f'{resource.qualified} "{name}" not found', details_of(resource, name))


def no_such_path() -> ApiError:
    """Return the 404 of a path that is not served."""
    return ApiError(404, "NotFound", "the server could not find the requested resource", {})


def already_exists(resource: Resource, name: str) -> ApiError:
    """Return the 409 of a name that is taken."""
    return ApiError(
        409, "AlreadyExists", f'{resource.qualified} "{name}" already exists', details_of(resource, name)
    )


def conflict(resource: Resource, name: str, detail: str = "") -> ApiError:
    """Return the 409 of an update that was made from an older version."""
    why = detail or (
        "the object has been modified; please apply your changes to the latest version and try again"
    )
    return ApiError(
        409,
        "Conflict",
        f'Operation cannot be fulfilled on {resource.qualified} "{name}": {why}',
        details_of(resource, name),
    )


def invalid(kind: str, group: str, name: str, causes: list[Cause]) -> ApiError:
    """Return the 422 of an object whose fields can't stand."""
    texts = [f"{cause.field}: {cause.message}" for cause in causes]
    shown = texts[0] if len(texts) == 1 else "[" + ", ".join(texts) + "]"
    details: dict[str, Any] = {"name": name} if name else {}
    if group:
        details["group"] = group
    details["kind"] = kind
    details["causes"] = [
        {"reason": cause.reason, "message": cause.message, "field": cause.field} for cause in causes
    ]
    qualified = f"{kind}.{group}" if group else kind
    return ApiError(422, "Invalid", f'{qualified} "{name}" is invalid: {shown}', details)


def bad_request(message: str) -> ApiError:
    """Return the 400 of a request that can't be read."""
    return ApiError(400, "BadRequest", message)


def expired_version(version: int, oldest: int) -> ApiError:
    """Return the 410 of a version whose history is gone; `oldest` is the last one forgotten."""
    return ApiError(410, "Expired", f"too old resource version: {version} ({oldest})")


def version_too_large(version: int, current: int) -> ApiError:
    """Return the 504 of a version from the future."""
    return ApiError(
        504,
        "Timeout",
        f"Timeout: Too large resource version: {version}, current: {current}",
        {
            "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
            "retryAfterSeconds": 1,
        },
    )


def bad_version(text: str) -> ApiError:
    """Return the 500 of a resourceVersion that is no number, as a real server answers it."""
    problem = "value out of range" if text.isascii() and text.isdigit() else "invalid syntax"
    message = f'resourceVersion: Invalid value: "{text}": strconv.ParseUint: parsing "{text}": {problem}'
    return ApiError(500, "", message)
