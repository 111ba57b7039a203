"""Addresses of servers given by name, asked of a kube-dns that is a table."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from dnslib import AAAA, QTYPE, RCODE, RR, A, DNSRecord

from kubedns.shared.servers import ServerAddress
from nanny.resolve import Resolver


class KubeDNS(asyncio.DatagramProtocol):
    """Answers from `addresses`; with `rcode` set it answers with that alone, with `silent` never."""

    def __init__(self) -> None:
        self.addresses: dict[str, list[str]] = {}
        self.rcode: int | None = None
        self.silent = False

    def connection_made(self, transport) -> None:
        self.transport = transport

    def datagram_received(self, data: bytes, addr) -> None:
        query = DNSRecord.parse(data)
        reply = query.reply()
        found = self.addresses.get(str(query.q.qname).rstrip("."))
        if self.rcode is not None:
            reply.header.rcode = self.rcode
        elif found is None:
            reply.header.rcode = RCODE.NXDOMAIN
        for address in found or ():
            rdata = AAAA(address) if ":" in address else A(address)
            if QTYPE[query.q.qtype] == ("AAAA" if ":" in address else "A") and self.rcode is None:
                reply.add_answer(RR(query.q.qname, query.q.qtype, ttl=5, rdata=rdata))
        if not self.silent:
            self.transport.sendto(reply.pack(), addr)


@pytest.fixture
async def kubedns() -> AsyncIterator[KubeDNS]:
    loop = asyncio.get_running_loop()
    transport, protocol = await loop.create_datagram_endpoint(KubeDNS, local_addr=("127.0.0.1", 0))
    yield protocol
    transport.close()


@pytest.fixture
def resolver(kubedns) -> Resolver:
    port = kubedns.transport.get_extra_info("sockname")[1]
    return Resolver(ServerAddress("127.0.0.1", port), ["corp.local"])


async def test_addresses_come_in_a_stable_order(kubedns, resolver):
    kubedns.addresses["ns.corp.local"] = ["2001:db8::1", "192.0.2.10", "192.0.2.9"]
    first = await resolver.resolve(["ns.corp.local"])
    kubedns.addresses["ns.corp.local"].reverse()
    assert first == await resolver.resolve(["ns.corp.local"])
    assert first.addresses == {"ns.corp.local": ("192.0.2.9", "192.0.2.10", "2001:db8::1")}
    assert not first.failures


async def test_a_name_without_addresses_loses_those_it_had(kubedns, resolver):
    kubedns.addresses["ns.corp.local"] = ["192.0.2.9"]
    await resolver.resolve(["ns.corp.local"])
    empty: dict[str, list[str]] = {"ns.corp.local": []}
    for gone in (empty, {}):
        kubedns.addresses = gone
        resolution = await resolver.resolve(["ns.corp.local"])
        assert not resolution.addresses
        assert "without addresses" in resolution.failures["ns.corp.local"]


@pytest.mark.parametrize(
    ("rcode", "named"), [(RCODE.SERVFAIL, "SERVFAIL"), (RCODE.REFUSED, "REFUSED"), (11, "rcode 11")]
)
async def test_a_failure_for_the_moment_keeps_the_addresses(kubedns, resolver, rcode, named):
    kubedns.rcode = rcode
    assert named in (await resolver.resolve(["ns.corp.local"])).failures["ns.corp.local"]
    kubedns.rcode, kubedns.addresses["ns.corp.local"] = None, ["192.0.2.9"]
    await resolver.resolve(["ns.corp.local"])
    kubedns.rcode = rcode
    assert (await resolver.resolve(["ns.corp.local"])).addresses == {"ns.corp.local": ("192.0.2.9",)}


async def test_no_answer_is_a_failure_in_bounded_time_however_many_names(kubedns, resolver):
    kubedns.silent = True
    names = [f"n{number}.corp.local" for number in range(100)]
    async with asyncio.timeout(10):
        resolution = await resolver.resolve(names)
    assert set(resolution.failures) == set(names)


async def test_names_outside_the_cluster_domain_are_asked_of_the_system(resolver):
    resolution = await resolver.resolve(["localhost", "notcorp.local.invalid"])
    assert "127.0.0.1" in resolution.addresses["localhost"]
    assert set(resolution.failures) == {"notcorp.local.invalid"}
