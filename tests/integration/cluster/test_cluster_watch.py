"""The whole room against a scripted API server on real sockets."""

import asyncio
import gzip
from functools import partial

import orjson
import pytest

from kubedns.dns.names import pack_address
from tests.integration.cluster.fakeapi import (
    HEADLESS,
    Exchange,
    Responder,
    endpoint_slice,
    event,
    fake_api,
    refuse,
    replay,
    service,
    status_body,
)
from tests.integration.cluster.watching import Watching, watching

pytestmark = pytest.mark.integration


@pytest.mark.parametrize("piece", [1, 17, 1 << 20])
async def test_recorded_answers_replayed_give_the_recorded_cluster(piece):
    async with fake_api() as api:
        api.script["services", "stream"] = [replay("services-watchlist.http", piece)]
        api.script["services", "watch"] = [replay("services-watch.http", piece)]
        for plural in ("services", "endpointslices"):
            api.always[plural, "watch"] = refuse(503)
        api.always["endpointslices", "stream"] = refuse(422, reason="Invalid")
        api.always["endpointslices", "list"] = _recorded_slices(piece)
        async with watching(api.url, synced=False) as case:
            await case.until(case.watch.synced.is_set)
            await case.until(lambda: api.script["services", "watch"] == [])
            await case.until(lambda: bool(case.watch.statistics[0].watches))
            assert case.services.state["default", "kubernetes"].cluster_ips == (pack_address("10.96.0.1"),)
            assert case.names >= {"kubernetes", "api", "cart", "empty"}
            assert {"cart-7pp5x", "empty-pn8lw", "kubernetes", "legacy-8p2kh"} <= case.slice_names


def _recorded_slices(piece: int) -> Responder:
    async def responder(exchange: Exchange) -> None:
        which = "headless" if exchange.asked.params["labelSelector"] == HEADLESS else "unmanaged"
        await replay(f"endpointslices-list-{which}.http", piece)(exchange)

    return responder


async def test_recorded_pages_give_all_services():
    async with fake_api() as api:
        api.always["services", "stream"] = refuse(422, reason="Invalid")
        api.script["services", "list"] = [
            replay("services-list-limit5-page1.http"),
            replay("services-list-continue-expired-410.http"),
            replay("services-list-limit5-page1.http"),
            replay("services-list-limit5-page2.http"),
        ]
        api.always["services", "watch"] = replay("services-watch-expired-410.http")
        async with watching(api.url, synced=False) as case:
            await case.until(lambda: not api.script["services", "list"])
            await case.until(case.watch.synced.is_set)
            assert len(case.names) == 10


async def test_only_slices_that_can_make_a_record_are_asked_for():
    async with fake_api() as api, watching(api.url):
        assert {one.params["labelSelector"] for one in api.of_kind("endpointslices", "stream")} == {
            "service.kubernetes.io/headless",
            "!service.kubernetes.io/headless,endpointslice.kubernetes.io/managed-by!=endpointslice-controller.k8s.io",
        }
        assert {one.path for one in api.asked} == {
            "/api/v1/services",
            "/apis/discovery.k8s.io/v1/endpointslices",
        }
        assert {one.headers["accept-encoding"] for one in api.asked} == {"identity"}


async def test_not_synced_before_services_and_both_kinds_of_slices_are_listed():
    release = asyncio.Event()

    async def late(exchange: Exchange) -> None:
        if exchange.asked.params["labelSelector"] == HEADLESS:
            await release.wait()
        await exchange.begin_chunks()
        await exchange.chunk(event("BOOKMARK", {"metadata": {"resourceVersion": "1", "annotations": END}}))
        await exchange.end_chunks()

    async with fake_api() as api:
        api.put(service("web"))
        api.always["endpointslices", "stream"] = late
        async with watching(api.url, synced=False) as case:
            await case.until(lambda: "web" in case.names)
            waiting = "endpointslices_headless: its first list is not complete"
            await case.until(lambda: case.watch.why_not_synced() == waiting)
            assert not case.watch.synced.is_set()
            release.set()
            await case.until(case.watch.synced.is_set)
            assert case.watch.why_not_synced() == ""


END = {"k8s.io/initial-events-end": "true"}


async def test_changes_follow_as_they_happen():
    async with fake_api() as api:
        api.put(service("web"))
        async with watching(api.url) as case:
            api.put(service("new", "10.0.0.2"))
            api.put(endpoint_slice("peer-x", "peer", "10.1.0.1"))
            await case.until(lambda: case.names == {"web", "new"} and case.slice_names == {"peer-x"})
            api.delete("services", "web")
            api.delete("endpointslices", "peer-x")
            await case.until(lambda: case.names == {"new"} and case.slice_names == set())


def shows(case: Watching, name: str, address: str) -> bool:
    return case.slices.state["shop", name].endpoints[0].addresses == (pack_address(address),)


