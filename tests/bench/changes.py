"""A steady stream of changes to Services, as rollouts make them.

Every second as many different Services change as the rate says, half of them headless: those get an
endpoint with a new address, the others another port.
"""

import asyncio
from typing import Any

from kubedns.local.api.server import LocalApi
from tests.bench.cluster import Cluster, pod_ip

_NEW_ADDRESSES = 1 << 21


async def change_for(api: LocalApi, cluster: Cluster, rate: int, seconds: float, *, unseen: bool) -> int:
    """Make `rate` changes a second; return how many were made.

    Unseen ones are the same work at slices that no record comes from, those of Services with a cluster IP.
    """
    loop = asyncio.get_running_loop()
    begun, made = loop.time(), 0
    while (due := made / rate) < seconds > loop.time() - begun:
        await asyncio.sleep(begun + due - loop.time())
        api.apply(_changed(cluster, made, rate, unseen=unseen))
        made += 1
    return made


def _changed(cluster: Cluster, number: int, rate: int, *, unseen: bool) -> dict[str, Any]:
    """Return the new state of the object of one change; the Services come round again after `rate` of them."""
    turn, index = divmod(number, rate)
    which = index // 2
    if index % 2 or unseen:
        service = which % cluster.portals if unseen else cluster.services - 1 - which % cluster.headless
        body = cluster.slice(service)
        body["endpoints"][turn % cluster.endpoints]["addresses"] = [pod_ip(_NEW_ADDRESSES + number)]
    else:
        body = cluster.service(which % cluster.portals)
        body["spec"]["ports"][0]["port"] = 1000 + turn % 1000
    return body
