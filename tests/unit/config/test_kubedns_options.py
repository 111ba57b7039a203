"""The record server's command line and environment."""

import pytest

from kubedns.config.options import FLAGS, METRICS_PORT, from_argv, help_text
from kubedns.shared.flags import UsageError
from kubedns.shared.servers import ServerAddress


def test_nothing_given_means_the_originals_defaults():
    options = from_argv([], {})
    assert options.domain == (b"cluster", b"local")
    assert (options.dns_bind_address, options.dns_port, options.healthz_port) == ("0.0.0.0", 53, 8081)
    assert (options.config_period, options.initial_sync_timeout, options.lame_duck) == (10.0, 60.0, 15.0)
    assert (options.ttl, options.negative_ttl, options.wildcards) == (30, 60, True)
    assert options.metrics.port == METRICS_PORT == 10055
    assert (options.metrics.path, options.metrics.namespace, options.metrics.subsystem) == (
        "/metrics",
        "skydns",
        "skydns",
    )


def test_flags_take_their_value_after_equals_or_as_the_next_word():
    argv = ["--domain", "Corp.Local", "--ttl=5", "-wildcards=false", "--lame-duck", "1m30s"]
    options = from_argv([*argv, "--nameservers=10.0.0.1, [fd00::1]:5353 ,10.0.0.1"], {})
    assert options.domain == (b"corp", b"local")
    assert (options.ttl, options.wildcards, options.lame_duck) == (5, False, 90.0)
    assert options.nameservers == (ServerAddress("10.0.0.1"), ServerAddress("fd00::1", 5353))


def test_variables_in_the_api_servers_url_are_expanded():
    environ = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}
    argv = ["--kube-master-url=https://$KUBERNETES_SERVICE_HOST:${KUBERNETES_SERVICE_PORT}"]
    assert from_argv(argv, environ).master_url == "https://10.0.0.1:443"


@pytest.mark.parametrize("written", ["$API_PORT", "${API_PORT}"])
def test_variable_of_the_api_servers_url_that_is_not_set_is_named(written):
    with pytest.raises(UsageError, match=r"--kube-master-url.*API_PORT is not set"):
        from_argv([f"--kube-master-url=https://10.0.0.1:{written}"], {})


def test_federations_are_name_and_domain():
    options = from_argv(["--federations=Mesh=Fed.Test.,b=c.d"], {})
    assert options.federations == {"mesh": "fed.test", "b": "c.d"}


@pytest.mark.parametrize(
    ("argv", "reason"),
    [
        (["--dns-port=70000"], "--dns-port"),
        (["--dns-port=x"], "--dns-port"),
        (["--domain=a..b"], "empty label"),
        (["--domain=10.in-addr.arpa"], "reverse"),
        (["--dns-bind-address=localhost"], "--dns-bind-address"),
        (["--nameservers=ns.example.com"], "--nameservers"),
        (["--nameservers=10.0.0.1:0"], "--nameservers"),
        (["--federations=mesh"], "--federations"),
        (["--federations=a.b=c.d"], "--federations"),
        (["--ttl=-1"], "--ttl"),
        (["--negative-ttl=100000"], "--negative-ttl"),
        (["--wildcards=maybe"], "--wildcards"),
        (["--config-period=0"], "--config-period"),
        (["--initial-sync-timeout=soon"], "--initial-sync-timeout"),
        (["--initial-sync-timeout=-1s"], "--initial-sync-timeout"),
        (["--config-dir=/a", "--config-map=b"], "together"),
        (["--federations=a=b.c", "--config-dir=/a"], "--federations"),
        (["--federations=a=b.c", "--config-map=a"], "--federations"),
        (["--domain"], "--domain"),
        (["word"], "word"),
        (["--", "word"], "word"),
        (["--nope=1"], "--nope"),
    ],
)
def test_wrong_command_line_is_refused_with_its_flag(argv, reason):
    with pytest.raises(UsageError, match=reason):
        from_argv(argv, {})


def test_klog_flags_and_profiling_are_taken_and_reported():
    options = from_argv(["--logtostderr", "--log_dir", "/tmp", "--profiling", "--v=2"], {})
    assert set(options.ignored_flags) == {"--logtostderr", "--log_dir", "--profiling"}
    assert options.verbosity == 2


@pytest.mark.parametrize(("text", "port"), [("", None), ("0", None), ("9999", 9999), (" 10055 ", 10055)])
def test_metrics_port_is_the_environments(text, port):
    assert from_argv([], {"PROMETHEUS_PORT": text}).metrics.port == port


@pytest.mark.parametrize("link", ["tcp://10.96.0.9:9090", "udp://[fd00::9]:53"])
def test_service_link_in_place_of_the_metrics_port_means_the_default(link):
    assert from_argv([], {"PROMETHEUS_PORT": link}).metrics.port == 10055


@pytest.mark.parametrize(
    "environ", [{"PROMETHEUS_PORT": "http"}, {"PROMETHEUS_PORT": "65536"}, {"PROMETHEUS_NAMESPACE": "a-b"}]
)
def test_wrong_environment_is_refused(environ):
    with pytest.raises(UsageError):
        from_argv([], environ)


def test_help_explains_every_flag():
    text = help_text()
    for flag in FLAGS:
        assert f"--{flag.name}" in text
        assert flag.help
