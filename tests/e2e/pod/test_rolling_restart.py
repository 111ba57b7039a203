"""A rolling restart of two replicas behind the Service's address, under load."""

import asyncio
import signal

import pytest

from tests.e2e.pod.lookups import Load

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(240)]

NAMES = ("web.shop.svc.cluster.local", "db.shop.svc.cluster.local", "www.example.org")
PROPAGATION = 2.0
"""Seconds from a pod's end being decided until the last node no longer sends to it."""


async def test_no_lookup_fails_while_both_replicas_are_replaced(
    kubelet, node, pod_manifest, backstage, report
) -> None:
    address = pod_manifest.cluster_ip
    old = [await asyncio.to_thread(kubelet.run_pod) for _ in range(2)]
    for pod in old:
        await asyncio.to_thread(pod.wait_ready)
    serving = list(old)
    node.balance(address, [pod.address for pod in serving], pod_manifest.door)

    async with Load(address, NAMES, per_second=500) as load:
        for leaving in old:
            # One more before one less: maxSurge 1, maxUnavailable 0.
            arriving = await asyncio.to_thread(kubelet.run_pod)
            await asyncio.to_thread(arriving.wait_ready)
            for name in leaving.pod.containers:
                await asyncio.to_thread(leaving.kill, name, signal.SIGTERM)
            await asyncio.sleep(PROPAGATION)
            serving = [*(pod for pod in serving if pod is not leaving), arriving]
            await asyncio.to_thread(
                node.balance, address, [pod.address for pod in serving], pod_manifest.door
            )
        for leaving in old:
            for name in leaving.pod.containers:
                assert (await asyncio.to_thread(leaving.wait_exit, name, 25)).status == 0, leaving.logs(name)
            await asyncio.to_thread(kubelet.remove, leaving)
    report(str(load.tally))
    assert load.tally.answered == load.tally.asked
    assert load.tally.asked > 5000


async def test_no_lookup_fails_while_the_service_is_switched_between_the_wirings(
    kubelet, node, pod_manifest, report
) -> None:
    """One field of the Service, patched back and forth, with the pods of either wiring."""
    address = pod_manifest.cluster_ip
    pods = [await asyncio.to_thread(kubelet.run_pod) for _ in range(2)]
    for pod in pods:
        await asyncio.to_thread(pod.wait_ready)
    serving = [pod.address for pod in pods]
    node.balance(address, serving, pod_manifest.door)
    async with Load(address, NAMES, per_second=300) as load:
        for port in (10053, 53, 10053, 53):
            await asyncio.sleep(3)
            await asyncio.to_thread(node.balance, address, serving, port)
        await asyncio.sleep(3)
    report(str(load.tally))
    assert load.tally.answered == load.tally.asked > 4000
    assert load.tally.retried == 0
