"""`make bench`: queries per second and CPU time per query against the C echo and other servers.

Every server has core 0 in its turn and is asked from core 1.  Runs are interleaved (A B A B) and
medians taken, so that whatever else the machine does falls on all alike; what is to be reached are
ratios within the run.  CPU time per query holds also where dnsperf is the limit.
"""

import argparse
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Final

from tests.bench import dnsperf, pod
from tests.bench.cluster import QUESTIONS, Cluster
from tests.bench.dnsperf import Load
from tests.bench.figures import Figure, Measured, Series, markdown
from tests.bench.machine import BenchError, describe, leave_server_core
from tests.bench.prober import Prober
from tests.bench.report import pod_table, speed_page, streams_table
from tests.bench.servers import ApiServer, Bench, KubeDns, Running, fetch

RATIOS: Final = {"hot": 2.2, "wide": 2.2, "mix": 2.8, "cold": 2.5}
"""How much of the echo's CPU time a query may take."""
_CHANGES: Final = 100
_CHURN: Final = 0.9
_SLOWEST_MS: Final = 5.0
_PROBED: Final = 5.0
"""Seconds of each run in which the time to an answer is looked at: as many thousand questions."""


def measure(bench: Bench, rounds: int, seconds: float) -> Measured:
    """Measure everything.  Raises BenchError."""
    print("starting: API server, kube-dns, echo, NSD, Unbound, dnsmasq", flush=True)
    api = bench.api()
    server = bench.kube_dns(api.url)
    peers = {"echo": bench.echo(), "NSD": bench.nsd(), "Unbound": bench.unbound(), "dnsmasq": bench.dnsmasq()}
    server.program.wait_until(server.is_ready, "it was ready")
    kube_dns = Running(server.program, server.port)
    series: list[Series] = []
    figures: list[Figure] = []
    for kind in QUESTIONS:
        of_kind = {name: Series(name, kind) for name in ("kube-dns", *peers)}
        for number in range(rounds):
            for name, running in {"echo": peers["echo"], "kube-dns": kube_dns}.items():
                of_kind[name].runs.append(_load(bench, running, kind, seconds))
            if number == 0:
                for name in ("NSD", "Unbound", "dnsmasq"):
                    of_kind[name].runs.append(_load(bench, peers[name], kind, seconds))
        ratio = of_kind["kube-dns"].cpu / of_kind["echo"].cpu
        figures.append(Figure(f"{kind}: CPU per query", ratio, RATIOS[kind], "x echo"))
        series += of_kind.values()
        _show(list(of_kind.values()))
    figures += _changing(bench, server, peers["echo"], api, rounds, seconds, series)
    pods, streams = pod.measure(bench, api, peers["echo"], kube_dns, rounds, seconds)
    print(pod_table(pods), streams_table(streams), sep="\n\n", end="\n\n", flush=True)
    return Measured(pods, streams, series, figures)


def _load(bench: Bench, running: Running, kind: str, seconds: float) -> Load:
    return dnsperf.run(running.program, running.port, bench.questions[kind], seconds)


def _changing(
    bench: Bench,
    server: KubeDns,
    echo: Running,
    api: ApiServer,
    rounds: int,
    seconds: float,
    series: list[Series],
) -> list[Figure]:
    """Measure mix while Services change, and the latency at half of the highest rate.

    In the quiet runs as much is changed at objects that kube-dns does not watch: what the API server and
    the changes take from dnsperf on their core they take in both.  Compared are many short runs side by side.
    """
    running = Running(server.program, server.port)
    quiet, churn = Series("kube-dns", "mix, quiet"), Series("kube-dns", "mix, churn")
    for number in range(6 * rounds):
        for row in (quiet, churn) if number % 2 else (churn, quiet):
            with api.changing(_CHANGES, seconds / 2 + 1, unseen=row is quiet):
                row.runs.append(_load(bench, running, "mix", seconds / 2))
    series += [quiet, churn]
    _show([quiet, churn])
    slowest, floor = _latency(bench, server, echo, api, rounds, quiet.qps / 2)
    pairs = zip(churn.runs, quiet.runs, strict=True)
    kept = median(changed.qps / unchanged.qps for changed, unchanged in pairs)
    return [
        Figure("churn: qps of a quiet run", kept * 100, _CHURN * 100, "%", at_least=True),
        Figure(f"p99.9 at half rate, churn, scrapes (echo: {floor:.1f})", slowest, _SLOWEST_MS, "ms"),
    ]