@pytest.mark.parametrize("late", [True, False])
async def test_slice_that_moves_to_the_other_selector_is_never_missing(late):
    async with fake_api() as api:
        api.put(endpoint_slice("peer-x", "peer", "10.1.0.1"))
        async with watching(api.url) as case:
            for turn in range(20):
                api.put(endpoint_slice("peer-x", "peer", f"10.1.0.{turn}", headless=bool(turn % 2) ^ late))
                await case.until(partial(shows, case, "peer-x", f"10.1.0.{turn}"))
            await asyncio.sleep(0.6)
            assert case.slice_names == {"peer-x"}
            assert all(batch["shop", "peer-x"] is not None for batch in case.slices.batches)


def is_at(case: Watching, name: str, address: str) -> bool:
    return case.services.state["shop", name].cluster_ips == (pack_address(address),)


async def test_kinds_and_shapes_that_are_not_expected_do_not_end_the_watch():
    odd = [
        b"\n\n",
        event("ADDED", {"kind": "Pod", "metadata": {"namespace": "shop", "name": "x"}}),
        event("ADDED", {"kind": "Service", "metadata": None}),
        event("ADDED", {"kind": "Service", "metadata": {"namespace": "shop", "name": "odd"}, "spec": [1]}),
        event("MODIFIED", {**service("web", "10.0.0.7"), "metadata": {"namespace": "shop", "name": "web"}}),
        event("WHAT", {}),
    ]

    async def surprising(exchange: Exchange) -> None:
        await exchange.begin_chunks()
        for raw in odd:
            await exchange.chunk(raw)
        await api._follow(exchange, api.version)

    async with fake_api() as api:
        api.put(service("web"))
        api.script["services", "watch"] = [surprising]
        async with watching(api.url) as case:
            await case.until(partial(is_at, case, "web", "10.0.0.7"))
            api.put(service("new"))
            await case.until(lambda: "new" in case.names)
            assert len(api.of_kind("services", "watch")) == 1


@pytest.mark.parametrize(
    ("recorded", "outcome"),
    [
        ("services-watch-expired-410.http", "expired"),
        ("bad-token-401.http", "unauthorized"),
        ("unauthenticated-403.http", "forbidden"),
        ("services-list-rv-too-large-504.http", "server"),
        ("services-watch-bad-rv-500.http", "server"),
        ("configmap-missing.http", "not_found"),
    ],
)
async def test_recorded_error_is_counted_and_survived(recorded, outcome):
    async with fake_api() as api:
        api.put(service("web"))
        api.script["services", "watch"] = [replay(recorded)]
        async with watching(api.url, synced=False) as case:
            await case.until(lambda: not api.script["services", "watch"])
            api.put(service("new"))
            await case.until(lambda: case.names == {"web", "new"})
            assert case.watch.statistics[0].watches[outcome] == 1


async def test_error_body_without_end_is_cut():
    async def endless(exchange: Exchange) -> None:
        await exchange.head(500, Transfer_Encoding="chunked")
        while True:
            await exchange.chunk(b"x" * 65536)

    async with fake_api() as api:
        api.script["services", "stream"] = [endless]
        api.put(service("web"))
        async with watching(api.url) as case:
            assert case.names == {"web"}


async def test_gzip_is_asked_for_where_pages_are_and_understood():
    async def compressed(exchange: Exchange) -> None:
        body = orjson.dumps({"metadata": {"resourceVersion": "9"}, "items": [{**service("web")}]})
        await exchange.reply(200, gzip.compress(body), Content_Encoding="gzip")

    async with fake_api() as api:
        api.always["services", "stream"] = refuse(422)
        api.always["services", "list"] = compressed
        async with watching(api.url, synced=False) as case:
            await case.until(case.watch.synced.is_set)
            assert case.names == {"web"}
            assert api.of_kind("services", "list")[0].headers["accept-encoding"] == "gzip"


@pytest.mark.parametrize("code", [302, 307])
async def test_redirect_is_not_followed_with_the_credential(code):
    async with fake_api() as other, fake_api() as api:

        async def away(exchange: Exchange) -> None:
            await exchange.reply(code, status_body(code), Location=f"{other.url}/api/v1/services")

        api.always["services", "stream"] = away
        async with watching(api.url, synced=False) as case:
            await case.until(lambda: str(code) in case.watch.why_not_synced())
            assert f"redirect to {other.url}/api/v1/services" in case.watch.why_not_synced()
            assert other.asked == []


@pytest.mark.parametrize("kind", ["stream", "watch"])
async def test_right_that_is_missing_is_named_and_its_return_noticed(kind, caplog):
    async with fake_api() as api:
        api.always["endpointslices", kind] = refuse(403, message="forbidden: User may not")
        async with watching(api.url, synced=False) as case:
            await case.until(lambda: "discovery.k8s.io" in case.watch._slices[0].failure)
            assert case.watch.synced.is_set() == (kind == "watch")
            assert "User may not" in case.watch._slices[0].failure
            del api.always["endpointslices", kind]
            await case.synced()
    lines = [
        record.message
        for record in caplog.records
        if "verb 'watch' on resource 'endpointslices'" in record.message
    ]
    assert lines
