"""A small cluster takes little memory, and the limits hold with a large one, under load and idle TCP clients.

The small one comes first: all tests share one API server, and its objects stay.
"""

import asyncio
import contextlib
import socket
from pathlib import Path

import pytest

from tests.e2e.pod.lookups import Load, dig, place_of
from tests.e2e.pod.objects import large_cluster

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(240)]

SERVICES, HEADLESS, ENDPOINTS = 10_000, 1_000, 10
LOAD_SECONDS = 15.0
NAMES = ("web.shop.svc.cluster.local", "db.shop.svc.cluster.local", "www.example.org")


MOST_RESIDENT = {"kubedns": 47, "dnsmasq": 52, "healthz": 44}
"""MiB of a container's processes with a few Services; the nanny and dnsmasq are in one container."""


def _resident(process: int) -> int:
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{process}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
    return 0


def test_a_pod_of_a_small_cluster_stays_small(fresh_pod, report) -> None:
    for name in NAMES:
        assert dig(fresh_pod.door, name)
    for port in (10054, 10055, 10056):
        assert fresh_pod.get(port, "/metrics").healthy
    resident = {
        name: sum(map(_resident, fresh_pod.process_ids(name))) / 2**20 for name in fresh_pod.pod.containers
    }
    report(", ".join(f"{name} {size:.0f} MiB" for name, size in resident.items()))
    report(f"the pod {sum(resident.values()):.0f} MiB")
    for name, size in resident.items():
        assert size <= MOST_RESIDENT[name]
    assert sum(resident.values()) <= 140


async def test_no_container_reaches_its_limit_with_10000_services_under_load(
    kubelet, backstage, report
) -> None:
    await asyncio.to_thread(backstage.apply_many, large_cluster(SERVICES, HEADLESS, ENDPOINTS))
    pod = await asyncio.to_thread(kubelet.run_pod)
    report(f"ready in {await asyncio.to_thread(pod.wait_ready):.1f} s, kubelet's probes included")
    names = [f"svc-{number}.ns-{number % 100}.svc.cluster.local" for number in range(0, SERVICES, 7)]
    with contextlib.ExitStack() as idle:
        for _ in range(80):
            idle.enter_context(socket.create_connection(place_of(pod.door), 5))
        async with Load(pod.door, names, per_second=1000) as load:
            for _ in range(3):
                await asyncio.to_thread(backstage.api.drop_watches)
                await asyncio.sleep(LOAD_SECONDS / 3)
                assert await asyncio.to_thread(dig, pod.door, "+tcp", names[1])
    report(str(load.tally))
    assert load.tally.answered == load.tally.asked
    for container in pod.pod.containers.values():
        peak = pod.memory_peak(container.name)
        report(f"{container.name}: peak {peak / 2**20:.0f} of {container.memory_limit / 2**20:.0f} MiB")
        assert peak < 0.9 * container.memory_limit
        assert pod.running(container.name)
