"""What an HTTP request says: path, parameters, body.

In: an aiohttp request.  Out: the resource and the queries that other modules take, or an
ApiError with the words of a real server.
"""

from dataclasses import dataclass
from typing import Any, Final

import orjson
from aiohttp import web

from kubedns.local.api import errors
from kubedns.local.api.errors import ApiError
from kubedns.local.api.intake import Write
from kubedns.local.api.kinds import NAMESPACES, Resource, resource_at
from kubedns.local.api.listing import ListQuery, streaming_list_malformed
from kubedns.local.api.registry import Preconditions
from kubedns.local.api.selectors import Selector, named, parse_fields, parse_labels
from kubedns.local.api.watching import WatchQuery

LARGEST_BODY: Final = 3 * 2**20
"""Bytes of the largest body taken, as a real server limits it."""
_PRETTY_AGENTS: Final = ("curl", "Wget", "Mozilla/5.0")


@dataclass(frozen=True, slots=True)
class Target:
    """What a path names: a collection when `name` is empty; `status` for the subresource."""

    resource: Resource
    namespace: str = ""
    name: str = ""
    status: bool = False


def target(request: web.Request) -> Target:
    """Return what the path names; raises the 404 of a path that is not served."""
    group = request.match_info.get("group", "")
    parts = [part for part in request.match_info["rest"].split("/") if part]
    namespace = ""
    if len(parts) >= 3 and parts[0] == "namespaces" and parts[2] not in {"status", "finalize"}:
        namespace, parts = parts[1], parts[2:]
    resource = resource_at(group, parts[0]) if parts else None
    status = len(parts) == 3 and parts[2] == "status"
    if resource is None or len(parts) > 3 or (len(parts) == 3 and not (status and resource.has_status)):
        raise errors.no_such_path()
    if namespace and not resource.namespaced:
        raise errors.no_such_path()
    name = parts[1] if len(parts) > 1 else ""
    if name and resource.namespaced and not namespace:
        raise errors.no_such_path()
    return Target(resource, namespace, name, status)


def flag(request: web.Request, name: str) -> bool:
    """Return a boolean parameter, as Go's strconv.ParseBool reads it; unreadable means false."""
    return request.query.get(name, "") in {"1", "t", "T", "true", "TRUE", "True"}


def wants_pretty(request: web.Request) -> bool:
    """Whether the response is to be indented: asked for, or a person's client."""
    if "pretty" in request.query:
        return request.query["pretty"] not in {"0", "false"}
    return request.headers.get("User-Agent", "").startswith(_PRETTY_AGENTS)


def check_accept(request: web.Request) -> None:
    """Raise the 406 when the client takes no JSON."""
    accept = request.headers.get("Accept", "")
    wanted = [part.partition(";")[0].strip() for part in accept.split(",") if part.strip()]
    if wanted and not {"application/json", "application/*", "*/*"}.intersection(wanted):
        message = "only the following media types are accepted: application/json"
        raise ApiError(406, "NotAcceptable", message)


def selector(request: web.Request) -> Selector:
    """Return the label and field selectors; raises the 400 of one that can't be read."""
    try:
        labels = parse_labels(request.query.get("labelSelector", ""))
        fields = parse_fields(request.query.get("fieldSelector", ""))
    except ValueError as error:
        raise errors.bad_request(str(error)) from error
    return Selector(labels, fields)


def list_query(request: web.Request, namespace: str) -> ListQuery:
    """Return the parameters of a list."""
    return ListQuery(
        namespace,
        selector(request),
        max(0, int(_number(request, "limit"))),
        request.query.get("continue", ""),
        request.query.get("resourceVersion", ""),
        request.query.get("resourceVersionMatch", ""),
    )


def watch_query(request: web.Request, place: Target) -> WatchQuery:
    """Return the parameters of a watch of a collection, or of one object."""
    initial = flag(request, "sendInitialEvents") if "sendInitialEvents" in request.query else None
    if initial is not None and request.query.get("resourceVersionMatch") != "NotOlderThan":
        raise streaming_list_malformed()
    chosen = selector(request)
    if place.name:
        chosen = Selector(chosen.labels, (*chosen.fields, named(place.name)))
    return WatchQuery(
        place.namespace,
        chosen,
        request.query.get("resourceVersion", ""),
        flag(request, "allowWatchBookmarks"),
        max(0.0, _number(request, "timeoutSeconds")),
        initial,
    )


def _number(request: web.Request, name: str) -> float:
    text = request.query.get(name, "") or "0"
    try:
        return float(int(text))
    except ValueError as error:
        message = f'invalid value for {name}: strconv.ParseInt: parsing "{text}": invalid syntax'
        raise errors.bad_request(message) from error


async def json_body(request: web.Request) -> Any:
    """Return the body of a request; raises 415 for anything but JSON and 400 for broken JSON."""
    media_type = request.headers.get("Content-Type", "").partition(";")[0].strip().lower()
    if not (media_type in {"", "application/json"} or media_type.endswith("+json")):
        raise ApiError(
            415,
            "UnsupportedMediaType",
            f"the body of the request was in an unknown format ({media_type}) - accepted media types include: "
            "application/json; with kubectl, write the object to a file and use `kubectl apply -f FILE`",
        )
    try:
        content = await request.read()
    except web.HTTPRequestEntityTooLarge as error:
        message = f"Request entity too large: limit is {LARGEST_BODY}"
        raise ApiError(413, "RequestEntityTooLarge", message) from error
    if not content:
        return {}
    try:
        return orjson.loads(content)
    except orjson.JSONDecodeError as error:
        raise errors.bad_request(f"the object provided is not valid JSON: {error}") from error


async def json_object(request: web.Request) -> dict[str, Any]:
    """Return the body of a request that must be a JSON object."""
    body = await json_body(request)
    if not isinstance(body, dict) or not isinstance(body.get("metadata") or {}, dict):
        raise errors.bad_request("the object provided is not a Kubernetes object")
    return body


def write_options(request: web.Request, options: dict[str, Any] | None = None) -> Write:
    """Return how a write is meant, from parameters and, for a deletion, the options in its body."""
    asked = request.query.getall("dryRun", []) + list((options or {}).get("dryRun") or [])
    if any(value != "All" for value in asked):
        raise errors.bad_request(f"dryRun takes the value All, not {asked[0]!r}")
    return Write(dry_run=bool(asked), strict=request.query.get("fieldValidation") == "Strict")


def preconditions(options: dict[str, Any]) -> Preconditions:
    """Return what a deletion asks to hold."""
    wanted = options.get("preconditions") or {}
    return Preconditions(wanted.get("uid"), wanted.get("resourceVersion"))


def collection_exists(place: Target) -> bool:
    """Whether a collection may be deleted as a whole."""
    return place.resource is not NAMESPACES
