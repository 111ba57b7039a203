"""What the nanny counts, for Prometheus.

In: calls as things happen.  Out: `GET /metrics`.  Every label value is known beforehand, so the
number of series does not grow.
"""

import time
from collections.abc import Iterator

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


class Metrics:
    """Owns the registry."""

    def __init__(self) -> None:
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
            self._restarts.labels(reason.value).inc()

    def up(self) -> None:
        """Note that dnsmasq is up from now on."""
        self._up_since.set(time.time())

    def down(self) -> None:
        """Note that no dnsmasq runs."""
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
        self._unresolved.set(unresolved)

    def not_in_effect(self) -> None:
        """Note that what is configured is not in effect."""
        self._last_success.set(0)

    def application(self) -> web.Application:
        """Return the web application that serves `/metrics`."""

        async def metrics(_: web.Request) -> web.Response:
            return web.Response(
                body=generate_latest(self.registry), headers={"Content-Type": CONTENT_TYPE_LATEST}
            )

        application = web.Application()
        application.router.add_get("/metrics", metrics)
        return application
