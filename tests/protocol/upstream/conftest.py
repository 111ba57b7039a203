"""Scripted upstream name servers on loopback, and a forwarder that asks them."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import dns.flags
import dns.message
import dns.rcode
import dns.rrset
import pytest

from kubedns.dns.names import pack_address
from kubedns.objects import Service
from kubedns.shared.hosts import hosts_table
from kubedns.shared.servers import ServerAddress
from kubedns.skydns.answers import Policy, ZoneAnswers
from kubedns.skydns.server import Server
from kubedns.telemetry.counters import ServerCounters, SystemCounters
from kubedns.upstream.forward import Forwarder
from kubedns.upstream.stubservers import StubServers
from kubedns.zone.clusterzone import ClusterZone
from tests.later import settled
from tests.ports import free_port, port_for_both
from tests.protocol.reading import Reply, ask, read

Text = tuple[Any, ...]
"""A record as the arguments of `dns.rrset.from_text`."""

Script = Callable[[bytes, bool], "bytes | list[bytes] | None"]


class FakeUpstream:
    """Answers each query with the messages its script returns; `seen` and `seen_tcp` keep the queries.

    The script gets the query's octets and whether it came over TCP, and returns octets, a list of
    them, or None for silence.
    """

    def __init__(self, script: Script) -> None:
        self.script = script
        self.seen: list[bytes] = []
        self.seen_tcp: list[bytes] = []
        self.streams: list[asyncio.StreamWriter] = []
        self._serving: list[asyncio.Task[None]] = []
        self.peers: list[tuple[Any, ...]] = []
        self.asked = asyncio.Event()

    async def start(self, host: str, *, tcp: bool = True) -> None:
        stream, self._socket = port_for_both(host)
        self.address = ServerAddress(*self._socket.getsockname()[:2])
        asyncio.get_running_loop().add_reader(self._socket, self._readable)
        self._listener = None
        if tcp:
            self._listener = await asyncio.start_server(self._connected, sock=stream)
        else:
            stream.close()

    async def stop(self) -> None:
        asyncio.get_running_loop().remove_reader(self._socket)
        self._socket.close()
        if self._listener is not None:
            self._listener.close()
        for writer in self.streams:
            writer.close()
        await asyncio.gather(*self._serving)

    def send(self, message: bytes, peer: tuple[Any, ...]) -> None:
        self._socket.sendto(message, peer)

    def _replies(self, query: bytes, *, tcp: bool) -> list[bytes]:
        said = self.script(query, tcp)
        self.asked.set()
        return [] if said is None else [said] if isinstance(said, bytes) else said

    def _readable(self) -> None:
        query, peer = self._socket.recvfrom(65535)
        self.seen.append(query)
        self.peers.append(peer)
        for message in self._replies(query, tcp=False):
            self._socket.sendto(message, peer)

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._serving.append(asyncio.create_task(self._serve(reader, writer)))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.streams.append(writer)
        try:
            while True:
                query = await reader.readexactly(int.from_bytes(await reader.readexactly(2)))
                self.seen_tcp.append(query)
                for message in self._replies(query, tcp=True):
                    writer.write(len(message).to_bytes(2) + message)
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


class Upstreams:
    """Starts fake upstreams, and finds addresses where nobody is."""

    def __init__(self) -> None:
        self._started: list[FakeUpstream] = []

    async def start(self, script: Script, host: str = "127.0.0.1", *, tcp: bool = True) -> FakeUpstream:
        upstream = FakeUpstream(script)
        await upstream.start(host, tcp=tcp)
        self._started.append(upstream)
        return upstream

    async def silent(self) -> FakeUpstream:
        return await self.start(lambda query, tcp: None)

    def refusing(self) -> ServerAddress:
        return ServerAddress("127.0.0.1", free_port())

    async def stop(self) -> None:
        for upstream in self._started:
            await upstream.stop()


@pytest.fixture
async def upstreams() -> AsyncIterator[Upstreams]:
    started = Upstreams()
    yield started
    await started.stop()


@pytest.fixture
def counters() -> dict[str, SystemCounters]:
    return {"recursive": SystemCounters(), "stub": SystemCounters()}


@pytest.fixture
async def forwarder(counters: dict[str, SystemCounters]) -> AsyncIterator[Forwarder]:
    made = Forwarder(counters, domain=(b"cluster", b"local"))
    yield made
    await made.close()


class NameServer:
    """The rooms that answer, with the forwarder behind them.

    In the cluster there is the Service web.shop with 10.96.0.20, and what a test adds.
    """

    def __init__(self, forwarder: Forwarder) -> None:
        self._zone = ClusterZone((b"cluster", b"local"))
        self._answers = ZoneAnswers(self._zone, Policy())
        self._forwarder = forwarder
        self._server = Server(self._zone, self._answers, forwarder, ServerCounters())
        self._server.set_clock(0.0)
        self.stub_servers = StubServers(self._zone, forwarder.resolve)
        self._add(Service("shop", "web", (pack_address("10.96.0.20"),)))
        self._zone.mark_synced()

    def _add(self, service: Service) -> None:
        self._zone.services.apply({(service.namespace, service.name): service})

    def add_alias(self, name: str, target: str) -> None:
        """Add an ExternalName in the namespace shop."""
        self._add(Service("shop", name, external_name=target))

    def set_hosts(self, lines: str) -> None:
        """Put the lines of the key `hosts` into force."""
        self._answers.hosts = self.stub_servers.hosts = hosts_table(lines)
        self._forwarder.revises_all = bool(lines)

    async def ask(self, name: str, rdtype: str = "A") -> Reply:
        """Return the reply to a question over TCP, where all records fit."""
        query = ask(name, rdtype)
        return read(query, await settled(self._server.respond(query, True)), tcp=True)


@pytest.fixture
def name_server(forwarder: Forwarder) -> NameServer:
    return NameServer(forwarder)


@pytest.fixture
def says() -> Callable[..., Script]:
    """Makes a script that answers with records in text form, RCODE and header flags."""

    def make(
        *records: Text,
        rcode: int = 0,
        flags: int = dns.flags.RA,
        authority: Sequence[Text] = (),
        additional: Sequence[Text] = (),
    ) -> Script:
        def script(query: bytes, tcp: bool) -> bytes:
            reply = dns.message.make_response(dns.message.from_wire(query))
            reply.set_rcode(dns.rcode.Rcode.make(rcode))
            reply.flags |= flags
            reply.answer = [dns.rrset.from_text(*record) for record in records]
            reply.authority = [dns.rrset.from_text(*record) for record in authority]
            reply.additional = [dns.rrset.from_text(*record) for record in additional]
            return reply.to_wire(max_size=65535)

        return script

    return make
