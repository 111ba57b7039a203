"""A single ConfigMap, and the topology of the nodes."""

import asyncio
import contextlib
from typing import Any

import pytest

from kubedns.cluster.credentials import UrlCredentials
from kubedns.cluster.errors import ApiError
from kubedns.cluster.nodes import find_topology, read_topology
from kubedns.cluster.session import ApiSession
from kubedns.objects import Topology
from tests.integration.cluster.fakeapi import fake_api, refuse, replay
from tests.integration.cluster.watching import watching

pytestmark = pytest.mark.integration


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"kind": "ConfigMap", "metadata": {"namespace": "kube-system", "name": name}, "data": data}


async def test_config_map_is_followed_from_missing_to_present_to_gone():
    async with fake_api() as api, watching(api.url) as case:
        seen: list[object] = []
        api.put(config_map("other", stubDomains="{}"))
        follow = case.watch.watch_config_map("kube-system", "kube-dns", seen.append)
        follow.start()
        try:
            await case.until(lambda: seen == [None])
            api.put(config_map("kube-dns", stubDomains='{"a": ["192.0.2.1"]}'))
            await case.until(lambda: seen[1:] == [{"stubDomains": b'{"a": ["192.0.2.1"]}'}])
            api.put(config_map("kube-dns"))
            await case.until(lambda: seen[2:] == [{}])
            api.delete("configmaps", "kube-dns", "kube-system")
            await case.until(lambda: seen[3:] == [None])
        finally:
            await follow.stop()
        asked = api.of_kind("configmaps", "watch")[0]
        assert asked.path == "/api/v1/namespaces/kube-system/configmaps"
        assert asked.params["fieldSelector"] == "metadata.name=kube-dns"


async def test_config_map_that_may_not_be_read_says_so():
    async with fake_api() as api, watching(api.url) as case:
        api.always["configmaps", "stream"] = refuse(403, message="no")
        follow = case.watch.watch_config_map("kube-system", "kube-dns", lambda data: None)
        follow.start()
        try:
            await case.until(lambda: "give the account a Role" in follow.failure)
        finally:
            await follow.stop()


@contextlib.asynccontextmanager
async def session(url):
    api = ApiSession(UrlCredentials(url))
    try:
        yield api
    finally:
        await api.close()


async def test_recorded_nodes_have_a_zone_and_a_region():
    async with fake_api() as api, session(api.url) as client:
        api.always["nodes", "list"] = replay("nodes-list.http")
        assert await read_topology(client) == Topology("z1", "r1")


LABELS = {
    "modern": {"topology.kubernetes.io/zone": "z1", "topology.kubernetes.io/region": "r1"},
    "old": {
        "failure-domain.beta.kubernetes.io/zone": "z1",
        "failure-domain.beta.kubernetes.io/region": "r1",
    },
    "mixed": {"topology.kubernetes.io/zone": "z1", "failure-domain.beta.kubernetes.io/region": "r1"},
}


@pytest.mark.parametrize("kind", LABELS)
async def test_first_node_with_both_labels_counts(kind):
    async with fake_api() as api, session(api.url) as client:
        for name, labels in {
            "a": None,
            "b": {"topology.kubernetes.io/zone": "only"},
            "c": {"topology.kubernetes.io/zone": 7, "topology.kubernetes.io/region": ""},
            "d": LABELS[kind],
        }.items():
            api.put({"kind": "Node", "metadata": {"name": name, "labels": labels}})
        assert await read_topology(client) == Topology("z1", "r1")
        assert api.asked[0].params == {"limit": "100"}


async def test_cluster_without_labels_has_no_topology():
    async with fake_api() as api, session(api.url) as client:
        api.put({"kind": "Node", "metadata": {"name": "a"}})
        assert await read_topology(client) is None


async def test_nodes_that_may_not_be_read_are_named_once_and_tried_again(caplog):
    async with fake_api() as api, session(api.url) as client:
        api.put({"kind": "Node", "metadata": {"name": "a", "labels": LABELS["modern"]}})
        api.script["nodes", "list"] = [refuse(403, message="no nodes for you")] * 2
        async with asyncio.timeout(20):
            assert await find_topology(client) == Topology("z1", "r1")
    lines = [
        record.message for record in caplog.records if "verb 'list' on resource 'nodes'" in record.message
    ]
    assert len(lines) == 1


async def test_nodes_that_cannot_be_read_raise():
    async with fake_api() as api, session(api.url) as client:
        api.always["nodes", "list"] = refuse(503)
        with pytest.raises(ApiError, match="503"):
            await read_topology(client)
