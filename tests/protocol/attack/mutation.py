"""Packets made from good ones by small accidents."""

from random import Random

from tests.protocol.attack.packets import corpus, header
from tests.protocol.population import NAMES, NAMESPACES
from tests.protocol.reading import ask

TYPES = ("A", "AAAA", "SRV", "TXT", "PTR", "NS", "SOA", "MX", "ANY", "AXFR", "TYPE65280")
HEADS = ("", "_http._tcp.", "x.", "*.", "db-0.", "*.*.", "10-0-0-1.")
TAILS = (
    "svc.cluster.local",
    "pod.cluster.local",
    "cluster.local",
    "example.test",
    "10.in-addr.arpa",
    "ip6.arpa",
)


class Mutator:
    """Makes packets, the same ones for the same seed."""

    def __init__(self, seed: int) -> None:
        self._rng = Random(seed)
        self._corpus = [packet for _, packet, _ in corpus() if len(packet) <= 4096]

    def packet(self) -> bytes:
        """Return one packet: good, bad or in between, at most 4,096 octets."""
        rng = self._rng
        packet = bytearray(rng.choice(self._corpus) if rng.random() < 0.4 else self._query())
        for _ in range(rng.choice((0, 1, 1, 2, 3, 8))):
            self._hurt(packet)
        return bytes(packet[:4096])

    def _query(self) -> bytes:
        rng = self._rng
        name = f"{rng.choice(HEADS)}{rng.choice(NAMES)}.{rng.choice(NAMESPACES)}.{rng.choice(TAILS)}"
        payload = rng.choice((None, 0, 512, 1232, 65535))
        return ask(name, rng.choice(TYPES), payload=payload, message_id=rng.randrange(65536))

    def _hurt(self, packet: bytearray) -> None:
        rng = self._rng
        at = rng.randrange(len(packet) + 1)
        kind = rng.randrange(7)
        if kind == 0 and at < len(packet):
            packet[at] = rng.randrange(256)
        elif kind == 1 and at < len(packet):
            packet[at] ^= 1 << rng.randrange(8)
        elif kind == 2:
            del packet[at:]
        elif kind == 3:
            packet[at:at] = rng.randbytes(rng.randrange(1, 20))
        elif kind == 4:
            del packet[at : at + rng.randrange(1, 20)]
        elif kind == 5:
            packet[at : at + 2] = rng.choice((b"\xc0\x0c", b"\xff\xff", b"\0\0", b"\x3f\x3f", b"\x40\x80"))
        else:
            packet[:12] = header(
                rng.choice((0x0100, 0, rng.randrange(65536))), *rng.choices((0, 1, 2, 65535), k=4)
            )
