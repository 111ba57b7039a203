"""Throw hostile packets at the running record server: `make fuzz`.

usage: fuzz.py [--minutes 10] [--seed N]

Bursts of packets over UDP and TCP go to `python -m kubedns` on a local API; after each, an honest
question must be answered.  Prints packets sent, crashes, and the server's memory before and after.
Exit status 1 when the server crashed, logged a fault, or grew.
"""

import argparse
import random
import socket
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.integration.kubedns.programs import KubeDns, LocalApi
from tests.protocol.attack.mutation import Mutator
from tests.protocol.attack.packets import corpus, frames
from tests.protocol.reading import ask, read

CLUSTER = Path(__file__).parent / "data" / "cases" / "cluster.json"
HONEST = ask("web.default.svc.cluster.local")
BURST = 400
PACKETS_BEFORE_MEASURING = 20_000
MOST_GROWTH_OCTETS = 8 << 20
FAULTS = ("Traceback", "cannot answer", " failed", "Error:")


@dataclass
class Report:
    """What came of it; memory in octets."""

    packets: int = 0
    bursts: int = 0
    crashes: int = 0
    before: int = 0
    after: int = 0
    faults: tuple[str, ...] = ()

    def good(self) -> bool:
        """Whether nothing went wrong."""
        return not self.crashes and not self.faults and self.after - self.before <= MOST_GROWTH_OCTETS

    def __str__(self) -> str:
        lines = [
            f"{self.packets} packets in {self.bursts} bursts, {self.crashes} crashes, "
            f"{len(self.faults)} faults logged, memory {self.before >> 10} KiB before, "
            f"{self.after >> 10} KiB after"
        ]
        return "\n".join([*lines, *self.faults[:20]])


def attack(server: KubeDns, seed: int, seconds: float) -> Report:
    """Attack a server that has synced, for so many seconds."""
    mutator, rng, report = Mutator(seed), random.Random(seed), Report()
    streams = [octets for _, octets in frames()]
    deadline = time.monotonic() + seconds
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.connect(("127.0.0.1", server.dns_port))
        sender.setblocking(False)
        for _, packet, _ in corpus():
            _send(sender, packet)
        while time.monotonic() < deadline:
            for _ in range(BURST):
                _send(sender, mutator.packet())
            report.packets += BURST + _stream(server.dns_port, mutator, rng, streams)
            report.bursts += 1
            if server.process.poll() is not None:
                report.crashes += 1
                break
            for tcp in (False, True):
                assert read(HONEST, server.ask(HONEST, tcp=tcp), tcp=tcp).rdatas("A") == {"10.96.10.1"}
            if not report.before and report.packets >= PACKETS_BEFORE_MEASURING:
                report.before = server.resident_octets()
    if not report.crashes:
        report.after = server.resident_octets()
        report.before = report.before or report.after
    report.faults = tuple(line for line in server.lines if any(fault in line for fault in FAULTS))
    return report


def _send(sender: socket.socket, packet: bytes) -> None:
    with suppress(BlockingIOError, ConnectionRefusedError):
        sender.send(packet)
    with suppress(BlockingIOError, ConnectionRefusedError):
        while True:
            sender.recv(65535)


def _stream(port: int, mutator: Mutator, rng: random.Random, streams: list[bytes]) -> int:
    """Send good, bad and torn frames over one connection, and cut it; return how many."""
    packets = [mutator.packet() for _ in range(rng.randrange(1, 40))]
    octets = b"".join(len(packet).to_bytes(2) + packet for packet in packets) + rng.choice(streams)
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=5.0) as client:
        client.settimeout(0.2)
        while octets:
            size = rng.choice((1, 2, 7, 1400, 65536))
            client.sendall(octets[:size])
            octets = octets[size:] if rng.random() < 0.98 else b""
        if rng.random() < 0.5:
            client.recv(65535)
    return len(packets) + 1


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    with (
        LocalApi(str(CLUSTER)) as api,
        KubeDns(f"--kube-master-url={api.url}", "--nameservers=127.0.0.1:9") as server,
    ):
        report = attack(server.synced(), options.seed, options.minutes * 60)
    print(report)
    return 0 if report.good() else 1


if __name__ == "__main__":
    sys.exit(main())
