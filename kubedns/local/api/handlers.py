"""HTTP requests to the API and their responses.

In: requests.  Out: JSON, streamed where it is long.  Every refusal is a Status object, also
one that comes from a fault of ours.
"""

import asyncio
import logging
import zlib
from collections.abc import Awaitable, Callable
from typing import Any, Final
from uuid import uuid4

from aiohttp import web

from kubedns.local.api import discovery, errors, requests
from kubedns.local.api.access import Access
from kubedns.local.api.errors import ApiError
from kubedns.local.api.history import Entry
from kubedns.local.api.intake import Write
from kubedns.local.api.kinds import DISCOVERY_GROUP, NAMESPACES, Resource
from kubedns.local.api.listing import list_page, streaming_list_refused
from kubedns.local.api.patches import check_format
from kubedns.local.api.registry import Registry
from kubedns.local.api.requests import Target
from kubedns.local.api.watching import StreamingLists, Watch
from kubedns.local.api.wire import dump, list_head, pretty, with_kind

_log = logging.getLogger(__name__)
_BATCH: Final = 500
_GZIP_FROM: Final = 128 * 1024
"""Bytes from which a list is compressed, as a real server does."""
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
ResourceHandler = Callable[[web.Request, Target], Awaitable[web.StreamResponse]]


