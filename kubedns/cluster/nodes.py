"""Zone and region of the cluster, from the labels of one of its nodes; read once, not per query.

In: the API's nodes, in pages.
Out: Topology, None where no node carries both labels.
Source: the well-known labels `topology.kubernetes.io/*`, else the older
`failure-domain.beta.kubernetes.io/*`, which the original reads.
"""

import asyncio
import logging
from contextlib import aclosing
from random import Random
from typing import Any, Final

from kubedns.cluster.backoff import Backoff
from kubedns.cluster.errors import ApiError
from kubedns.cluster.listing import paged
from kubedns.cluster.resources import NODES, Selection
from kubedns.cluster.session import Api
from kubedns.objects import Topology

_log = logging.getLogger(__name__)

_PAGE = 100
_PREFIXES = ("topology.kubernetes.io/", "failure-domain.beta.kubernetes.io/")
_UNLABELLED_AGAIN: Final = 45.0


async def read_topology(api: Api) -> Topology | None:
    """Return zone and region of the first node that has both, None if none has; raises ApiError."""
    async with aclosing(paged(api, Selection("nodes", NODES), _PAGE)) as events:
        async for event in events:
            if event.type == "ADDED" and (found := topology_of(event.object)) is not None:
                return found
    return None


async def find_topology(api: Api) -> Topology:
    """Return zone and region as soon as they can be read; each reason why not is logged once."""
    backoff, logged = Backoff(Random()), ""
    while True:
        try:
            found = await read_topology(api)
        except ApiError as error:
            delay, reason = max(backoff.next(), error.retry_after or 0.0), str(error)
        else:
            if found is not None:
                _log.info("the cluster is in zone %s of region %s", found.zone, found.region)
                return found
            delay, reason = _UNLABELLED_AGAIN, f"no node has both labels {_PREFIXES[0]}zone and region"
        if reason != logged:
            logged = reason
            _log.warning("federation names of other clusters cannot be answered: %s", reason)
        await asyncio.sleep(delay)


def topology_of(node: dict[str, Any]) -> Topology | None:
    """Return zone and region of a node's JSON, None unless it has both."""
    metadata = node.get("metadata")
    labels = metadata.get("labels") if isinstance(metadata, dict) else None
    if not isinstance(labels, dict):
        return None
    zone, region = _label(labels, "zone"), _label(labels, "region")
    return Topology(zone, region) if zone and region else None


def _label(labels: dict[str, Any], name: str) -> str:
    values = (labels.get(prefix + name) for prefix in _PREFIXES)
    return next((value for value in values if isinstance(value, str) and value), "")
