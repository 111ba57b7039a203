"""`make bench-cluster`: memory, first sync, stalls, relists and propagation on a large cluster.

The server is the real process, measured by its own PID; the API is the local one, on the other core.
Relists come about as on a real server: watches end, and the versions they have seen have expired.
Stalls are seen from outside by a question a millisecond, and from inside by a stop-watch on every
step of the event loop.
"""

import argparse
import http.client
import json
import re
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import ExitStack
from datetime import UTC, datetime
from operator import gt
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from kubedns.cluster.reflector import SETTLED
from tests.bench import dnsperf
from tests.bench.cluster import Cluster
from tests.bench.figures import Figure, markdown
from tests.bench.machine import ANY_CORE, ROOT, BenchError, describe, leave_server_core, pinned
from tests.bench.prober import Prober
from tests.bench.propagation import Propagation
from tests.bench.report import targets_table
from tests.bench.servers import ApiServer, Bench, KubeDns, fetch
from tests.bench.steps import long_steps

MEMORY_MIB: Final = 100.0
READY_SECONDS: Final = 1.5
STALL_MS: Final = 10.0
_RELISTS: Final = 10
_FLAT_PERCENT: Final = 5.0
_BUSY_QPS: Final = 50_000
_RELIST_QPS: Final = 20_000
_LISTED = re.compile(r'^kubedns_lists_total\{outcome="ok",resource="\w+"\} (\d+)', re.MULTILINE)
_PROPAGATION = re.compile(
    r'^kubedns_propagation_seconds_(count|sum)\{resource="services"\} (\S+)', re.MULTILINE
)
_STREAMS: Final = (
    "/api/v1/services",
    "/apis/discovery.k8s.io/v1/endpointslices?labelSelector=service.kubernetes.io/headless",
)


def measure(bench: Bench, creations: int) -> list[Figure]:
    """Measure one cluster; return what was to be reached.  Raises BenchError."""
    api = bench.api()
    alone = _list_seconds(api)
    begun = time.monotonic()
    server = bench.kube_dns(api.url)
    server.program.wait_until(server.is_ready, "it was ready")
    ready = time.monotonic() - begun
    print(
        f"start to ready {ready:.2f} s; reading the same lists and doing nothing takes {alone:.2f} s",
        flush=True,
    )
    figures = [Figure("start to ready", ready, READY_SECONDS, "s")]
    figures += _memory(bench, server, api)
    figures += _propagation(bench, server, api, creations)
    for module in ("kubedns", "tests.bench.steps"):
        figures += _stalls(bench, api, module)
    return figures


def _list_seconds(api: ApiServer) -> float:
    """Return how long the API server takes to send the lists that the first sync needs."""
    begun = time.monotonic()
    readers = [threading.Thread(target=_read_list, args=(api.url, path)) for path in _STREAMS]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    return time.monotonic() - begun


def _read_list(url: str, path: str) -> None:
    """Read a streaming list up to its closing bookmark, without looking at it."""
    where = urlsplit(url)
    stream = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    connection = http.client.HTTPConnection(where.hostname or "", where.port, timeout=30)
    connection.request("GET", f"{path}{'&' if '?' in path else '?'}{stream}&timeoutSeconds=30")
    response = connection.getresponse()
    end = b""
    while b"initial-events-end" not in end:
        chunk = response.read1(1 << 16)
        if not chunk:
            raise BenchError(f"the API server ended the list of {path}")
        end = end[-64:] + chunk
    connection.close()


def _memory(bench: Bench, server: KubeDns, api: ApiServer) -> list[Figure]:
    synced = server.program.memory()
    for questions in bench.questions.values():
        dnsperf.run(server.program, server.port, questions, 3)
    loaded = server.program.memory()
    wrong = _relist_under_load(bench, server, api)
    relisted = server.program.memory()
    for when, memory in (("sync", synced), ("load", loaded), (f"{_RELISTS} relists", relisted)):
        print(f"after {when}: {memory.now:.1f} MiB resident, at most {memory.peak:.1f}", flush=True)
    growth = (relisted.peak / loaded.peak - 1) * 100
    return [
        Figure("peak RSS", relisted.peak, MEMORY_MIB, "MiB"),
        Figure(f"growth of the peak by {_RELISTS} relists", growth, _FLAT_PERCENT, "%"),
        Figure("NXDOMAIN for names that exist, while relisting", wrong, 0, "answers"),
    ]


def _relist_under_load(bench: Bench, server: KubeDns, api: ApiServer) -> int:
    """Have everything listed again and again; return how many answers denied what exists."""
    with dnsperf.steady(server.port, bench.questions["wide"], 120, _RELIST_QPS) as load:
        for _ in range(_RELISTS):
            _relist(server, api)
    return load.rcodes().get("NXDOMAIN", 0)


def _relist(server: KubeDns, api: ApiServer) -> None:
    before = _lists(server)
    api.expire()
    server.program.wait_until(lambda: all(map(gt, _lists(server), before)), "it listed everything again")
    time.sleep(1.1 * SETTLED)  # a watch that ends sooner is a failure to kube-dns, which then takes its time


def _lists(server: KubeDns) -> list[int]:
    """Return how often each resource was listed."""
    return [int(count) for count in _LISTED.findall(fetch(server.metrics).decode())]


