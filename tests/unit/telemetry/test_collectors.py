"""The series of a scrape: the original's names and labels, and ours."""

from prometheus_client import CollectorRegistry, generate_latest

from kubedns.shared.report import Configuration, Refusal, UpstreamReport
from kubedns.telemetry.collectors import ClusterCollector, ClusterView, ServerCollector
from kubedns.telemetry.counters import SYSTEMS, Outcome, ServerCounters
from kubedns.telemetry.watches import ResourceStatistics


def scraped(collector) -> list[str]:
    registry = CollectorRegistry()
    registry.register(collector)
    return generate_latest(registry).decode().splitlines()


def test_server_series_have_the_originals_names_and_labels():
    counters = ServerCounters()
    counters.systems["auth"].count(Outcome.NXDOMAIN, 100)
    counters.note_batch(0.002, 1)
    counters.misses = 3
    lines = scraped(ServerCollector(counters, "skydns", "skydns"))
    for line in (
        'skydns_skydns_dns_request_count_total{system="auth"} 1.0',
        'skydns_skydns_dns_error_count_total{cause="nxdomain",system="auth"} 1.0',
        'skydns_skydns_dns_cachemiss_count_total{cache="response"} 3.0',
        'skydns_skydns_dns_response_size_bytes_count{system="auth"} 1.0',
        'skydns_skydns_dns_response_size_bytes_bucket{le="512.0",system="auth"} 1.0',
        'skydns_skydns_dns_request_duration_seconds_bucket{le="0.001",system="auth"} 0.0',
        'skydns_skydns_dns_request_duration_seconds_bucket{le="0.003",system="auth"} 1.0',
    ):
        assert line in lines


def test_every_system_and_cause_is_there_before_the_first_question():
    text = "\n".join(scraped(ServerCollector(ServerCounters(), "skydns", "skydns")))
    assert set(SYSTEMS) == {"auth", "cache", "recursive", "reverse", "stub"}
    for system in SYSTEMS:
        for cause in ("nxdomain", "nodata", "truncated", "refused", "overflow", "servfail"):
            assert f'dns_error_count_total{{cause="{cause}",system="{system}"}} 0.0' in text


def test_empty_prefix_leaves_the_bare_names():
    lines = scraped(ServerCollector(ServerCounters(), "", ""))
    assert any(line.startswith("dns_request_count_total{") for line in lines)


def test_cluster_series_show_the_state_of_the_moment():
    statistics = ResourceStatistics("services")
    configuration = Configuration("test", last_success=1700000000.0)
    view = ClusterView(
        objects=lambda: {"service": 3, "endpointslice": 2},
        records=lambda: 7,
        synced=lambda: True,
        watches=lambda: [statistics],
        settings=lambda: {"applied": 2},
        configuration=lambda: configuration,
        upstreams=lambda: [UpstreamReport("192.0.2.1:53", ".", False, 0.5, {"timeout": 3}, "timeout")],
        drops=lambda: {"socket": 1},
        now=lambda: 100.0,
    )
    collector = ClusterCollector(view)
    lines = scraped(collector)
    for line in (
        'kubedns_objects{kind="service"} 3.0',
        "kubedns_records 7.0",
        "kubedns_synced 1.0",
        'kubedns_config_reloads_total{outcome="applied"} 2.0',
        'kubedns_config_reloads_total{outcome="refused"} 0.0',
        'kubedns_dropped_total{reason="socket"} 1.0',
        'kubedns_last_event_age_seconds{resource="services"} +Inf',
        "kubedns_config_last_reload_success 1.0",
        'kubedns_upstream_up{domain=".",server="192.0.2.1:53"} 0.0',
        'kubedns_upstream_check_failures_total{domain=".",reason="timeout",server="192.0.2.1:53"} 3.0',
        "kubedns_config_last_success_timestamp_seconds 1.7e+09",
    ):
        assert line in lines
    configuration = Configuration("test", refused=(Refusal("stubDomains", "wrong"),))
    for line in (
        "kubedns_config_last_reload_success 0.0",
        "kubedns_config_last_success_timestamp_seconds 0.0",
    ):
        assert line in scraped(collector)
    statistics.last_activity = 90.0
    assert 'kubedns_last_event_age_seconds{resource="services"} 10.0' in scraped(collector)
