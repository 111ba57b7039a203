"""What forwarding costs and yields, for each name server that is asked.

In: counts as questions are sent and end.  Out: the series `kubedns_upstream_*` at a scrape.  The servers
are those in use, so that their number is bounded by the configuration; one that comes back begins at zero.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from kubedns.shared.histogram import Histogram

BOUNDS: Final = (0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0)
"""Upper bounds of the time to a reply, in seconds."""
REASONS: Final = ("timeout", "refused", "servfail", "malformed", "mismatch")


class UpstreamTraffic:
    """The counts of one server: `requests` questions sent, `in_flight` those without an end yet.

    `failures` counts by REASONS: no reply in time; REFUSED, a lame referral or an ICMP error; SERVFAIL;
    a reply that can't be read; a datagram that is not the reply.  `seconds` are the times to a reply.
    """

    __slots__ = ("failures", "in_flight", "requests", "seconds")

    def __init__(self) -> None:
        self.requests = 0
        self.in_flight = 0
        self.failures: Counter[str] = Counter()
        self.seconds = Histogram(BOUNDS)


class UpstreamCollector(Collector):
    """Yields the series of the servers in use; `servers` returns their counts by address."""

    def __init__(self, servers: Callable[[], Mapping[str, UpstreamTraffic]]) -> None:
        self._servers = servers

    def collect(self) -> Iterator[Metric]:
        """Yield the series as things stand."""
        labels = ["server"]
        requests = CounterMetricFamily(
            "kubedns_upstream_requests", "Questions sent to a name server.", labels=labels
        )
        failures = CounterMetricFamily(
            "kubedns_upstream_failures",
            f"Questions that a name server did not answer well, by reason: {', '.join(REASONS)}.",
            labels=[*labels, "reason"],
        )
        seconds = HistogramMetricFamily(
            "kubedns_upstream_request_duration_seconds", "Time to a name server's reply.", labels=labels
        )
        in_flight = GaugeMetricFamily(
            "kubedns_upstream_in_flight", "Questions sent to a name server that wait for it.", labels=labels
        )
        for server, traffic in self._servers().items():
            requests.add_metric([server], traffic.requests)
            for reason in REASONS:
                failures.add_metric([server, reason], traffic.failures[reason])
            seconds.add_metric([server], traffic.seconds.buckets(), traffic.seconds.total)
            in_flight.add_metric([server], traffic.in_flight)
        yield from (requests, failures, seconds, in_flight)
