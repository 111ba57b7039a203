"""Hostile packets, one by one: each gets what it deserves, and the next honest question its answer."""

import asyncio
import logging

import dns.message
import dns.rcode
import pytest

from kubedns.objects import Endpoint, EndpointSlice, Port, Service
from kubedns.zone.clusterzone import ClusterZone
from tests.protocol.attack.mutation import Mutator
from tests.protocol.attack.packets import EITHER, SILENCE, corpus, frames
from tests.protocol.listening import Listening
from tests.protocol.reading import ask, read
from tests.protocol.served import Served, own_loop

HONEST = ask("web.default.svc.cluster.local")
MUTATIONS = 20_000


@pytest.fixture
def zone() -> ClusterZone:
    zone = ClusterZone((b"cluster", b"local"))
    web = Service("default", "web", cluster_ips=(bytes((10, 96, 10, 1)),), ports=(Port("http", "tcp", 80),))
    db = Service("shop", "db", headless=True)
    zone.services.apply({("default", "web"): web, ("shop", "db"): db})
    endpoints = (Endpoint((bytes((10, 244, 0, 1)),), "db-0"), Endpoint((bytes((10, 244, 0, 2)),)))
    zone.slices.apply({("shop", "db"): EndpointSlice("shop", "db", "db", endpoints)})
    zone.mark_synced()
    return zone


@pytest.fixture
def served(zone):
    with own_loop() as loop:
        yield Served(zone, loop)


@pytest.fixture
async def listening(zone):
    server = Listening(zone)
    await server.start()
    yield server
    await server.stop()


@pytest.fixture(autouse=True)
def no_fault_logged(caplog):
    with caplog.at_level(logging.ERROR):
        yield
    assert not [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]


def outcome(reply: bytes | None) -> str:
    if reply is None:
        return SILENCE
    assert reply[2] & 0x80, "a reply without QR"
    message = dns.message.from_wire(reply, ignore_trailing=False)
    return dns.rcode.to_text(message.rcode())


@pytest.mark.parametrize(
    ("packet", "wanted"),
    [pytest.param(packet, wanted, id=name) for name, packet, wanted in corpus() if wanted != EITHER],
)
@pytest.mark.parametrize("tcp", [False, True], ids=["udp", "tcp"])
@pytest.mark.parametrize("warm", [False, True], ids=["cold", "warm"])
def test_hostile_packet_gets_its_rcode(served, packet, wanted, tcp, warm):
    if warm:
        read(HONEST, served.ask(HONEST))
        read(HONEST, served.ask(HONEST))
    assert outcome(served.ask(packet, tcp=tcp)) == wanted
    assert read(HONEST, served.ask(HONEST)).rdatas("A") == {"10.96.10.1"}


@pytest.mark.parametrize(
    "packet", [pytest.param(packet, id=name) for name, packet, wanted in corpus() if wanted == EITHER]
)
def test_questionable_packet_gets_a_well_formed_reply(served, packet):
    outcome(served.ask(packet))
    assert read(HONEST, served.ask(HONEST)).rdatas("A") == {"10.96.10.1"}


@pytest.mark.parametrize("seed", range(2))
def test_mutated_packets_get_silence_or_a_reply_under_their_own_id(served, seed):
    mutator = Mutator(seed)
    for _ in range(MUTATIONS):
        packet = mutator.packet()
        reply = served.ask(packet)
        if reply is not None:
            assert reply[:2] == packet[:2]
            assert len(reply) <= 1232
            outcome(reply)
    assert read(HONEST, served.ask(HONEST)).rdatas("A") == {"10.96.10.1"}


async def test_hostile_packets_over_udp_leave_the_next_question_answered(listening):
    loop = asyncio.get_running_loop()
    sender, _ = await loop.create_datagram_endpoint(
        asyncio.DatagramProtocol, remote_addr=("127.0.0.1", listening.port)
    )
    for _, packet, _ in corpus():
        sender.sendto(packet)
        assert read(HONEST, await listening.ask(HONEST)).rdatas("A") == {"10.96.10.1"}
    sender.close()


@pytest.mark.parametrize("octets", [pytest.param(octets, id=name) for name, octets in frames()])
async def test_hostile_frame_over_tcp_leaves_the_next_question_answered(listening, octets):
    _, writer = await asyncio.open_connection("127.0.0.1", listening.port)
    writer.write(octets)
    assert read(HONEST, await listening.ask(HONEST, tcp=True), tcp=True).rdatas("A") == {"10.96.10.1"}
    writer.close()
    assert read(HONEST, await listening.ask(HONEST)).rdatas("A") == {"10.96.10.1"}


async def test_unfinished_frames_on_many_connections_leave_the_next_question_answered(listening):
    writers = []
    for at in range(50):
        _, writer = await asyncio.open_connection("127.0.0.1", listening.port)
        writer.write(b"\xff\xff" + bytes(at))
        writers.append(writer)
    assert read(HONEST, await listening.ask(HONEST, tcp=True), tcp=True).rdatas("A") == {"10.96.10.1"}
    for writer in writers:
        writer.transport.abort()
