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
QUESTION = b"\5probe\4test\0\0\1\0\1"
ADDRESS = ("127.0.0.1", 53)


class Prober(threading.Thread):
    """Asks once per millisecond; `sent` are the times of asking, `answered` the numbers of those answered."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.sent: list[float] = []
        self.answered: set[int] = set()
        self.over = threading.Event()

    def run(self) -> None:
        client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        client.setblocking(False)
        due = time.monotonic()
        while not self.over.is_set():
            now = time.monotonic()
            if now >= due:
                number = len(self.sent)
                self.sent.append(now)
                client.sendto(struct.pack("!6H", number & 0xFFFF, 0x0100, 1, 0, 0, 0) + QUESTION, ADDRESS)
                due = max(due + 0.001, now)
            while select.select([client], [], [], max(0.0, due - time.monotonic()))[0]:
                behind = (len(self.sent) - 1 - int.from_bytes(client.recv(512)[:2], "big")) & 0xFFFF
                self.answered.add(len(self.sent) - 1 - behind)

    def gaps(self) -> list[float]:
        """Return milliseconds from each first query without an answer to the next one with an answer."""
        gaps: list[float] = []
        first = None
        for number in range(min(self.answered), max(self.answered) + 1):
            if number not in self.answered:
                first = number if first is None else first
            elif first is not None:
                gaps.append((self.sent[number] - self.sent[first]) * 1000)
                first = None
        return gaps

    def lost(self) -> int:
        """Return how many queries after the first answer have none."""
        return max(self.answered) + 1 - min(self.answered) - len(self.answered)


def start_nanny(directory: Path, log: Path, *, resolv_conf: bool) -> "subprocess.Popen[bytes]":
    words = [
        sys.executable,
        "-m",
        "nanny",
        "-restartDnsmasq=true",
        f"-configDir={directory}",
        "-metricsPort=0",
    ]
    words += ["-lameDuck=0s", "--", "--conf-file=/dev/null", "--no-hosts", "--cache-size=1000"]
    words += ["--address=/probe.test/192.0.2.1", *([] if resolv_conf else ["--no-resolv"])]
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


def measure(options: argparse.Namespace) -> int:
    changes, qps, limit = options.changes, options.qps, options.limit
    with tempfile.TemporaryDirectory() as scratch:
        directory, log, questions = Path(scratch, "config"), Path(scratch, "log"), Path(scratch, "questions")
        directory.mkdir()
        questions.write_text("probe.test A\n")
        nanny = start_nanny(directory, log, resolv_conf=options.resolv_conf)
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
    gaps = sorted(prober.gaps())
    restarts, busy = lines.count("] restarting "), lines.count("Address already in use")
    lost = re.search(r"Queries lost: +(.+)", report)
    print(f"changes: {changes}, restarts: {restarts}, port busy: {busy}, nanny ended: {ended is not None}")
    print(f"gaps (ms): {' '.join(f'{gap:.1f}' for gap in gaps)}")
    print(f"longest gap: {gaps[-1]:.1f} ms, median {gaps[len(gaps) // 2]:.1f} ms")
    print(f"prober, 1 query per ms: {prober.lost()} lost of {len(prober.answered) + prober.lost()}")
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
    parser.add_argument(
        "--resolv-conf",
        action="store_true",
        help="let dnsmasq follow /etc/resolv.conf, as without upstreamNameservers: the kernel then takes longer "
        "to end the process that watches it",
    )
    options = parser.parse_args()
    if INSIDE not in os.environ:
        inner = ["sh", "-c", 'ip link set lo up && exec "$@"', "sh", sys.executable, __file__, *sys.argv[1:]]
        return subprocess.call(["unshare", "--net", *inner], env={**os.environ, INSIDE: "1"})
    return measure(options)


if __name__ == "__main__":
    sys.exit(main())
