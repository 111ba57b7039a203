"""Connections that come, live for a while and go: nothing of them stays."""

import asyncio
from contextlib import suppress

import pytest

from tests.integration.kubedns.programs import KubeDns
from tests.protocol.reading import ask

pytestmark = pytest.mark.integration
LIFE_SECONDS = 0.15
"""Longer than from one look for garbage to the next."""
WEB = ask("web.default.svc.cluster.local")

DNS = len(WEB).to_bytes(2) + WEB
BROKEN = b"\0\xff broken\r\n\r\n"
UNFINISHED = b"POST /readiness HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\nbegin"


async def _connect(port: int, octets: bytes) -> None:
    with suppress(ConnectionError):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(octets)
        await reader.read(100)
        await asyncio.sleep(LIFE_SECONDS)
        writer.close()


async def _connect_many(port: int, octets: bytes, at_once: int, rounds: int) -> None:
    for _ in range(rounds):
        await asyncio.gather(*(_connect(port, octets) for _ in range(at_once)))


@pytest.mark.parametrize(
    ("octets", "at_once", "rounds", "most_growth"),
    [(DNS, 500, 40, 10_000_000), (BROKEN, 200, 30, 20_000_000), (UNFINISHED, 200, 30, 20_000_000)],
    ids=["dns", "broken", "unfinished"],
)
def test_ended_connections_leave_no_memory_behind(start, cases_api, octets, at_once, rounds, most_growth):
    """Left behind they would be twice as much and more."""
    server: KubeDns = start(f"--kube-master-url={cases_api.url}").synced()
    port = server.dns_port if octets is DNS else server.healthz_port
    asyncio.run(_connect_many(port, octets, at_once, 2))
    before = server.resident_octets()
    asyncio.run(_connect_many(port, octets, at_once, rounds))
    assert server.resident_octets() - before < most_growth
    assert server.get("/readiness") == (200, "ok\n")
