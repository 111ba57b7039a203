"""Connections that come, live for a while and go: nothing of them stays."""

import asyncio
from contextlib import suppress

import pytest

from tests.integration.kubedns.programs import KubeDns
from tests.protocol.reading import ask

pytestmark = pytest.mark.integration
LIFE_SECONDS = 0.15
"""Longer than from one collection to the next."""
SERIES = 20
"""More than bring the program to a full collection, which is due when some 40 MiB more are in use."""
MOST_LEFT_OCTETS = 500
"""For each connection; one that is not let go of is some thousands."""
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


@pytest.mark.timeout(180)
@pytest.mark.parametrize(
    ("octets", "at_once", "rounds"),
    [(DNS, 500, 10), (BROKEN, 200, 10), (UNFINISHED, 200, 10)],
    ids=["dns", "broken", "unfinished"],
)
def test_ended_connections_leave_no_memory_behind(start, cases_api, octets, at_once, rounds):
    """What stays behind adds up in every series; what more connections at once take for a time does not."""
    server: KubeDns = start(f"--kube-master-url={cases_api.url}").synced()
    port = server.dns_port if octets is DNS else server.healthz_port
    asyncio.run(_connect_many(port, octets, at_once, 2))
    growths = []
    for _ in range(SERIES):
        before = server.resident_octets()
        asyncio.run(_connect_many(port, octets, at_once, rounds))
        growths.append((server.resident_octets() - before) / (at_once * rounds))
        if growths[-1] < MOST_LEFT_OCTETS:
            break
    assert min(growths) < MOST_LEFT_OCTETS
    assert server.get("/readiness") == (200, "ok\n")
