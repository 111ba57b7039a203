"""The exposition: the sidecar's names exactly, their types, and values from the live objects."""

import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from healthz.counters import PROBE_BOUNDS, CacheStatistics
from healthz.metrics import HealthCollector, registry_of
from healthz.results import Check, Outcome
from kubedns.shared.histogram import Histogram
from kubedns.shared.servers import ServerAddress


def check(path: str) -> Check:
    return Check(path, path, "detail", stale_after=30, latency=Histogram(PROBE_BOUNDS))


@pytest.fixture
def commands() -> list[Check]:
    return [check('/odd"\\url')]


@pytest.fixture
def probe() -> Check:
    return check("/healthcheck/kubedns")


@pytest.fixture
def dnsmasq(statistics_of):
    return statistics_of(ServerAddress("127.0.0.1"))


@pytest.fixture
def scrape(commands, probe, dnsmasq):
    registry = registry_of(HealthCollector("kubedns", commands, {"kubedns": probe}, dnsmasq, lambda: 10.0))

    def families():
        text = generate_latest(registry).decode()
        return {family.name: family for family in text_string_to_metric_families(text)}

    return families


def test_names_and_types_are_the_sidecars(scrape, dnsmasq):
    dnsmasq.cache.update(CacheStatistics(1000, 1, 2, 3, 4))
    types = {name: family.type for name, family in scrape().items()}
    assert (
        types
        | {
            "kubedns_dnsmasq_hits": "unknown",
            "kubedns_dnsmasq_misses": "unknown",
            "kubedns_dnsmasq_evictions": "unknown",
            "kubedns_dnsmasq_insertions": "unknown",
            "kubedns_dnsmasq_errors": "unknown",
            "kubedns_dnsmasq_max_size": "gauge",
            "kubedns_probe_kubedns_latency_ms": "histogram",
            "kubedns_probe_kubedns_errors": "unknown",
            "kubedns_exec_runs": "counter",
            "kubedns_exec_duration_seconds": "histogram",
            "kubedns_check_healthy": "gauge",
            "process_resident_memory_bytes": "gauge",
            "process_open_fds": "gauge",
        }
        == types
    )


def test_dnsmasq_figures_are_left_out_until_they_were_read(scrape, dnsmasq):
    assert "kubedns_dnsmasq_hits" not in scrape()
    assert scrape()["kubedns_dnsmasq_errors"].samples[0].value == 0
    dnsmasq.cache.update(CacheStatistics(1000, 1, 2, 3, 4))
    assert scrape()["kubedns_dnsmasq_hits"].samples[0].value == 3


def test_probe_latency_is_in_milliseconds_with_the_sidecars_buckets(scrape, probe):
    probe.record(Outcome(1.0, 0.0003))
    probe.record(Outcome(2.0, 9.0))
    samples = scrape()["kubedns_probe_kubedns_latency_ms"].samples
    buckets = {sample.labels["le"]: sample.value for sample in samples if "le" in sample.labels}
    assert list(buckets)[:4] == ["0.25", "0.5", "1", "2"]
    assert list(buckets)[-2:] == ["8192", "+Inf"]
    assert (buckets["0.25"], buckets["0.5"], buckets["8192"], buckets["+Inf"]) == (0, 1, 1, 2)
    assert next(s.value for s in samples if s.name.endswith("_sum")) == pytest.approx(9000.3)


def test_failures_and_runs_are_counted(scrape, probe, commands):
    probe.record(Outcome(1.0, None, "no reply"))
    commands[0].record(Outcome(1.0, 0.1))
    commands[0].record(Outcome(2.0, 0.1, "exit status 1"))
    families = scrape()
    assert families["kubedns_probe_kubedns_errors"].samples[0].value == 1
    runs = {sample.labels["result"]: sample.value for sample in families["kubedns_exec_runs"].samples}
    assert runs == {"ok": 1, "failed": 1}


def test_check_healthy_says_what_the_url_says_staleness_included(scrape, probe, commands):
    probe.record(Outcome(9.0, 0.1))
    commands[0].record(Outcome(-100.0, 0.1))
    healthy = {sample.labels["url"]: sample.value for sample in scrape()["kubedns_check_healthy"].samples}
    assert healthy == {"/healthcheck/kubedns": 1, '/odd"\\url': 0}


def test_namespace_is_the_first_word():
    registry = registry_of(HealthCollector("other", [], {}, None, lambda: 0.0))
    names = [f.name for f in text_string_to_metric_families(generate_latest(registry).decode())]
    assert "other_check_healthy" in names
    assert not any(name.startswith("kubedns") for name in names)
