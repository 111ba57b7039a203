"""Name servers are asked for something cheap: any reply means alive, silence and refusal do not."""

import asyncio
import logging
import socket
from collections.abc import AsyncIterator

import dnslib
import pytest

from kubedns.shared.servers import ServerAddress
from kubedns.shared.upstreamcheck import UpstreamChecks, upstream_families


class Server(asyncio.DatagramProtocol):
    """Answers every question REFUSED, or with an ID that nobody asked for."""

    def __init__(self) -> None:
        self.asked: list[dnslib.DNSRecord] = []
        self.foreign = False

    def connection_made(self, transport):
        self.transport = transport
        self.address = ServerAddress(*transport.get_extra_info("sockname"))

    def datagram_received(self, data, addr):
        query = dnslib.DNSRecord.parse(data)
        self.asked.append(query)
        reply = query.reply()
        reply.header.rcode = 5
        if self.foreign:
            reply.header.id ^= 1
        self.transport.sendto(reply.pack(), addr)


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    one = Server()
    transport, _ = await asyncio.get_running_loop().create_datagram_endpoint(
        lambda: one, local_addr=("127.0.0.1", 0)
    )
    yield one
    transport.close()


@pytest.fixture
def nobody() -> ServerAddress:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as gone:
        gone.bind(("127.0.0.1", 0))
        return ServerAddress(*gone.getsockname())


async def test_any_reply_says_alive_and_each_domain_is_asked_for_its_own(server):
    checks = UpstreamChecks(lambda: [(server.address, "."), (server.address, "corp.test")])
    await checks.ask_all()
    assert [(report.domain, report.up, report.reason) for report in checks.reports()] == [
        (".", True, ""),
        ("corp.test", True, ""),
    ]
    assert all(report.latency is not None for report in checks.reports())
    asked = {(str(query.q.qname), dnslib.QTYPE[query.q.qtype]) for query in server.asked}
    assert asked == {(".", "NS"), ("corp.test.", "SOA")}


async def test_server_that_is_gone_is_down_with_reason_and_told_once(nobody, caplog):
    caplog.set_level(logging.INFO)
    checks = UpstreamChecks(lambda: [(nobody, ".")])
    await checks.ask_all()
    await checks.ask_all()
    (report,) = checks.reports()
    assert (report.up, report.reason, report.failures) == (False, "refused", {"refused": 2})
    assert len(caplog.records) == 1


async def test_reply_of_another_question_is_none(server):
    server.foreign = True
    checks = UpstreamChecks(lambda: [(server.address, ".")])
    await checks.ask_all()
    (report,) = checks.reports()
    assert (report.up, report.reason) == (False, "timeout")
    server.foreign = False
    await checks.ask_all()
    (report,) = checks.reports()
    assert (report.up, report.failures) == (True, {"timeout": 1})


async def test_servers_that_are_not_in_force_any_more_are_forgotten(server, nobody):
    targets = [(server.address, "."), (nobody, ".")]
    checks = UpstreamChecks(lambda: targets)
    await checks.ask_all()
    del targets[1]
    await checks.ask_all()
    assert [report.server for report in checks.reports()] == [str(server.address)]
    up, _, failures = upstream_families("x", checks.reports())
    assert [sample.value for sample in up.samples] == [1.0]
    assert failures.samples == []
