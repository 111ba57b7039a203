"""Bytes of responses: objects, watch events, lists.

An object is kept as its JSON without kind and apiVersion, because that is how lists hold it;
everything else is put around those bytes, so that no object is serialized twice.

Source: recorded responses.
"""

from typing import Any

import orjson

from kubedns.local.api.kinds import Resource


def dump(value: Any) -> bytes:
    """Return the compact JSON of a value."""
    return orjson.dumps(value)


def with_kind(resource: Resource, item: bytes) -> bytes:
    """Return an object as it stands alone: kind and apiVersion first."""
    return b'{"kind":"%b","apiVersion":"%b",%b' % (
        resource.kind.encode(),
        resource.api_version.encode(),
        item[1:],
    )


def event_line(kind: str, resource: Resource, item: bytes) -> bytes:
    """Return one line of a watch: `kind` is ADDED, MODIFIED or DELETED."""
    return b'{"type":"%b","object":%b}\n' % (kind.encode(), with_kind(resource, item))


def bookmark_line(resource: Resource, version: int, *, initial_events_end: bool = False) -> bytes:
    """Return the line that tells a watcher which version it has seen."""
    annotations = ',"annotations":{"k8s.io/initial-events-end":"true"}' if initial_events_end else ""
    content = f",{resource.bookmark}" if resource.bookmark else ""
    item = f'{{"metadata":{{"resourceVersion":"{version}"{annotations}}}{content}}}'
    return event_line("BOOKMARK", resource, item.encode())


def error_line(status: dict[str, Any]) -> bytes:
    """Return the line that ends a watch with a Status."""
    return dump({"type": "ERROR", "object": status}) + b"\n"


def list_head(resource: Resource, version: int, token: str = "", remaining: int | None = None) -> bytes:
    """Return a list up to the first item; `remaining` counts what is left after this page."""
    metadata: dict[str, Any] = {"resourceVersion": str(version)}
    if token:
        metadata["continue"] = token
    if remaining is not None:
        metadata["remainingItemCount"] = remaining
    head = dump({"kind": resource.list_kind, "apiVersion": resource.api_version, "metadata": metadata})
    return head[:-1] + b',"items":['


def pretty(body: bytes) -> bytes:
    """Return JSON indented as the server does for people at a terminal."""
    return orjson.dumps(orjson.loads(body), option=orjson.OPT_INDENT_2)
