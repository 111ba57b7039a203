"""What the record server tells over HTTP: whether it is ready, what it holds, what it counted."""

import asyncio
from collections.abc import Callable, Iterator
from time import perf_counter
from typing import Final

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

_LONGEST_STEP: Final = 0.002
"""Seconds of work on a dump before everything else has its turn."""
_SAMPLES: Final = 16
"""Samples of a metrics page that are written at a time, which takes a tenth of a millisecond."""
_PAUSE: Final = 0.001
"""Seconds after each such time: what was asked meanwhile is answered first."""
_CHUNK: Final = 64 * 1024


def status_app(why_not_ready: Callable[[], str], dump: Callable[[], Iterator[str]]) -> web.Application:
    """Return the application of the health port.

    `why_not_ready` returns the reason, empty when ready; `dump` yields the tree as JSON in pieces.
    """

    async def readiness(_request: web.Request) -> web.Response:
        reason = why_not_ready()
        return web.Response(status=503 if reason else 200, text=f"{reason or 'ok'}\n")

    async def healthz(_request: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def cache(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        pieces: list[str] = []
        size, begun = 0, perf_counter()
        for piece in dump():
            pieces.append(piece)
            size += len(piece)
            if size >= _CHUNK or perf_counter() - begun > _LONGEST_STEP:
                await response.write("".join(pieces).encode())
                await asyncio.sleep(0)
                pieces, size, begun = [], 0, perf_counter()
        await response.write("".join(pieces).encode())
        await response.write_eof()
        return response

    app = web.Application()
    app.router.add_get("/readiness", readiness)
    app.router.add_get("/healthz", healthz)
    app.router.add_get("/cache", cache)
    return app


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


def metrics_app(registry: CollectorRegistry, path: str) -> web.Application:
    """Return the application of the metrics port."""

    async def metrics(_request: web.Request) -> web.Response:
        pieces = []
        for metric in registry.collect():
            for piece in _exposition(metric):
                pieces.append(piece)
                await asyncio.sleep(_PAUSE)  # all at once would hold up answers for milliseconds
        return web.Response(body=b"".join(pieces), headers={"Content-Type": CONTENT_TYPE_LATEST})

    app = web.Application()
    app.router.add_get(path, metrics)
    return app
