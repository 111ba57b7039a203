"""A steady stream of changes to Services, through the API, as rollouts make them.

Runs as a process of its own: `python -m tests.bench.changes URL --rate 100 --seconds 5`.  Every
second as many different Services change as the rate says, half of them headless: those get an
endpoint with a new address, the others another port.  With --unseen the same work is done at slices that
no record comes from, those of Services with a cluster IP.  Prints how many changes were made.
"""

import argparse
import asyncio
import sys

import aiohttp

from tests.bench.cluster import Cluster, namespace, pod_ip, slice_name

_MERGE_PATCH = {"Content-Type": "application/merge-patch+json"}
_NEW_ADDRESSES = 1 << 21


async def change_for(url: str, rate: int, seconds: float, cluster: Cluster, *, unseen: bool) -> int:
    """Make `rate` changes a second; return how many were made.  Raises aiohttp.ClientError."""
    loop = asyncio.get_running_loop()
    timeout = aiohttp.ClientTimeout(total=10)
    async with aiohttp.ClientSession(url, raise_for_status=True, timeout=timeout) as session:
        begun, made = loop.time(), 0
        while (due := made / rate) < seconds > loop.time() - begun:
            await asyncio.sleep(begun + due - loop.time())
            path, patch = _change(cluster, made, rate, unseen=unseen)
            async with session.patch(path, json=patch, headers=_MERGE_PATCH):
                made += 1
    return made


def _change(cluster: Cluster, number: int, rate: int, *, unseen: bool) -> tuple[str, dict[str, object]]:
    """Return path and patch of one change; the Services come round again after `rate` of them."""
    turn, index = divmod(number, rate)
    which = index // 2
    if index % 2 or unseen:
        service = which % cluster.portals if unseen else cluster.services - 1 - which % cluster.headless
        body = cluster.slice(service)
        body["endpoints"][turn % cluster.endpoints]["addresses"] = [pod_ip(_NEW_ADDRESSES + number)]
        path = f"/apis/discovery.k8s.io/v1/namespaces/{namespace(service)}/endpointslices"
        return f"{path}/{slice_name(service)}", {"endpoints": body["endpoints"]}
    service = which % cluster.portals
    ports = cluster.service(service)["spec"]["ports"]
    ports[0]["port"] = 1000 + turn % 1000
    return f"/api/v1/namespaces/{namespace(service)}/services/svc-{service}", {"spec": {"ports": ports}}


def main() -> int:
    """Make changes as the command line says; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url", help="base URL of the API server")
    parser.add_argument("--rate", type=int, default=100, help="changes per second")
    parser.add_argument("--seconds", type=float, default=5.0, help="how long")
    parser.add_argument("--unseen", action="store_true", help="change what kube-dns does not watch")
    options = parser.parse_args()
    changes = change_for(options.url, options.rate, options.seconds, Cluster(), unseen=options.unseen)
    print(asyncio.run(changes))
    return 0


if __name__ == "__main__":
    sys.exit(main())
