"""The objects of a List of API JSON, as the API room hands them to the zone."""

import json
from pathlib import Path

from kubedns.cluster import project
from kubedns.objects import EndpointSlice, Key, Service
from kubedns.zone.clusterzone import ClusterZone


def zone_of(path: Path, domain: tuple[bytes, ...] = (b"cluster", b"local")) -> ClusterZone:
    """Return a synced zone of the Services and EndpointSlices in a file."""
    services: dict[Key, Service | None] = {}
    slices: dict[Key, EndpointSlice | None] = {}
    refused: list[str] = []
    for item in json.loads(path.read_bytes())["items"]:
        if item["kind"] == "Service":
            key = project.key_of(item)
            services[key] = project.service(key, item, refused)
        elif item["kind"] == "EndpointSlice":
            key = project.key_of(item)
            slices[key] = project.endpoint_slice(key, item, refused)
    assert not refused
    zone = ClusterZone(domain)
    zone.services.apply(services)
    zone.slices.apply(slices)
    zone.mark_synced()
    return zone