class Api:
    """The routes of the API in front of a registry.

    `bookmark_interval` in seconds.  `watches` are the connections that a watch is
    being streamed to.
    """

    def __init__(self, registry: Registry, access: Access, bookmark_interval: float = 60) -> None:
        self.registry = registry
        self.access = access
        self.bookmark_interval = bookmark_interval
        self.streaming_lists: StreamingLists = "on"
        self.watches: set[asyncio.BaseTransport] = set()

    def application(self) -> web.Application:
        """Return the aiohttp application."""
        app = web.Application(middlewares=[self._guard], client_max_size=requests.LARGEST_BODY)
        add = app.router.add_route
        for path in ("/healthz", "/livez", "/readyz"):
            add("GET", path, _ok)
        add("GET", "/version", _document(lambda _: discovery.VERSION))
        add("GET", "/openapi/v2", _openapi)
        add("GET", "/api", _document(lambda request: discovery.api_versions(request.host)))
        add("GET", "/apis", _document(lambda _: discovery.api_groups()))
        add("GET", f"/apis/{DISCOVERY_GROUP}", _document(lambda _: discovery.api_group()))
        add("GET", "/api/v1", _document(lambda _: discovery.api_resources("")))
        add(
            "GET",
            f"/apis/{DISCOVERY_GROUP}/v1",
            _document(lambda _: discovery.api_resources(DISCOVERY_GROUP)),
        )
        add("*", "/api/v1/{rest:.+}", self._resource)
        add("*", f"/apis/{{group:{DISCOVERY_GROUP.replace('.', '[.]')}}}/v1/{{rest:.+}}", self._resource)
        return app

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Ask for the token, and turn every failure into a Status."""
        try:
            self._user(request)
            return await handler(request)
        except ApiError as error:
            return _refusal(request, error)
        except web.HTTPNotFound:
            return _refusal(request, errors.no_such_path())
        except web.HTTPMethodNotAllowed:
            return _refusal(request, _method_not_allowed())
        except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
            _log.exception("%s %s failed", request.method, request.path_qs)
            problem = ApiError(500, "InternalError", f"Internal error occurred: {error}", {})
            return _refusal(request, problem)

    async def _resource(self, request: web.Request) -> web.StreamResponse:
        place = requests.target(request)
        requests.check_accept(request)
        single, method = bool(place.name), request.method
        verb: str
        handler: ResourceHandler
        reads = method in {"GET", "HEAD"}
        if reads:
            watch = requests.flag(request, "watch")
            reader = self._watch if watch else self._get if single else self._list
            verb, handler = "watch" if watch else "get" if single else "list", reader
        else:
            verb, handler = self._writer(method, place)
        namespace = place.name if place.resource is NAMESPACES else place.namespace
        self.access.check(self._user(request), verb, place.resource, namespace, place.name)
        response = await handler(request, place)
        if not reads:
            await asyncio.sleep(0)  # the watchers learn of a change no later than who made it
        return response

    def _user(self, request: web.Request) -> str:
        return self.access.user(request.headers.get("Authorization"))

    def _writer(self, method: str, place: Target) -> tuple[str, ResourceHandler]:
        """Return verb and handler of a writing method; raises the 405."""
        writers: dict[str, tuple[str, ResourceHandler]]
        if place.name:
            writers = {"PUT": ("update", self._update), "PATCH": ("patch", self._patch)}
            if not place.status:
                writers["DELETE"] = ("delete", self._delete)
        else:
            writers = {"POST": ("create", self._create)}
            if requests.collection_exists(place):
                writers["DELETE"] = ("deletecollection", self._delete_collection)
        if method not in writers or (place.resource.namespaced and not place.namespace):
            raise _method_not_allowed()
        return writers[method]

    async def _get(self, request: web.Request, place: Target) -> web.StreamResponse:
        entry = self.registry.get(place.resource, place.namespace, place.name)
        return _object(request, place.resource, entry)

    async def _list(self, request: web.Request, place: Target) -> web.StreamResponse:
        page = list_page(self.registry.store, place.resource, requests.list_query(request, place.namespace))
        head = list_head(place.resource, page.version, page.token, page.remaining)
        return await _send_list(request, place.resource, head, page.entries)

    async def _watch(self, request: web.Request, place: Target) -> web.StreamResponse:
        query = requests.watch_query(request, place)
        if query.initial_events is not None and self.streaming_lists == "off":
            raise streaming_list_refused()
        watch = Watch(self.registry.store, place.resource, query, self.bookmark_interval)
        response = web.StreamResponse(headers=_headers(place.resource))
        response.content_type = "application/json"
        response.enable_chunked_encoding()
        await response.prepare(request)
        if (connection := request.transport) is None:
            return response
        self.watches.add(connection)
        try:
            async for chunk in watch.chunks(self.streaming_lists):
                await response.write(chunk)
        except ConnectionResetError:
            return response  # the watcher went away
        finally:
            self.watches.discard(connection)
        return response

    async def _create(self, request: web.Request, place: Target) -> web.StreamResponse:
        write = requests.write_options(request)
        entry = self.registry.create(
            place.resource, place.namespace, await requests.json_object(request), write
        )
        return _object(request, place.resource, entry, write, status=201)

    async def _update(self, request: web.Request, place: Target) -> web.StreamResponse:
        write = requests.write_options(request)
        body = await requests.json_object(request)
        entry, created = self.registry.update(
            place.resource, place.namespace, place.name, body, write, status=place.status
        )
        return _object(request, place.resource, entry, write, status=201 if created else 200)

    async def _patch(self, request: web.Request, place: Target) -> web.StreamResponse:
        write = requests.write_options(request)
        media_type = request.headers.get("Content-Type", "").partition(";")[0].strip()
        check_format(media_type)
        patch = await requests.json_body(request)
        entry = self.registry.patch(
            place.resource, place.namespace, place.name, (media_type, patch), write, status=place.status
        )
        return _object(request, place.resource, entry, write)

    async def _delete(self, request: web.Request, place: Target) -> web.StreamResponse:
        options = await requests.json_object(request)
        write = requests.write_options(request, options)
        wanted = requests.preconditions(options)
        entry = self.registry.delete(place.resource, place.namespace, place.name, wanted, write)
        uid = self.registry.value(place.resource, entry)["metadata"]["uid"]
        details = {**errors.details_of(place.resource, place.name), "uid": uid}
        success = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Success",
            "details": details,
        }
        return _json(request, dump(success), headers=_headers(place.resource))

    async def _delete_collection(self, request: web.Request, place: Target) -> web.StreamResponse:
        write = requests.write_options(request, await requests.json_object(request))
        gone = self.registry.delete_collection(
            place.resource, place.namespace, requests.selector(request), write
        )
        return await _send_list(
            request, place.resource, list_head(place.resource, self.registry.store.version), gone
        )


def _headers(resource: Resource | None = None, write: Write | None = None) -> dict[str, str]:
    headers = {"Audit-Id": str(uuid4()), "Cache-Control": "no-cache, private"}
    warnings = list(write.warnings) if write else []
    if resource is not None and resource.warning:
        warnings.insert(0, resource.warning)
    if warnings:
        quoted = [text.replace("\\", "\\\\").replace('"', '\\"') for text in warnings]
        headers["Warning"] = ", ".join(f'299 - "{text}"' for text in quoted)
    return headers


def _json(
    request: web.Request, body: bytes, status: int = 200, headers: dict[str, str] | None = None
) -> web.Response:
    body = pretty(body) if requests.wants_pretty(request) else body + b"\n"
    return web.Response(
        body=body, status=status, content_type="application/json", headers=headers or _headers()
    )


def _object(
    request: web.Request, resource: Resource, entry: Entry, write: Write | None = None, status: int = 200
) -> web.Response:
    body = with_kind(resource, entry.item)
    return _json(request, body, status, _headers(resource, write))


async def _send_list(
    request: web.Request, resource: Resource, head: bytes, entries: list[Entry]
) -> web.StreamResponse:
    size = sum(len(entry.item) + 1 for entry in entries)
    if size < _GZIP_FROM or requests.wants_pretty(request):
        body = head + b",".join([entry.item for entry in entries]) + b"]}"
        return _json(request, body, headers=_headers(resource))
    response = web.StreamResponse(headers=_headers(resource))
    response.content_type = "application/json"
    packer = None
    if "gzip" in request.headers.get("Accept-Encoding", ""):
        response.headers["Content-Encoding"] = "gzip"
        packer = zlib.compressobj(1, wbits=31)
    response.enable_chunked_encoding()
    await response.prepare(request)
    for first in range(0, len(entries), _BATCH):
        batch = b",".join([entry.item for entry in entries[first : first + _BATCH]])
        chunk = (b"," if first else head) + batch
        await response.write(packer.compress(chunk) if packer else chunk)
    await response.write(packer.compress(b"]}\n") + packer.flush() if packer else b"]}\n")
    return response


def _refusal(request: web.Request, error: ApiError) -> web.Response:
    headers = _headers()
    if error.code == 504:
        headers["Retry-After"] = "1"
    if error.code in {401, 403}:
        headers["X-Content-Type-Options"] = "nosniff"
    return _json(request, dump(error.body), error.code, headers)


def _method_not_allowed() -> ApiError:
    message = "the server does not allow this method on the requested resource"
    return ApiError(405, "MethodNotAllowed", message, {})


def _document(make: Callable[[web.Request], dict[str, Any]]) -> Handler:
    async def handler(request: web.Request) -> web.StreamResponse:
        return _json(request, dump(make(request)))

    return handler


async def _ok(_request: web.Request) -> web.StreamResponse:
    return web.Response(text="ok")


async def _openapi(_request: web.Request) -> web.StreamResponse:
    return web.Response(body=b"", content_type=discovery.OPENAPI_V2_TYPE)
