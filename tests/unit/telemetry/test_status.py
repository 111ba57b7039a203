"""What the health port and the metrics port say."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

import aiohttp
import pytest
from aiohttp import web
from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest
from prometheus_client.metrics_core import GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from kubedns.shared.web import serve
from kubedns.telemetry.status import metrics_app, status_app


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


@pytest.fixture
async def serving() -> AsyncIterator[Callable[[web.Application], Awaitable[int]]]:
    """A function that serves an application and returns its port."""
    runners = []

    async def start(app: web.Application) -> int:
        runner, port = await serve(app, 0, "test")
        runners.append(runner)
        return port

    yield start
    for runner in runners:
        await runner.cleanup()


class Client:
    """A connection that has asked, and reads only when told to."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @classmethod
    async def ask(cls, port: int, path: str, method: str = "GET") -> "Client":
        client = cls(*await asyncio.open_connection("127.0.0.1", port, limit=4096))
        client._writer.write(f"{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
        return client

    async def answer(self) -> tuple[int, bytes, bytes]:
        """Read to the end of the connection; return status, headers and what follows them."""
        async with asyncio.timeout(30):
            head, _, rest = (await self._reader.read()).partition(b"\r\n\r\n")
        self.leave()
        return int(head.split()[1]), head, rest

    def leave(self) -> None:
        self._writer.transport.abort()


async def until(what) -> None:
    """Wait until a condition holds."""
    async with asyncio.timeout(30):
        while not what():
            await asyncio.sleep(0.001)


class Dumps:
    """A tree of many pieces; counts the dumps of it that are begun, under way, and that were at once."""

    def __init__(self, pieces: int = 300) -> None:
        self.begun = self.under_way = self.most = 0
        self._pieces = pieces

    def __call__(self) -> Iterator[str]:
        self.begun += 1
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        try:
            for _ in range(self._pieces):
                yield "x" * 20_000
        finally:
            self.under_way -= 1


async def turns_until(over: asyncio.Event) -> int:
    """Return how many turns of the loop there were for others meanwhile."""
    turns = 0
    while not over.is_set():
        turns += 1
        await asyncio.sleep(0)
    return turns


def app(reason: str = "", pieces: tuple[str, ...] = ("{}",)) -> web.Application:
    return status_app(lambda: reason, lambda: iter(pieces), dict)


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
        await get(status_app(lambda: "", dump, dict), "/cache")
    assert counting.result() > 20


async def test_dumps_come_one_after_the_other(serving):
    dumps = Dumps(50)
    port = await serving(status_app(lambda: "", dumps, dict))
    clients = [await Client.ask(port, "/cache") for _ in range(4)]
    for status, _, body in await asyncio.gather(*(client.answer() for client in clients)):
        assert status == 200
        assert body.count(b"x") == 50 * 20_000
    assert (dumps.begun, dumps.most) == (4, 1)


async def test_client_past_those_that_may_wait_for_a_dump_is_told_to_come_again(serving):
    dumps = Dumps()
    port = await serving(status_app(lambda: "", dumps, dict))
    reading = [await Client.ask(port, "/cache") for _ in range(6)]
    refused = [await Client.ask(port, "/cache") for _ in range(4)]
    answers = await asyncio.gather(*(client.answer() for client in reading + refused))
    assert sorted(status for status, _, _ in answers) == [200] * 5 + [503] * 5
    _, head, body = next(answer for answer in answers if answer[0] == 503)
    assert b"Retry-After: 10" in head
    assert b"try again later" in body
    assert (await (await Client.ask(port, "/cache")).answer())[0] == 200


async def test_client_that_leaves_gives_its_turn_to_the_next_without_a_line_in_the_log(serving, caplog):
    caplog.set_level(logging.INFO)
    dumps = Dumps()
    port = await serving(status_app(lambda: "", dumps, dict))
    half_way = await Client.ask(port, "/cache")
    await until(lambda: dumps.under_way)
    waiting = [await Client.ask(port, "/cache") for _ in range(2)]
    await asyncio.sleep(0.05)
    for client in waiting:
        client.leave()
    half_way.leave()
    await until(lambda: not dumps.under_way)
    assert (await (await Client.ask(port, "/cache")).answer())[0] == 200
    assert dumps.begun == 2
    assert not caplog.records


async def test_client_that_takes_a_dump_too_slowly_is_cut_off(serving, monkeypatch):
    dumps = Dumps(1000)
    port = await serving(status_app(lambda: "", dumps, dict))
    slow = await Client.ask(port, "/cache")
    await until(lambda: dumps.under_way)
    assert (await (await Client.ask(port, "/readiness")).answer())[0] == 200
    assert dumps.under_way == 1
    loop = asyncio.get_running_loop()
    now = loop.time
    monkeypatch.setattr(loop, "time", lambda: now() + 61)
    await until(lambda: not dumps.under_way)
    assert not (await slow.answer())[2].endswith(b"\r\n0\r\n\r\n")
    assert (await (await Client.ask(port, "/cache")).answer())[2].endswith(b"\r\n0\r\n\r\n")


@pytest.mark.parametrize("path", ["/readiness", "/healthz", "/cache", "/nothing"])
async def test_head_has_no_content(serving, path):
    dumps = Dumps()
    port = await serving(status_app(lambda: "", dumps, dict))
    status, head, body = await (await Client.ask(port, path, "HEAD")).answer()
    assert status == (404 if path == "/nothing" else 200)
    assert b"chunked" not in head
    assert body == b""
    assert dumps.begun == 0


async def test_head_of_metrics_has_no_content(serving):
    port = await serving(metrics_app(CollectorRegistry(), "/metrics"))
    status, _, body = await (await Client.ask(port, "/metrics", "HEAD")).answer()
    assert (status, body) == (200, b"")


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


class Pages(Collector):
    """Counts the pages that are begun, and shows how many; a page takes a while to write."""

    def __init__(self) -> None:
        self.begun = 0

    def collect(self) -> Iterator[Metric]:
        self.begun += 1
        yield GaugeMetricFamily("page", "The page's number.", self.begun)
        for number in range(30):
            yield GaugeMetricFamily(f"gauge_{number}", "One.", number)


@pytest.fixture
def pages() -> tuple[Pages, web.Application]:
    registry, pages = CollectorRegistry(auto_describe=False), Pages()
    registry.register(pages)
    pages.begun = 0
    return pages, metrics_app(registry, "/metrics")


async def test_scrapes_that_wait_together_share_a_page_begun_after_they_came(serving, pages):
    counted, app = pages
    port = await serving(app)
    first = await Client.ask(port, "/metrics")
    await until(lambda: counted.begun)
    others = [await Client.ask(port, "/metrics") for _ in range(20)]
    assert counted.begun == 1
    answers = await asyncio.gather(*(client.answer() for client in (first, *others)))
    assert b"\npage 1.0\n" in answers[0][2]
    for status, _, body in answers[1:]:
        assert status == 200
        assert b"\npage 2.0\n" in body
        assert body.endswith(b"\ngauge_29 29.0\n")


async def test_scrapes_of_clients_that_are_gone_cost_no_page_and_no_line_in_the_log(serving, pages, caplog):
    caplog.set_level(logging.INFO)
    counted, app = pages
    port = await serving(app)
    clients = [await Client.ask(port, "/metrics") for _ in range(10)]
    await until(lambda: counted.begun)
    for client in clients:
        client.leave()
    _, _, body = await (await Client.ask(port, "/metrics")).answer()
    assert b"\npage 2.0\n" in body
    assert not caplog.records
