"""The checks and dnsmasq's figures as Prometheus metrics, read at each scrape.

The names of the sidecar are kept as they are, also where they are counters without `_total`:
those are untyped, because the client library would rename a counter.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
    UnknownMetricFamily,
)
from prometheus_client.registry import Collector

from healthz.dnsmasqstats import DnsmasqStatistics
from healthz.results import Check
from healthz.schedule import Clock
from kubedns import __version__
from kubedns.shared.histogram import Histogram
from kubedns.shared.log import lines_dropped


class HealthCollector(Collector):
    """Collects from the live objects; it keeps nothing itself.

    `commands` are the checks of commands, `probes` those of DNS probes by label; `dnsmasq` is
    None when its statistics are not read.
    """

    def __init__(
        self,
        namespace: str,
        commands: Sequence[Check],
        probes: Mapping[str, Check],
        dnsmasq: DnsmasqStatistics | None,
        clock: Clock,
    ) -> None:
        self._namespace = namespace
        self._commands = commands
        self._probes = probes
        self._dnsmasq = dnsmasq
        self._clock = clock

    def collect(self) -> Iterable[Metric]:
        """Yield every family; dnsmasq's figures are left out until they were read once."""
        yield InfoMetricFamily(
            self._name("exechealthz_build"), "The running exechealthz.", {"version": __version__}
        )
        yield CounterMetricFamily(
            self._name("exechealthz_log_lines_dropped"),
            "Log lines dropped because nobody read them in time.",
            lines_dropped(),
        )
        yield self._healthy()
        if self._commands:
            yield from self._command_families()
        for label, check in self._probes.items():
            yield from self._probe_families(label, check)
        if self._dnsmasq is not None:
            yield from self._dnsmasq_families(self._dnsmasq)

    def _name(self, rest: str) -> str:
        return f"{self._namespace}_{rest}"

    def _healthy(self) -> Metric:
        now = self._clock()
        family = GaugeMetricFamily(
            self._name("check_healthy"), "1 when the url answers 200, 0 when it answers 503.", labels=["url"]
        )
        for check in (*self._commands, *self._probes.values()):
            family.add_metric([check.path], int(check.verdict(now).healthy))
        return family

    def _command_families(self) -> Iterator[Metric]:
        runs = CounterMetricFamily(
            self._name("exec_runs"),
            "Ended runs of a command by result: ok, failed.",
            labels=["url", "result"],
        )
        durations = HistogramMetricFamily(
            self._name("exec_duration_seconds"), "How long runs of a command took.", labels=["url"]
        )
        for check in self._commands:
            runs.add_metric([check.path, "ok"], check.successes)
            runs.add_metric([check.path, "failed"], check.failures)
            durations.add_metric([check.path], _buckets(check.latency, 1), check.latency.total)
        yield runs
        yield durations

    def _probe_families(self, label: str, check: Check) -> Iterator[Metric]:
        yield HistogramMetricFamily(
            self._name(f"probe_{label}_latency_ms"),
            f"Milliseconds to the reply of the DNS probe {label}.",
            _buckets(check.latency, 1000),
            check.latency.total * 1000,
        )
        yield UnknownMetricFamily(
            self._name(f"probe_{label}_errors"), f"Runs of the DNS probe {label} that failed.", check.failures
        )

    def _dnsmasq_families(self, dnsmasq: DnsmasqStatistics) -> Iterator[Metric]:
        yield UnknownMetricFamily(
            self._name("dnsmasq_errors"), "Readings of dnsmasq's statistics that failed.", dnsmasq.errors
        )
        totals = dnsmasq.cache.totals()
        if totals is None:
            return
        yield GaugeMetricFamily(
            self._name("dnsmasq_max_size"), "Entries dnsmasq's cache can hold.", totals.size
        )
        for name, text, value in (
            ("hits", "Questions dnsmasq answered by itself, from its cache.", totals.hits),
            ("misses", "Questions dnsmasq passed on to a server.", totals.misses),
            ("evictions", "Entries dropped before their time.", totals.evictions),
            ("insertions", "Entries put into the cache.", totals.insertions),
        ):
            yield UnknownMetricFamily(self._name(f"dnsmasq_{name}"), text, value)


def _buckets(histogram: Histogram, scale: int) -> list[tuple[str, float]]:
    bounds = [f"{bound * scale:g}" for bound in histogram.bounds]
    return list(zip([*bounds, "+Inf"], map(float, histogram.cumulative()), strict=True))


def registry_of(collector: HealthCollector) -> CollectorRegistry:
    """Return a registry of these metrics and of this process (memory, CPU, files)."""
    registry = CollectorRegistry()
    registry.register(collector)
    ProcessCollector(registry=registry)
    return registry
