"""A record server on free ports of 127.0.0.1, in this process, and clients that ask it."""

import asyncio
from collections.abc import Mapping, Sequence

from kubedns.dns.names import Labels
from kubedns.shared.servers import ServerAddress
from kubedns.skydns.answers import Policy, ZoneAnswers
from kubedns.skydns.server import Server
from kubedns.telemetry.counters import ServerCounters
from kubedns.transport.tcp import TcpServer
from kubedns.transport.udp import UdpServer
from kubedns.upstream.forward import Forwarder
from kubedns.zone.clusterzone import ClusterZone

PATIENCE_SECONDS = 5.0


class Listening:
    """Sockets, answering and forwarding joined as the program joins them; `port` is for UDP and TCP."""

    def __init__(self, zone: ClusterZone, policy: Policy | None = None) -> None:
        self.zone = zone
        self.counters = ServerCounters()
        self.forwarder = Forwarder(self.counters.systems, domain=zone.domain)
        answers = ZoneAnswers(zone, policy or Policy())
        self.server = Server(zone, answers, self.forwarder, self.counters)
        self.server.set_clock(0)
        self._udp = UdpServer(self.server.respond, self.counters.note_batch)
        self._tcp = TcpServer(self.server.respond_tcp)

    def forward_to(
        self,
        *upstreams: ServerAddress,
        stub_domains: Mapping[Labels, Sequence[ServerAddress]] | None = None,
    ) -> None:
        self.forwarder.configure(upstreams, stub_domains or {})

    async def start(self, host: str = "127.0.0.1") -> None:
        while True:
            self.port = self._udp.start(host, 0)
            try:
                await self._tcp.start(host, self.port)
            except OSError:
                self._udp.stop()
                continue
            return

    async def stop(self) -> None:
        await self._tcp.stop()
        self._udp.stop()
        await self.forwarder.close()

    async def ask(self, query: bytes, *, tcp: bool = False) -> bytes:
        """Return the reply to a query; TimeoutError when none comes."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            return await (ask_tcp if tcp else ask_udp)(query, self.port)


async def ask_udp(query: bytes, port: int, host: str = "127.0.0.1") -> bytes:
    """Return the reply to a query over UDP."""
    loop = asyncio.get_running_loop()
    replies: asyncio.Queue[bytes] = asyncio.Queue()
    transport, _ = await loop.create_datagram_endpoint(lambda: _Replies(replies), remote_addr=(host, port))
    try:
        transport.sendto(query)
        return await replies.get()
    finally:
        transport.close()


async def ask_tcp(query: bytes, port: int, host: str = "127.0.0.1") -> bytes:
    """Return the reply to a query over a TCP connection of its own."""
    reader, writer = await asyncio.open_connection(host, port)
    try:
        writer.write(len(query).to_bytes(2) + query)
        return await reader.readexactly(int.from_bytes(await reader.readexactly(2)))
    finally:
        writer.close()
        await writer.wait_closed()


class _Replies(asyncio.DatagramProtocol):
    def __init__(self, replies: asyncio.Queue[bytes]) -> None:
        self._replies = replies

    def datagram_received(self, data: bytes, addr: object) -> None:
        self._replies.put_nowait(data)
