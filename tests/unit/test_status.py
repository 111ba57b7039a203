"""What the health port and the metrics port say."""

import asyncio
import json
from collections.abc import Iterator

import aiohttp
import pytest
from aiohttp import web
from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest
from prometheus_client.metrics_core import HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from kubedns.shared.web import serve
from kubedns.status import metrics_app, status_app


@pytest.fixture
async def get():
    runners = []

    async def start_and_get(app: web.Application, path: str) -> tuple[int, str]:
        runner, port = await serve(app, 0, "test")
        runners.append(runner)
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"http://127.0.0.1:{port}{path}") as response,
        ):
            return response.status, await response.text()

    yield start_and_get
    for runner in runners:
        await runner.cleanup()


async def turns_until(over: asyncio.Event) -> int:
    """Return how many turns of the loop there were for others meanwhile."""
    turns = 0
    while not over.is_set():
        turns += 1
        await asyncio.sleep(0)
    return turns


def app(reason: str = "", pieces: tuple[str, ...] = ("{}",)) -> web.Application:
    return status_app(lambda: reason, lambda: iter(pieces))


async def test_ready_server_says_ok(get):
    assert await get(app(), "/readiness") == (200, "ok\n")


async def test_server_that_is_not_ready_says_why(get):
    assert await get(app("waiting for services"), "/readiness") == (503, "waiting for services\n")


async def test_server_that_is_not_ready_is_alive(get):
    assert await get(app("waiting"), "/healthz") == (200, "ok\n")


async def test_unknown_path_is_not_found(get):
    assert (await get(app(), "/quit"))[0] == 404


async def test_cache_comes_in_order_and_whole(get):
    pieces = ("[", *(f'"{"x" * 1000}",' for _ in range(500)), "1]")
    status, text = await get(app(pieces=pieces), "/cache")
    assert status == 200
    assert len(json.loads(text)) == 501


async def test_others_have_their_turn_while_a_large_cache_is_shown(get):
    shown_all = asyncio.Event()

    def dump() -> Iterator[str]:
        for _ in range(200):
            yield "x" * 10_000
        shown_all.set()

    async with asyncio.TaskGroup() as group:
        counting = group.create_task(turns_until(shown_all))
        await get(status_app(lambda: "", dump), "/cache")
    assert counting.result() > 20


async def test_metrics_are_served_at_their_path_only(get):
    assert (await get(metrics_app(CollectorRegistry(), "/counts"), "/counts"))[0] == 200
    assert (await get(metrics_app(CollectorRegistry(), "/counts"), "/metrics"))[0] == 404


class ManySamples(Collector):
    """A family of more samples than are written at a time."""

    def collect(self) -> Iterator[Metric]:
        family = HistogramMetricFamily("times", "Times.", labels=["system"])
        for system in ("auth", "reverse"):
            family.add_metric([system], [(str(bound), 1.0) for bound in range(19)] + [("+Inf", 2.0)], 5.0)
        yield family


async def test_metrics_are_the_whole_page_though_each_family_is_a_step_of_its_own(get):
    registry = CollectorRegistry()
    Counter("questions", "Asked.", ["system"], registry=registry).labels("auth").inc(3)
    Gauge("objects", "Held.", registry=registry).set(7)
    registry.register(ManySamples())
    page = generate_latest(registry).decode()
    assert 'questions_total{system="auth"} 3.0' in page
    assert page.count("\ntimes_bucket{") == 40
    assert await get(metrics_app(registry, "/metrics"), "/metrics") == (200, page)


async def test_others_have_their_turn_while_metrics_are_written(get):
    registry = CollectorRegistry()
    for number in range(20):
        Gauge(f"gauge_{number}", "One.", registry=registry).set(number)
    written = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        counting = group.create_task(turns_until(written))
        await get(metrics_app(registry, "/metrics"), "/metrics")
        written.set()
    assert counting.result() > 20
