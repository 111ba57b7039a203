"""Forwarding to a real dnsmasq, asked by dig and kdig over both transports."""

import asyncio
import os

import pytest

from kubedns.shared.servers import ServerAddress
from kubedns.telemetry.counters import SystemCounters
from kubedns.transport.tcp import TcpServer
from kubedns.upstream.forward import Forwarder
from tests.later import awaiting, forwarded
from tests.ports import free_port
from tests.tools import tool

pytestmark = pytest.mark.integration
DIG = tool("dig:bind9-dnsutils")
LONG_TEXTS = [f"--txt-record=long.example.test,{number:0200}" for number in range(20)]


async def output_of(*command: str) -> str:
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    async with asyncio.timeout(20):
        output, _ = await process.communicate()
    return output.decode()


@pytest.fixture
async def dnsmasq():
    port = free_port()
    process = await asyncio.create_subprocess_exec(
        tool("dnsmasq:dnsmasq-base"),
        "--keep-in-foreground",
        "--conf-file=/dev/null",
        f"--port={port}",
        "--listen-address=127.0.0.1",
        "--bind-interfaces",
        "--no-resolv",
        "--no-hosts",
        "--pid-file=",
        f"--user={os.environ.get('USER', 'root')}",
        "--log-facility=-",
        "--local=/example.test/",
        "--address=/www.example.test/192.0.2.53",
        *LONG_TEXTS,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stderr is not None
    async with asyncio.timeout(20):
        while b"started" not in await process.stderr.readline():
            assert process.returncode is None
    yield ServerAddress("127.0.0.1", port)
    process.terminate()
    await process.wait()


@pytest.fixture
async def server(dnsmasq):
    forwarder = Forwarder(
        {"recursive": SystemCounters(), "stub": SystemCounters()}, domain=(b"cluster", b"local")
    )
    forwarder.configure([dnsmasq], {})

    async def respond(message: bytes, tcp: bool) -> bytes | None:
        return await forwarded(forwarder, message, tcp=tcp)

    class Datagrams(asyncio.DatagramProtocol):
        def connection_made(self, transport):
            self.transport = transport

        def datagram_received(self, data, addr):
            task = asyncio.get_running_loop().create_task(respond(data, False))
            task.add_done_callback(lambda done: self.transport.sendto(done.result(), addr))

    tcp = TcpServer(awaiting(respond))
    port = await tcp.start("127.0.0.1", free_port())
    udp, _ = await asyncio.get_running_loop().create_datagram_endpoint(
        Datagrams, local_addr=("127.0.0.1", port)
    )
    yield str(port)
    udp.close()
    await tcp.stop()
    await forwarder.close()


async def test_address_is_found_over_both_transports(server):
    for transport in ("+notcp", "+tcp"):
        answer = await output_of(DIG, "@127.0.0.1", "-p", server, transport, "+short", "www.example.test")
        assert answer == "192.0.2.53\n"


async def test_missing_name_is_nxdomain(server):
    assert "status: NXDOMAIN" in await output_of(DIG, "@127.0.0.1", "-p", server, "no.example.test")


async def test_long_answer_is_truncated_over_udp_and_whole_over_tcp(server):
    options = ("@127.0.0.1", "-p", server, "long.example.test", "TXT")
    cut = await output_of(DIG, "+ignore", *options)
    assert " tc" in cut.partition("flags:")[2].partition(";")[0]
    assert f"ANSWER: {len(LONG_TEXTS)}," not in cut
    assert f"ANSWER: {len(LONG_TEXTS)}," in await output_of(DIG, *options)


async def test_kdig_asks_several_questions_over_one_connection(server):
    names = [f"n{number}.www.example.test" for number in range(20)]
    answer = await output_of(
        tool("kdig:knot-dnsutils"), "@127.0.0.1", "-p", server, "+tcp", "+keepopen", "+short", *names
    )
    assert answer.split() == ["192.0.2.53"] * len(names)


async def test_name_of_one_label_stays_here(server):
    assert "status: SERVFAIL" in await output_of(DIG, "@127.0.0.1", "-p", server, "www")
