"""Measures how long port 53 is without an answer when the nanny restarts dnsmasq.

Runs in a network namespace of its own (root is needed): the nanny with a real dnsmasq on port 53,
dnsperf at a steady rate for the queries lost, a prober of one query per millisecond for the gaps,
and a change of `stubDomains` each second.  Prints what was seen; exit status 1 when the nanny
ended, a port was busy, or a gap was longer than --limit.

    python tests/bench/nanny_gap.py --changes 50 --qps 2000
"""

import argparse
import json
import os
import re
import select
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

INSIDE = "NANNY_GAP_NAMESPACE"
NAME = b"\5probe\4test\0"
ADDRESS = ("127.0.0.1", 53)


class Prober(threading.Thread):
    """Asks once per millisecond; `answered` are the times at which answered queries were sent."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.answered: list[float] = []
        self.sent = 0
        self.over = threading.Event()

    def run(self) -> None:
        client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        client.setblocking(False)
        sent: dict[int, float] = {}
        due = time.monotonic()
        while not self.over.is_set():
            now = time.monotonic()
            if now >= due:
                number = self.sent & 0xFFFF
                sent[number] = now
                client.sendto(struct.pack("!6H", number, 0x0100, 1, 0, 0, 0) + NAME + b"\0\1\0\1", ADDRESS)
                self.sent += 1
                due = max(due + 0.001, now)
            while select.select([client], [], [], max(0.0, due - time.monotonic()))[0]:
                reply = client.recv(512)
                if moment := sent.pop(int.from_bytes(reply[:2], "big"), None):
                    self.answered.append(moment)


def start_nanny(directory: Path, log: Path) -> "subprocess.Popen[bytes]":
    words = [
        sys.executable,
        "-m",
        "nanny",
        "-restartDnsmasq=true",
        f"-configDir={directory}",
        "-metricsPort=0",
    ]
    words += ["-lameDuck=0s", "--", "--conf-file=/dev/null", "--no-resolv", "--no-hosts", "--cache-size=1000"]
    words += ["--address=/probe.test/192.0.2.1"]
    with log.open("wb") as output:
        return subprocess.Popen(words, stderr=output, cwd=Path(__file__).parents[2])


def wait_until_answered(prober: Prober) -> None:
    deadline = time.monotonic() + 10
    while not prober.answered:
        if time.monotonic() > deadline:
            sys.exit("dnsmasq did not answer within 10 s")
        time.sleep(0.05)


def change(directory: Path, number: int) -> None:
    """Write the key as kubelet does: a new directory, and the link `..data` swapped."""
    version = directory / f"..{number}"
    version.mkdir()
    (version / "stubDomains").write_text(json.dumps({"changed.test": [f"192.0.2.{number % 250 + 1}"]}))
    link = directory / "..data_tmp"
    link.symlink_to(version.name)
    link.rename(directory / "..data")


def measure(changes: int, qps: int, limit: float) -> int:
    with tempfile.TemporaryDirectory() as scratch:
        directory, log, questions = Path(scratch, "config"), Path(scratch, "log"), Path(scratch, "questions")
        directory.mkdir()
        questions.write_text("probe.test A\n")
        nanny = start_nanny(directory, log)
        prober = Prober()
        prober.start()
        wait_until_answered(prober)
        dnsperf = ["dnsperf", "-s", "127.0.0.1", "-d", str(questions), "-Q", str(qps), "-t", "1", "-l"]
        load = subprocess.Popen([*dnsperf, str(changes + 2)], stdout=subprocess.PIPE, text=True)
        for number in range(changes):
            time.sleep(1)
            change(directory, number)
        report, _ = load.communicate(timeout=30)
        ended = nanny.poll()
        prober.over.set()
        prober.join()
        nanny.terminate()
        nanny.wait(10)
        lines = log.read_text()
    gaps = sorted(
        (later - sooner) * 1000 for sooner, later in zip(prober.answered, prober.answered[1:], strict=False)
    )
    restarts, busy = lines.count("] restarting "), lines.count("Address already in use")
    lost = re.search(r"Queries lost: +(.+)", report)
    print(f"changes: {changes}, restarts: {restarts}, port busy: {busy}, nanny ended: {ended is not None}")
    print(f"gaps, longest per restart (ms): {' '.join(f'{gap:.1f}' for gap in gaps[-restarts:])}")
    print(f"longest gap: {gaps[-1]:.1f} ms; median of a restart: {gaps[-(restarts + 1) // 2]:.1f} ms")
    print(f"prober: {prober.sent} sent, {prober.sent - len(prober.answered)} lost")
    print(f"dnsperf at {qps} qps: lost {lost[1] if lost else '?'}")
    return int(ended is not None or busy > 0 or restarts != changes or gaps[-1] > limit)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--changes", type=int, default=50, help="changes of the configuration, one per second"
    )
    parser.add_argument("--qps", type=int, default=2000, help="queries per second of dnsperf")
    parser.add_argument("--limit", type=float, default=20.0, help="longest gap allowed, in milliseconds")
    options = parser.parse_args()
    if INSIDE not in os.environ:
        inner = ["sh", "-c", 'ip link set lo up && exec "$@"', "sh", sys.executable, __file__, *sys.argv[1:]]
        return subprocess.call(["unshare", "--net", *inner], env={**os.environ, INSIDE: "1"})
    return measure(options.changes, options.qps, options.limit)


if __name__ == "__main__":
    sys.exit(main())
