"""Which objects a list returns, page by page.

In: the parameters of a list, the store.  Out: a page: entries, version, continue token, count
of the rest.  The invariant: all pages of one list show the state of one version, unless the
client took the token of a 410 and so agreed to an inconsistent rest.

Source: apiserver pkg/storage (continue.go, etcd3/store.go); recorded responses.
"""

import base64
import binascii
from dataclasses import dataclass

import orjson

from kubedns.local.api import errors
from kubedns.local.api.errors import ApiError, Cause
from kubedns.local.api.history import Entry, ExpiredError
from kubedns.local.api.kinds import Resource
from kubedns.local.api.selectors import EVERYTHING, Selector
from kubedns.local.api.store import Store

_EXPIRED_TOKEN = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new "
    "list without the continue parameter, or use the continue token in this response to retrieve the "
    "remainder of the results. Continuing with the provided token results in an inconsistent list - objects "
    "that were created, modified, or deleted between the time the first chunk was returned and now may show "
    "up in the list."
)


_LONGEST_VERSION = len(str(2**64))


@dataclass(frozen=True, slots=True)
class ListQuery:
    """What is asked for: `limit` 0 means all; version and match as the client wrote them."""

    namespace: str = ""
    selector: Selector = EVERYTHING
    limit: int = 0
    token: str = ""
    version: str = ""
    match: str = ""


@dataclass(frozen=True, slots=True)
class Page:
    """A page: `token` leads to the next, `remaining` counts its objects (None: not said)."""

    entries: list[Entry]
    version: int
    token: str = ""
    remaining: int | None = None


def list_page(store: Store, resource: Resource, query: ListQuery) -> Page:
    """Return a page; raises ApiError for a version or token that can't be served."""
    if query.token:
        return _continued(store, resource, query)
    wanted = parse_version(query.version)
    if query.match and not query.version:
        raise _options_error(
            "resourceVersionMatch", "resourceVersionMatch is forbidden unless resourceVersion is provided"
        )
    if query.match not in {"", "Exact", "NotOlderThan"}:
        raise _options_error("resourceVersionMatch", f"unknown value {query.match!r}")
    if wanted > store.version:
        raise errors.version_too_large(wanted, store.version)
    if query.match == "Exact" or (wanted and query.limit and not query.match):
        return _page(store, resource, query, wanted, "")
    return _page(store, resource, query, store.version, "")


def parse_version(text: str) -> int:
    """Return a resourceVersion, 0 for none; raises the 500 that a real server gives."""
    if not text:
        return 0
    if not (text.isascii() and text.isdigit() and len(text) <= _LONGEST_VERSION) or int(text) >= 2**64:
        raise errors.bad_version(text)
    return int(text)


def _continued(store: Store, resource: Resource, query: ListQuery) -> Page:
    if query.version not in {"", "0"}:
        raise errors.bad_request("specifying resource version is not allowed when using continue")
    version, start = _decode(query.token)
    return _page(store, resource, query, store.version if version < 0 else version, start)


def _page(store: Store, resource: Resource, query: ListQuery, version: int, start: str) -> Page:
    if version == store.version:
        entries = store.entries(resource, query.namespace, start=start)
    else:
        try:
            entries = store.entries_at(resource, version, query.namespace, start)
        except ExpiredError as error:
            if start:
                fresh = {"continue": _encode(-1, start.removeprefix("/"))}
                raise ApiError(410, "Expired", _EXPIRED_TOKEN, metadata=fresh) from error
            raise errors.expired_version(version, error.floor) from error
    if query.selector:
        entries = [entry for entry in entries if entry.matches(query.selector)]
    if not query.limit or len(entries) <= query.limit:
        return Page(entries, version)
    page = entries[: query.limit]
    remaining = None if query.selector else len(entries) - query.limit
    return Page(page, version, _encode(version, f"{page[-1].key}\0"), remaining)


def _encode(version: int, start: str) -> str:
    token = b'{"v":"meta.k8s.io/v1","rv":%d,"start":%b}' % (version, orjson.dumps(start))
    return base64.urlsafe_b64encode(token).rstrip(b"=").decode()


def _decode(text: str) -> tuple[int, str]:
    try:
        token = orjson.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
        version, start = int(token["rv"]), str(token["start"])
    except (binascii.Error, ValueError, TypeError, KeyError) as error:
        raise errors.bad_request(f"continue key is not valid: {error}") from error
    return version, f"/{start.removeprefix('/')}"


def _options_error(field: str, detail: str) -> ApiError:
    return errors.invalid(
        "ListOptions",
        "meta.k8s.io",
        "",
        [Cause("FieldValueForbidden", "Forbidden", field, detail)],
    )


def streaming_list_refused() -> ApiError:
    """Return the 422 of a server that does not stream lists."""
    return _options_error(
        "sendInitialEvents",
        "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled",
    )


def streaming_list_malformed() -> ApiError:
    """Return the 422 of sendInitialEvents without the match that it needs."""
    return _options_error(
        "resourceVersionMatch",
        "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
    )
