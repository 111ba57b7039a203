"""Servers of stub domains given by name: where they are looked up, and what becomes of them."""

import logging
from typing import Any

from kubedns.dns import numbers
from kubedns.dns.names import Labels, pack_address, parse_domain
from kubedns.dns.records import UNRESOLVED, Resolution, UpstreamRecord
from kubedns.objects import Endpoint, EndpointSlice, Service
from kubedns.shared.servers import ServerAddress
from kubedns.upstream.stubservers import StubServers, has_names, only_addresses
from kubedns.zone.clusterzone import ClusterZone

CORP = parse_domain("corp.test")


class Upstream:
    """Knows A records by name, and counts who asks."""

    def __init__(self, **known: str) -> None:
        self.known = {parse_domain(name.replace("_", ".")): address for name, address in known.items()}
        self.asked: list[tuple[Labels, int]] = []

    async def resolve(self, labels: Labels, qtype: int) -> Resolution:
        self.asked.append((labels, qtype))
        address = self.known.get(labels)
        if address is None or qtype != numbers.A:
            return UNRESOLVED
        return Resolution(0, (UpstreamRecord(labels, numbers.A, 300, pack_address(address)),))


def zone_with_name_server() -> ClusterZone:
    zone = ClusterZone(parse_domain("cluster.local"))
    zone.services.apply({("infra", "ns"): Service("infra", "ns", headless=True)})
    slice_ = EndpointSlice("infra", "ns-1", "ns", (Endpoint((pack_address("10.1.0.7"),)),))
    zone.slices.apply({("infra", "ns-1"): slice_})
    return zone


def stub_servers(upstream: Upstream) -> StubServers:
    return StubServers(zone_with_name_server(), upstream.resolve)


async def addresses(servers: StubServers, *group: ServerAddress) -> tuple[ServerAddress, ...]:
    return (await servers.with_addresses({CORP: group}))[CORP]


async def test_name_in_the_cluster_domain_is_answered_by_the_zone_itself():
    upstream = Upstream()
    server = ServerAddress("ns.infra.svc.cluster.local", 5353)
    assert await addresses(stub_servers(upstream), server) == (ServerAddress("10.1.0.7", 5353),)
    assert upstream.asked == []


async def test_name_elsewhere_is_asked_of_the_upstreams_and_order_is_kept():
    servers = stub_servers(Upstream(ns_example="192.0.2.9"))
    group = (ServerAddress("192.0.2.1"), ServerAddress("ns.example"), ServerAddress("192.0.2.9"))
    assert await addresses(servers, *group) == (ServerAddress("192.0.2.1"), ServerAddress("192.0.2.9"))


async def test_name_that_does_not_resolve_is_left_out_with_one_warning(caplog: Any):
    caplog.set_level(logging.INFO)
    upstream = Upstream()
    servers = stub_servers(upstream)
    for _ in range(3):
        assert await addresses(servers, ServerAddress("ns.example"), ServerAddress("192.0.2.1")) == (
            ServerAddress("192.0.2.1"),
        )
    assert [record.getMessage() for record in caplog.records] == [
        "stubDomains: server ns.example does not resolve and is left out for now"
    ]
    upstream.known[parse_domain("ns.example")] = "192.0.2.9"
    assert len(await addresses(servers, ServerAddress("ns.example"))) == 1
    assert "resolves again" in caplog.records[-1].getMessage()


def test_only_addresses_drops_names_and_keeps_the_domain():
    group = (ServerAddress("ns.example"), ServerAddress("192.0.2.1"))
    assert has_names({CORP: group})
    assert only_addresses({CORP: group}) == {CORP: (ServerAddress("192.0.2.1"),)}
    assert only_addresses({CORP: group[:1]}) == {CORP: ()}
    assert not has_names({CORP: group[1:]})
