"""Negative answers are shared by length of name, and are the zone's whatever the name."""

import pytest

from kubedns.skydns.answers import Policy
from kubedns.zone.clusterzone import ClusterZone
from tests.protocol.reading import ask, read
from tests.protocol.served import Served, own_loop


@pytest.fixture
def served():
    zone = ClusterZone((b"cluster", b"local"))
    zone.mark_synced()
    with own_loop() as loop:
        yield Served(zone, loop, policy=Policy(negative_ttl=7))


@pytest.mark.parametrize("octets", [1, 2, 30, 63, 100, 150, 200, 235])
def test_name_of_any_length_has_the_zones_soa(served, octets):
    head = ".".join(["x" * 40] * (octets // 41) + ["y" * (octets % 41 or 1)])
    for name in (f"{head}.cluster.local", f"{head}.CLUSTER.Local"):
        for payload in (None, 1232):
            query = ask(name, payload=payload)
            reply = read(query, served.ask(query))
            assert reply.rcode == "NXDOMAIN"
            (soa,) = reply.authority
            assert soa.owner.lower() == "cluster.local."
            assert soa.ttl == 7
            assert soa.rdata.lower().startswith("ns.dns.cluster.local. hostmaster.cluster.local. 0 28800")


def test_apex_has_the_same_soa_without_data(served):
    query = ask("cluster.local", "TXT")
    reply = read(query, served.ask(query))
    assert (reply.rcode, len(reply.authority)) == ("NOERROR", 1)
