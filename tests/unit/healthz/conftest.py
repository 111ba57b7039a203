"""A DNS server on loopback that answers as a test tells it to."""

import asyncio
from collections.abc import AsyncIterator, Callable

import dnslib
import pytest

from healthz.dnsmasqstats import DnsmasqStatistics
from healthz.traffic import OwnQuestions
from kubedns.shared.servers import ServerAddress

Answerer = Callable[[dnslib.DNSRecord], dnslib.DNSRecord | None]


class FakeServer(asyncio.DatagramProtocol):
    """`answer` makes the reply to a query, None for silence; `asked` holds the queries."""

    def __init__(self) -> None:
        self.answer: Answerer = lambda query: query.reply()
        self.asked: list[dnslib.DNSRecord] = []
        self.address = ServerAddress("127.0.0.1")

    def connection_made(self, transport):
        self.transport = transport
        self.address = ServerAddress(*transport.get_extra_info("sockname"))

    def datagram_received(self, data, addr):
        query = dnslib.DNSRecord.parse(data)
        self.asked.append(query)
        reply = self.answer(query)
        if reply is not None:
            self.transport.sendto(reply.pack(), addr)


@pytest.fixture
async def dns_server() -> AsyncIterator[FakeServer]:
    server = FakeServer()
    transport, _ = await asyncio.get_running_loop().create_datagram_endpoint(
        lambda: server, local_addr=("127.0.0.1", 0)
    )
    yield server
    transport.close()


@pytest.fixture
def statistics_of() -> Callable[..., DnsmasqStatistics]:
    """Make the statistics of a dnsmasq; `started` returns since when it is up."""

    def make(
        server: ServerAddress,
        timeout: float = 5,
        started: Callable[[], float | None] = lambda: None,
        own: OwnQuestions | None = None,
    ) -> DnsmasqStatistics:
        async def up_since() -> float | None:
            return started()

        return DnsmasqStatistics(server, timeout, own or OwnQuestions(), lambda: 100.0, up_since)

    return make
