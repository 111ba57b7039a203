"""SIGTERM to a whole pod, as kubelet sends it, while clients go on asking."""

import asyncio
import signal
import time

import pytest

from tests.e2e.pod.kubelet import Exit, wait_until
from tests.e2e.pod.lookups import Load

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

NAMES = ("web.shop.svc.cluster.local", "db-0.db.shop.svc.cluster.local", "www.example.org")
LAME_DUCK_AT_LEAST = 12.0


async def test_term_answers_everything_for_the_lame_duck_time_and_then_ends_with_0(fresh_pod, report) -> None:
    pod = fresh_pod
    async with Load(pod.door, NAMES, per_second=500) as load:
        started = time.monotonic()
        for name in pod.pod.containers:
            await asyncio.to_thread(pod.kill, name, signal.SIGTERM)
        await asyncio.to_thread(wait_until, lambda: not pod.ready(), 3, pod.describe)
        await asyncio.sleep(LAME_DUCK_AT_LEAST - (time.monotonic() - started))
    report(str(load.tally))
    assert load.tally.answered == load.tally.asked > 400 * LAME_DUCK_AT_LEAST
    assert load.tally.retried == 0
    for name in pod.pod.containers:
        ended = await asyncio.to_thread(pod.wait_exit, name, 20)
        assert ended == Exit(0, out_of_memory=False), pod.logs(name)
    assert time.monotonic() - started < pod.pod.grace_period


def test_a_second_term_ends_at_once_with_0(fresh_pod) -> None:
    for _ in range(2):
        for name in ("kubedns", "dnsmasq"):
            fresh_pod.kill(name, signal.SIGTERM)
            wait_until(lambda: not fresh_pod.ready(), 3, fresh_pod.describe)
    for name in ("kubedns", "dnsmasq"):
        assert fresh_pod.wait_exit(name, 5) == Exit(0, out_of_memory=False), fresh_pod.logs(name)
