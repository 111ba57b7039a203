"""The room behind a network that cuts, resets, swallows, delays and splits."""

import asyncio

import pytest

from kubedns.dns.names import pack_address
from tests.integration.cluster.fakeapi import endpoint_slice, fake_api, refuse, service
from tests.integration.cluster.faultproxy import fault_proxy
from tests.integration.cluster.watching import watching

pytestmark = pytest.mark.integration


@pytest.mark.parametrize("how", ["cut", "reset"])
async def test_cut_connection_is_replaced_within_seconds(how):
    async with (
        fake_api() as api,
        fault_proxy(api.port) as proxy,
        watching(f"http://127.0.0.1:{proxy.port}") as case,
    ):
        if how == "cut":
            proxy.cut()
        else:
            proxy.reset()
        api.put(service("new"))
        assert await case.until(lambda: "new" in case.names) < 5
        assert len(api.of_kind("services", "stream")) == 1


async def test_delete_missed_while_disconnected_is_applied_by_the_relist():
    async with fake_api() as api, fault_proxy(api.port) as proxy:
        api.put(service("x", "10.0.0.1"))
        api.put(endpoint_slice("y-1", "y", "10.1.0.1"))
        async with watching(f"http://127.0.0.1:{proxy.port}") as case:
            api.delete("services", "x")
            api.delete("endpointslices", "y-1")
            api.put(service("z", "10.0.0.1"))
            api.expire()
            proxy.reset()
            await case.until(lambda: case.names == {"z"} and case.slice_names == set())


async def test_object_recreated_while_disconnected_has_its_new_address():
    async with fake_api() as api, fault_proxy(api.port) as proxy:
        api.put(service("x", "10.0.0.1"))
        async with watching(f"http://127.0.0.1:{proxy.port}") as case:
            api.script["services", "watch"] = [refuse(410, reason="Expired")]
            proxy.reset()
            api.delete("services", "x")
            api.put(service("x", "10.0.0.2"))
            await case.until(
                lambda: case.services.state["shop", "x"].cluster_ips == (pack_address("10.0.0.2"),)
            )


async def test_stream_split_at_every_octet_is_read():
    async with fake_api() as api, fault_proxy(api.port) as proxy:
        proxy.piece = 1
        api.put(service("web"))
        api.put(endpoint_slice("peer-x", "peer", "10.1.0.1"))
        async with watching(f"http://127.0.0.1:{proxy.port}") as case:
            api.put(service("new"))
            await case.until(lambda: case.names == {"web", "new"} and case.slice_names == {"peer-x"})


async def test_slow_network_delays_but_loses_nothing():
    async with fake_api() as api, fault_proxy(api.port) as proxy:
        proxy.delay = 0.2
        api.put(service("web"))
        async with watching(f"http://127.0.0.1:{proxy.port}") as case:
            for number in range(5):
                api.put(service(f"new-{number}"))
            await case.until(lambda: len(case.names) == 6)


async def test_event_that_was_dropped_is_healed_by_the_periodic_list():
    async with (
        fake_api() as api,
        fault_proxy(api.port) as proxy,
        watching(f"http://127.0.0.1:{proxy.port}", relist_period=3.0) as case,
    ):
        # A chunk of the same length that says nothing stands in for the event.
        proxy.edit = lambda data: (
            data.replace(b'"missed"', b'"missed"') if b"missed" not in data else _blank(data)
        )
        api.put(service("missed"))
        await asyncio.sleep(0.3)
        proxy.edit = bytes
        api.put(service("seen"))
        await case.until(lambda: "seen" in case.names)
        assert "missed" not in case.names
        await case.until(lambda: "missed" in case.names)
        await case.until(lambda: case.watch.statistics[0].repairs == 1)


def _blank(data: bytes) -> bytes:
    begin, end = data.index(b'{"type"'), data.rindex(b"\n\r\n")
    return data[:begin] + b" " * (end - begin) + data[end:]


async def test_black_hole_makes_the_age_grow_and_is_healed_when_it_ends():
    async with (
        fake_api() as api,
        fault_proxy(api.port) as proxy,
        watching(f"http://127.0.0.1:{proxy.port}") as case,
    ):
        statistics = case.watch.statistics[0]
        proxy.hole = True
        api.put(service("new"))
        seen = statistics.last_activity
        await asyncio.sleep(1.0)
        assert statistics.last_activity == seen
        proxy.reset()
        proxy.hole = False
        await case.until(lambda: "new" in case.names)


async def test_api_that_goes_away_and_comes_back_on_the_same_port_is_found_again():
    async with fake_api() as api:
        api.put(service("web"))
        async with watching(api.url) as case:
            await api.stop()
            await case.until(lambda: "refuses" in case.watch._services.failure)
            assert case.names == {"web"}
            assert case.watch.synced.is_set()
            api.put(service("new"))
            await api.start()
            await case.until(lambda: "new" in case.names)
