"""What the nanny counts, for Prometheus.

In: calls as things happen.  Out: `GET /metrics` and `GET /status`.  Every label value is known beforehand, so the
number of series does not grow.
"""

import time
from collections import Counter as Counts
from collections.abc import Callable, Iterable, Iterator, Sequence

from aiohttp import web
from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Info,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector

from kubedns.shared.log import lines_dropped
from kubedns.shared.report import UpstreamReport
from kubedns.shared.upstreamcheck import upstream_families
from nanny.supervisor import Reason


class _LogCollector(Collector):
    """What the log lost, read at each scrape."""

    def collect(self) -> Iterator[Metric]:
        """Yield the one family."""
        yield CounterMetricFamily(
            "dnsmasq_nanny_log_lines_dropped",
            "Log lines dropped because nobody read them in time.",
            lines_dropped(),
        )


class _Upstreams(Collector):
    """The series of the name servers that dnsmasq asks."""

    def __init__(self, reports: Callable[[], Sequence[UpstreamReport]]) -> None:
        self._reports = reports

    def collect(self) -> Iterable[Metric]:
        """Return them as they stand."""
        return upstream_families("dnsmasq_nanny", self._reports())


class Metrics:
    """Owns the registry.

    `up_since` is the Unix time since which dnsmasq is up, None without one; `restarts` counts its
    starts after the first, by reason.
    """

    def __init__(self) -> None:
        self.up_since: float | None = None
        self.restarts: Counts[str] = Counts()
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self.registry.register(_LogCollector())
        self._restarts = Counter(
            "dnsmasq_nanny_restarts",
            "Starts of dnsmasq after the first, by reason.",
            ["reason"],
            registry=self.registry,
        )
        self._reloads = Counter(
            "dnsmasq_nanny_config_reloads",
            "Changes of the configuration directory, by outcome.",
            ["outcome"],
            registry=self.registry,
        )
        self._last_success = Gauge(
            "dnsmasq_nanny_config_last_reload_success",
            "Whether the configuration as it stands is in effect completely.",
            registry=self.registry,
        )
        self._last_success_time = Gauge(
            "dnsmasq_nanny_config_last_success_timestamp_seconds",
            "Unix time at which a configuration was last brought into effect completely; 0 before the first.",
            registry=self.registry,
        )
        self._unresolved = Gauge(
            "dnsmasq_nanny_unresolved_servers",
            "Servers given by name that are left out because their name does not resolve.",
            registry=self.registry,
        )
        self._up_since = Gauge(
            "dnsmasq_nanny_child_start_time_seconds",
            "Unix time at which the running dnsmasq was up; 0 without one.",
            registry=self.registry,
        )
        self._ceiling = Counter(
            "dnsmasq_nanny_concurrency_ceiling",
            "Log lines of dnsmasq about its maximum number of concurrent queries (--dns-forward-max).",
            registry=self.registry,
        )
        self._version = Info("dnsmasq_nanny_dnsmasq", "The running dnsmasq.", registry=self.registry)
        for reason in Reason:
            if reason is not Reason.START:
                self._restarts.labels(reason.value)
        for outcome in ("applied", "unchanged", "refused", "not_restarted"):
            self._reloads.labels(outcome)

    def spawned(self, reason: Reason) -> None:
        """Count a start of dnsmasq."""
        if reason is not Reason.START:
            self.restarts[reason.value] += 1
            self._restarts.labels(reason.value).inc()

    def up(self) -> None:
        """Note that dnsmasq is up from now on."""
        self.up_since = time.time()
        self._up_since.set(self.up_since)

    def down(self) -> None:
        """Note that no dnsmasq runs."""
        self.up_since = None
        self._up_since.set(0)

    def version(self, version: str) -> None:
        """Note dnsmasq's version."""
        self._version.info({"version": version})

    def ceiling_reached(self) -> None:
        """Count a complaint of dnsmasq about too many concurrent queries."""
        self._ceiling.inc()

    def reloaded(self, outcome: str) -> None:
        """Count a change of the directory: `applied`, `unchanged`, `refused` or `not_restarted`."""
        self._reloads.labels(outcome).inc()

    def in_effect(self, *, complete: bool, unresolved: int) -> None:
        """Note whether all that is configured is in effect, and how many servers did not resolve."""
        self._last_success.set(complete)
        if complete:
            self._last_success_time.set_to_current_time()
        self._unresolved.set(unresolved)

    def not_in_effect(self) -> None:
        """Note that what is configured is not in effect."""
        self._last_success.set(0)

    def show_upstreams(self, reports: Callable[[], Sequence[UpstreamReport]]) -> None:
        """Have the series of the name servers made from their reports at each scrape."""
        self.registry.register(_Upstreams(reports))

    def application(self, status: Callable[[], str]) -> web.Application:
        """Return the web application that serves `/metrics` and, as JSON, `/status`."""

        async def show_status(_: web.Request) -> web.Response:
            return web.Response(text=status(), content_type="application/json")

        async def metrics(_: web.Request) -> web.Response:
            return web.Response(
                body=generate_latest(self.registry), headers={"Content-Type": CONTENT_TYPE_LATEST}
            )

        application = web.Application()
        application.router.add_get("/metrics", metrics)
        application.router.add_get("/status", show_status)
        return application