def _latency(
    bench: Bench, server: KubeDns, echo: Running, api: ApiServer, rounds: int, rate: float
) -> tuple[float, float]:
    """Return the 99.9th percentiles of kube-dns and of the echo, in ms: medians of interleaved runs.

    The echo's is what the machine does to a server that has nothing to do but to send.
    """
    found: dict[str, list[Prober]] = {"echo": [], "kube-dns": []}
    loads = []
    for _ in range(rounds):
        for name, port in (("echo", echo.port), ("kube-dns", server.port)):
            with (
                api.changing(_CHANGES, _PROBED + 1),
                scraping(server.metrics),
                dnsperf.steady(port, bench.questions["mix"], 2 * _PROBED, rate) as load,
                Prober(port) as prober,
            ):
                time.sleep(_PROBED)
            found[name].append(prober)
            loads.append(load)
    lowest = min(load.qps() for load in loads)
    print(f"mix at {lowest:.0f} to {rate:.0f} qps, {_CHANGES} changes/s, a scrape each second:")
    for name, probers in found.items():
        print(f"{name}: {_percentiles(probers)}", flush=True)
    print()
    slowest = {name: _middle(probers, 99.9) for name, probers in found.items()}
    return slowest["kube-dns"], slowest["echo"]


@contextmanager
def scraping(url: str, period: float = 1.0) -> Iterator[None]:
    """Read the metrics each second during the context."""
    over = threading.Event()

    def read() -> None:
        while not over.wait(period):
            fetch(url)

    thread = threading.Thread(target=read)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _percentiles(probers: list[Prober]) -> str:
    shown = ", ".join(f"p{share:g} {_middle(probers, share):.2f} ms" for share in (50, 99, 99.9))
    lost = sum(prober.lost for prober in probers)
    return f"{shown}, lost {lost} of {lost + sum(len(prober.results) for prober in probers)}"


def _middle(probers: list[Prober], share: float) -> float:
    return median(prober.percentile(share) for prober in probers)


def _show(rows: list[Series]) -> None:
    floor = next((row.cpu for row in rows if row.server == "echo"), None)
    cells = [
        (
            row.kind,
            row.server,
            f"{row.qps / 1000:.1f}k",
            f"{row.cpu:.2f}",
            f"{row.cpu / floor:.2f}" if floor else "",
            str(row.lost),
        )
        for row in rows
    ]
    print(
        markdown(("questions", "server", "qps", "CPU us/query", "x echo", "lost"), cells),
        end="\n\n",
        flush=True,
    )


def main() -> int:
    """Run the benchmark; return the exit status, which does not depend on the figures."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.speed", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="interleaved runs of each kind (default 5)")
    parser.add_argument("--seconds", type=float, default=3.0, help="length of a run (default 3)")
    parser.add_argument("--svg", type=Path, help="where to draw the picture; without it none is drawn")
    parser.add_argument("--page", type=Path, help="where to write the tables in Markdown")
    parser.add_argument(
        "--services", type=int, default=10_000, help="Services of the cluster (default 10000)"
    )
    options = parser.parse_args()
    cluster = Cluster(services=options.services, headless=options.services // 10)
    moment = f"{datetime.now(UTC):%Y-%m-%d}, {describe()}"
    print(moment, flush=True)
    try:
        leave_server_core()
        with tempfile.TemporaryDirectory() as scratch, ExitStack() as stack:
            measured = measure(Bench(stack, Path(scratch), cluster), options.rounds, options.seconds)
    except BenchError as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    page = speed_page(measured, moment)
    print(page)
    if options.page:
        options.page.write_text(page)
    if options.svg:
        from tests.bench.picture import draw  # only where it is wanted: matplotlib is slow to load

        draw(measured.alone, options.svg, moment)
    return 0


if __name__ == "__main__":
    sys.exit(main())