def _propagation(bench: Bench, server: KubeDns, api: ApiServer, creations: int) -> list[Figure]:
    before = _own_share(server)
    quiet = _propagate(server, api, creations)
    count, seconds = (after - then for after, then in zip(_own_share(server), before, strict=True))
    print(
        f"from an event's arrival to its being answered kube-dns needs {seconds / count * 1000:.2f} ms on average"
    )
    with dnsperf.steady(server.port, bench.questions["mix"], 120, _BUSY_QPS) as load:
        busy = _propagate(server, api, creations)
    print(
        f"created to answered, quiet: p50 {dnsperf.percentile(quiet.milliseconds, 50):.2f} ms, "
        f"p99 {dnsperf.percentile(quiet.milliseconds, 99):.2f}; at {load.qps():.0f} qps: "
        f"p50 {dnsperf.percentile(busy.milliseconds, 50):.2f}, p99 {dnsperf.percentile(busy.milliseconds, 99):.2f}",
        flush=True,
    )
    return [
        Figure("created to answered, p50", dnsperf.percentile(quiet.milliseconds, 50), 1, "ms"),
        Figure("created to answered, p99", dnsperf.percentile(quiet.milliseconds, 99), 5, "ms"),
        Figure(f"the same at {load.qps():.0f} qps, p99", dnsperf.percentile(busy.milliseconds, 99), 50, "ms"),
        Figure(
            "old answers after a new one, or none",
            quiet.stale + busy.stale + quiet.lost + busy.lost,
            0,
            "answers",
        ),
    ]


def _own_share(server: KubeDns) -> tuple[float, float]:
    """Return how many changes of Services came by watch, and the seconds until they were answered, in all."""
    found = dict(_PROPAGATION.findall(fetch(server.metrics).decode()))
    return float(found["count"]), float(found["sum"])


def _propagate(server: KubeDns, api: ApiServer, creations: int) -> Propagation:
    command = [sys.executable, "-m", "tests.bench.propagation", api.url, str(server.port), str(creations)]
    with pinned(ANY_CORE):
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    if done.returncode:
        raise BenchError(f"measuring propagation failed: {done.stderr[-500:]}")
    return Propagation(*json.loads(done.stdout))


def _stalls(bench: Bench, api: ApiServer, module: str) -> list[Figure]:
    """Start a server and keep it busy with everything that is large."""
    server = bench.kube_dns(api.url, module=module)
    phases: dict[str, tuple[float, float]] = {}
    with Prober(server.port) as prober:
        begun = time.monotonic()
        server.program.wait_until(server.is_ready, "it was ready")
        phases["first sync"] = (begun, time.monotonic())
        for what, act in (
            ("relist", lambda: _relist(server, api)),
            ("/cache", lambda: fetch(f"{server.health}/cache")),
            ("/metrics", lambda: fetch(server.metrics)),
            ("nothing else", lambda: time.sleep(11)),
        ):
            begun = time.monotonic()
            act()
            phases[what] = (begun, time.monotonic())
    figures = []
    for what, (begun, ended) in phases.items():
        if module == "kubedns":
            figures.append(
                Figure(f"longest wait for an answer, {what}", prober.longest(begun, ended), STALL_MS, "ms")
            )
            continue
        steps = long_steps(server.program.log, begun, ended)
        longest = steps[0] if steps else (0.0, "none as long as is noted")
        print(f"longest step of the loop, {what}: {longest[0]:.1f} ms: {longest[1]}", flush=True)
        figures.append(Figure(f"longest step of the loop, {what}", longest[0], STALL_MS, "ms"))
    return figures


def linearity(directory: Path) -> list[tuple[str, str]]:
    """Return rows: a cluster, and the memory of a server that has synced with it."""
    clusters = {
        "2,000 Services, 200 headless with 10 endpoints": Cluster(2000, 200, 10, 10),
        "the same, headless with 20 endpoints": Cluster(2000, 200, 20, 10),
        "the same, headless with 40 endpoints": Cluster(2000, 200, 40, 10),
        "the same, cluster-IP Services with 40 endpoints": Cluster(2000, 200, 10, 40),
        "4,000 Services, 200 headless with 10 endpoints": Cluster(4000, 200, 10, 10),
    }
    rows = []
    for number, (what, cluster) in enumerate(clusters.items()):
        scratch = directory / f"linearity-{number}"
        scratch.mkdir()
        with ExitStack() as stack:
            bench = Bench(stack, scratch, cluster)
            server = bench.kube_dns(bench.api().url)
            server.program.wait_until(server.is_ready, "it was ready")
            rows.append((what, f"{server.program.memory().now:.1f}"))
    return rows


def main() -> int:
    """Run the benchmark; return the exit status, which does not depend on the figures."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.scale", description=__doc__)
    parser.add_argument(
        "--creations", type=int, default=300, help="Services created one by one (default 300)"
    )
    parser.add_argument(
        "--services", type=int, default=10_000, help="Services of the cluster (default 10000)"
    )
    options = parser.parse_args()
    print(f"{datetime.now(UTC):%Y-%m-%d}, {describe()}", flush=True)
    try:
        leave_server_core()
        with tempfile.TemporaryDirectory() as scratch:
            rows = linearity(Path(scratch))
            print(markdown(("cluster", "MiB after the first sync"), rows), end="\n\n", flush=True)
            with ExitStack() as stack:
                cluster = Cluster(options.services, options.services // 10)
                figures = measure(Bench(stack, Path(scratch), cluster), options.creations)
    except BenchError as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    print(f"\n{targets_table(figures)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
