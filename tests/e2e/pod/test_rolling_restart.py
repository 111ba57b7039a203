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
    node.balance(address, [pod.address for pod in serving])

    async with Load(address, NAMES, per_second=500) as load:
        for leaving in old:
            # One more before one less: maxSurge 1, maxUnavailable 0.
            arriving = await asyncio.to_thread(kubelet.run_pod)
            await asyncio.to_thread(arriving.wait_ready)
            for name in leaving.pod.containers:
                await asyncio.to_thread(leaving.kill, name, signal.SIGTERM)
            await asyncio.sleep(PROPAGATION)
            serving = [*(pod for pod in serving if pod is not leaving), arriving]
            await asyncio.to_thread(node.balance, address, [pod.address for pod in serving])
        for leaving in old:
            for name in leaving.pod.containers:
                assert (await asyncio.to_thread(leaving.wait_exit, name, 25)).status == 0, leaving.logs(name)
            await asyncio.to_thread(kubelet.remove, leaving)
    report(str(load.tally))
    assert load.tally.answered == load.tally.asked
    assert load.tally.asked > 5000
