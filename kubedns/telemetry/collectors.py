"""Turns the counters and the state of the cluster into Prometheus series, at each scrape.

The original's series keep their names, labels and buckets (`skydns_skydns_...`); what is new
begins with `kubedns_`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from kubedns.shared.log import lines_dropped
from kubedns.shared.report import Configuration, UpstreamReport
from kubedns.shared.upstreamcheck import upstream_families
from kubedns.telemetry.counters import CAUSES, ServerCounters
from kubedns.telemetry.watches import ResourceStatistics


class ServerCollector(Collector):
    """The original's series, under `skydns_skydns_` unless the environment says otherwise."""

    def __init__(self, counters: ServerCounters, namespace: str, subsystem: str) -> None:
        self._counters = counters
        self._prefix = "_".join(part for part in (namespace, subsystem) if part)
        self._prefix += "_" if self._prefix else ""

    def collect(self) -> Iterator[Metric]:
        """Yield the series from the counters as they stand, each family made when it is asked for."""
        self._counters.settle()
        name, systems = self._prefix.__add__, self._counters.systems.items()
        requests = CounterMetricFamily(name("dns_request_count"), "Questions answered.", labels=["system"])
        for system, counted in systems:
            requests.add_metric([system], counted.answered())
        yield requests
        durations = HistogramMetricFamily(
            name("dns_request_duration_seconds"),
            "Time from a question to its answer; those answered together share it evenly.",
            labels=["system"],
        )
        for system, counted in systems:
            durations.add_metric([system], counted.durations.buckets(), counted.durations.total)
        yield durations
        sizes = HistogramMetricFamily(name("dns_response_size_bytes"), "Size of answers.", labels=["system"])
        for system, counted in systems:
            histogram = counted.size_histogram()
            sizes.add_metric([system], histogram.buckets(), histogram.total)
        yield sizes
        errors = CounterMetricFamily(
            name("dns_error_count"), "Answers that are not data, by cause.", labels=["system", "cause"]
        )
        for system, counted in systems:
            for cause, count in zip(CAUSES, counted.outcomes, strict=True):
                if cause:
                    errors.add_metric([system, cause], count)
        yield errors
        misses = CounterMetricFamily(
            name("dns_cachemiss_count"), "Answers that had to be built.", labels=["cache"]
        )
        misses.add_metric(["response"], self._counters.misses)
        yield misses


@dataclass(frozen=True, slots=True)
class ClusterView:
    """The cluster state that the metrics show; a scrape calls each function.

    `settings` counts configuration updates by outcome, `configuration` tells what is in force and
    whether the latest was refused, `upstreams` how the servers do, `drops` counts questions by reason.
    """

    objects: Callable[[], Mapping[str, int]]
    records: Callable[[], int]
    synced: Callable[[], bool]
    watches: Callable[[], Sequence[ResourceStatistics]]
    settings: Callable[[], Mapping[str, int]]
    configuration: Callable[[], Configuration]
    upstreams: Callable[[], Sequence[UpstreamReport]]
    drops: Callable[[], Mapping[str, int]]
    now: Callable[[], float]


class ClusterCollector(Collector):
    """The series under `kubedns_`: how far the server follows the cluster."""

    def __init__(self, view: ClusterView) -> None:
        self._view = view

    def collect(self) -> Iterator[Metric]:
        """Yield the series as things stand, each family made when it is asked for."""
        view = self._view
        objects = GaugeMetricFamily("kubedns_objects", "Cluster objects held.", labels=["kind"])
        for kind, count in view.objects().items():
            objects.add_metric([kind], count)
        yield objects
        yield GaugeMetricFamily(
            "kubedns_records", "Addresses and aliases held that have a name.", view.records()
        )
        yield GaugeMetricFamily("kubedns_synced", "1 once everything was listed.", float(view.synced()))
        yield from self._watches(view.watches())
        reloads = CounterMetricFamily(
            "kubedns_config_reloads", "Updates of the configuration, by outcome.", labels=["outcome"]
        )
        for outcome in ("applied", "unchanged", "refused", "unreadable"):
            reloads.add_metric([outcome], view.settings().get(outcome, 0))
        yield reloads
        configuration = view.configuration()
        yield GaugeMetricFamily(
            "kubedns_config_last_reload_success",
            "1 while what is configured is in force, 0 while it is refused or cannot be read.",
            float(not configuration.refused),
        )
        yield GaugeMetricFamily(
            "kubedns_config_last_success_timestamp_seconds",
            "Unix time of the last update of the configuration that was taken; 0 before the first.",
            configuration.last_success or 0.0,
        )
        yield from upstream_families("kubedns", view.upstreams())
        drops = CounterMetricFamily(
            "kubedns_dropped", "Questions or replies dropped, by reason.", labels=["reason"]
        )
        for reason, count in view.drops().items():
            drops.add_metric([reason], count)
        yield drops
        yield CounterMetricFamily(
            "kubedns_log_lines_dropped",
            "Log lines dropped because nobody read them in time.",
            lines_dropped(),
        )

    def _watches(self, watches: Sequence[ResourceStatistics]) -> Iterator[Metric]:
        ages = GaugeMetricFamily(
            "kubedns_last_event_age_seconds",
            "Time since the last event or bookmark of a watch; +Inf before the first.",
            labels=["resource"],
        )
        now = self._view.now()
        for watch in watches:
            age = inf if watch.last_activity is None else now - watch.last_activity
            ages.add_metric([watch.name], age)
        yield ages
        lists = CounterMetricFamily("kubedns_lists", "Lists, by outcome.", labels=["resource", "outcome"])
        for watch in watches:
            for outcome, count in watch.lists.items():
                lists.add_metric([watch.name, outcome], count)
        yield lists
        ends = CounterMetricFamily(
            "kubedns_watches", "Ended watches, by reason.", labels=["resource", "reason"]
        )
        for watch in watches:
            for reason, count in watch.watches.items():
                ends.add_metric([watch.name, reason], count)
        yield ends
        repairs = CounterMetricFamily(
            "kubedns_repairs", "Objects that a periodic relist had to put right.", labels=["resource"]
        )
        for watch in watches:
            repairs.add_metric([watch.name], watch.repairs)
        yield repairs
        propagation = HistogramMetricFamily(
            "kubedns_propagation_seconds",
            "Time from a change's arrival to its being answered.",
            labels=["resource"],
        )
        for watch in watches:
            propagation.add_metric([watch.name], watch.propagation.buckets(), watch.propagation.total)
        yield propagation
