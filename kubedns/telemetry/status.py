"""What the record server tells over HTTP: whether it is ready, what it holds, what it counted.

Dumps of the tree and pages of metrics are made in short steps on the loop that also answers
questions: one dump and one page at a time, however many clients ask.
"""

import asyncio
import json
from collections.abc import Callable, Iterator
from time import perf_counter
from typing import Any, Final

from aiohttp import hdrs, web
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

_STEP: Final = 0.001
"""Seconds of work on a dump at a time."""
_PAUSE: Final = 0.001
"""Seconds after each such time, and after each piece of a page: what was asked meanwhile is answered first."""
_CHUNK: Final = 64 * 1024
_MOST_WAITING: Final = 4
"""Clients that wait while another is sent a dump."""
_LONGEST_DUMP: Final = 60.0
"""Seconds that a dump may take, as slowly as its client reads, while others wait."""
_SAMPLES: Final = 16
"""Samples of a metrics page that are written at a time, which takes a tenth of a millisecond."""


def status_app(
    why_not_ready: Callable[[], str],
    dump: Callable[[], Iterator[str]],
    report: Callable[[], dict[str, Any]],
) -> web.Application:
    """Return the application of the health port.

    `why_not_ready` returns the reason, empty when ready; `dump` yields the tree as JSON in pieces;
    `report` returns this program's account of itself.
    """

    async def readiness(_request: web.Request) -> web.Response:
        reason = why_not_ready()
        return web.Response(status=503 if reason else 200, text=f"{reason or 'ok'}\n")

    async def healthz(_request: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def status(_request: web.Request) -> web.Response:
        return web.Response(text=json.dumps(report()) + "\n", content_type="application/json")

    app = web.Application()
    app.router.add_get("/readiness", readiness)
    app.router.add_get("/healthz", healthz)
    app.router.add_get("/status", status)
    app.router.add_get("/cache", _Dumps(dump).show)
    return app


class _Dumps:
    """Sends the tree to one client after the other."""

    def __init__(self, dump: Callable[[], Iterator[str]]) -> None:
        self._dump = dump
        self._turn = asyncio.Lock()
        self._present = 0

    async def show(self, request: web.Request) -> web.StreamResponse:
        """Return a dump, sent already; 503 where too many wait."""
        if request.method == hdrs.METH_HEAD:
            return _json_response()
        if self._present > _MOST_WAITING:
            text = f"{self._present} clients are being shown the tree or wait for it; try again later\n"
            return web.Response(status=503, text=text, headers={"Retry-After": "10"})
        self._present += 1
        try:
            async with self._turn:
                return await self._send(request)
        finally:
            self._present -= 1

    async def _send(self, request: web.Request) -> web.StreamResponse:
        """Send a dump as far as the client takes it, and end the connection."""
        response = _json_response()
        response.force_close()
        transport = request.transport
        if transport is None:
            return response
        transport.set_write_buffer_limits(0)  # what is written is taken before more is made
        try:
            async with asyncio.timeout(_LONGEST_DUMP):
                await response.prepare(request)
                for part in _parts(self._dump()):
                    await response.write(part)
                    await asyncio.sleep(_PAUSE)
                await response.write_eof()
        except ConnectionError:
            pass  # the client left
        except TimeoutError:
            transport.abort()
        return response


def _json_response() -> web.StreamResponse:
    return web.StreamResponse(headers={"Content-Type": "application/json"})


def _parts(pieces: Iterator[str]) -> Iterator[bytes]:
    """Yield a text in parts of a `_STEP` of work and a `_CHUNK` at most."""
    part: list[str] = []
    size, until = 0, perf_counter() + _STEP
    for piece in pieces:
        part.append(piece)
        size += len(piece)
        if size >= _CHUNK or perf_counter() >= until:
            yield "".join(part).encode()
            part, size, until = [], 0, perf_counter() + _STEP
    yield "".join(part).encode()


class _Family(Collector):
    """One family of series, in the place of all."""

    def __init__(self, metric: Metric) -> None:
        self._metric = metric

    def collect(self) -> Iterator[Metric]:
        """Yield the family."""
        yield self._metric


def _exposition(metric: Metric) -> Iterator[bytes]:
    """Yield the text of a family in pieces of a few samples; `_created` ones, which we have none of, need one piece."""
    samples = metric.samples
    metric.samples = []
    head = generate_latest(_Family(metric))
    yield head
    for first in range(0, len(samples), _SAMPLES):
        metric.samples = samples[first : first + _SAMPLES]
        yield generate_latest(_Family(metric)).removeprefix(head)


class _Page:
    """The metrics page, written for one scrape at a time; those that waited while it began share it."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        self._turn = asyncio.Lock()
        self._text = b""
        self._begun = 0.0

    async def show(self, _request: web.Request) -> web.Response:
        """Return a page that was begun after the request came."""
        came = perf_counter()
        async with self._turn:
            if self._begun < came:
                begun = perf_counter()
                self._text = await self._write()
                self._begun = begun
            else:
                await asyncio.sleep(_PAUSE)
        return web.Response(body=self._text, headers={"Content-Type": CONTENT_TYPE_LATEST})

    async def _write(self) -> bytes:
        pieces = []
        for metric in self._registry.collect():
            for piece in _exposition(metric):
                pieces.append(piece)
                await asyncio.sleep(_PAUSE)  # all at once would hold up answers for milliseconds
        return b"".join(pieces)


def metrics_app(registry: CollectorRegistry, path: str) -> web.Application:
    """Return the application of the metrics port."""
    app = web.Application()
    app.router.add_get(path, _Page(registry).show)
    return app
