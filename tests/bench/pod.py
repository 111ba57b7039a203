"""The pod as its clients meet it: CPU time of all its programs per question, at the port of the Service.

In: a bench with an API server.  Out: a series for each wiring and transport.  In the classic wiring
clients ask dnsmasq, which asks kube-dns for the cluster's names.  With kubedns first they ask kube-dns,
which asks dnsmasq for names elsewhere.  Those come from NSD on the other core, whose time does not count.
"""

from dataclasses import dataclass
from typing import Final

from tests.bench import dnsperf
from tests.bench.cluster import OUTSIDE, QUESTIONS
from tests.bench.dnsperf import Load
from tests.bench.figures import Series
from tests.bench.machine import Program, answers
from tests.bench.servers import READY_OUTSIDE, ApiServer, Bench, Running
from tests.ports import free_port

CLASSIC: Final = "dnsmasq first (classic)"
KUBEDNS_FIRST: Final = "kubedns first"
ALONE: Final = "the record server alone"
KINDS: Final = (*QUESTIONS, *OUTSIDE)
TCP_KINDS: Final = ("wide", "outside")
_TCP_CLIENTS: Final = 50


@dataclass(frozen=True, slots=True)
class Pod:
    """The programs of one wiring, and the port that clients ask."""

    wiring: str
    port: int
    programs: tuple[Program, ...]

    def load(self, bench: Bench, kind: str, seconds: float, tcp_clients: int = 0) -> Load:
        """Ask questions of one kind for some seconds."""
        first, *others = self.programs
        return dnsperf.run(
            first,
            self.port,
            bench.questions[kind],
            seconds,
            helpers=tuple(others),
            tcp_clients=tcp_clients,
        )


def start(bench: Bench, api: ApiServer, wiring: str, outside: int) -> Pod:
    """Start the programs of a wiring; return when names of the cluster and elsewhere are answered."""
    dnsmasq_port = free_port()
    flags = [f"--cache-server=127.0.0.1:{dnsmasq_port}"] if wiring == KUBEDNS_FIRST else []
    kube_dns = bench.kube_dns(api.url, *flags, f"--nameservers=127.0.0.1:{outside}")
    dnsmasq = bench.pod_dnsmasq(kube_dns.port, dnsmasq_port, outside)
    port = kube_dns.port if wiring == KUBEDNS_FIRST else dnsmasq_port
    kube_dns.program.wait_until(kube_dns.is_ready, "it was ready")
    kube_dns.program.wait_until(lambda: answers(port, READY_OUTSIDE), "it forwarded")
    return Pod(wiring, port, (kube_dns.program, dnsmasq.program))


def measure(
    bench: Bench, api: ApiServer, echo: Running, alone: Running, rounds: int, seconds: float
) -> tuple[list[Series], list[Series]]:
    """Measure the wirings beside the echo and the record server alone: over UDP, and over TCP.

    The record server alone forwards nothing, so it has no series for names elsewhere.
    """
    outside = bench.outside()
    pods = [start(bench, api, wiring, outside.port) for wiring in (CLASSIC, KUBEDNS_FIRST)]
    floor = Pod("echo", echo.port, (echo.program,))
    heart = Pod(ALONE, alone.port, (alone.program,))
    datagrams = [
        series
        for kind in KINDS
        for series in _side_by_side(
            bench, [floor, *([heart] if kind in QUESTIONS else []), *pods], kind, rounds, seconds
        )
    ]
    streams = [
        series
        for kind in TCP_KINDS
        for series in _side_by_side(bench, pods, kind, 1, seconds, tcp_clients=_TCP_CLIENTS)
    ]
    return datagrams, streams


def _side_by_side(
    bench: Bench, pods: list[Pod], kind: str, rounds: int, seconds: float, tcp_clients: int = 0
) -> list[Series]:
    series = {pod.wiring: Series(pod.wiring, kind) for pod in pods}
    for number in range(rounds + 1):
        for pod in pods:
            load = pod.load(bench, kind, seconds, tcp_clients)
            if number:  # the first run fills caches
                series[pod.wiring].runs.append(load)
    return list(series.values())
