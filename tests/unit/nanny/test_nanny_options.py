"""The nanny's command line."""

from pathlib import Path

import pytest

from kubedns.shared.flags import UsageError
from kubedns.shared.servers import ServerAddress
from nanny.options import FLAGS, from_argv, help_text


def test_defaults_are_the_originals():
    options = from_argv([])
    assert options.dnsmasq == "/usr/sbin/dnsmasq"
    assert not options.restart
    assert options.config_directory == Path("/etc/k8s/dns/dnsmasq-nanny")
    assert options.sync_interval == 10
    assert options.kubedns_server == ServerAddress("127.0.0.1", 10053)
    assert options.log_interval == 0
    assert options.lame_duck == 15
    assert options.metrics_port == 10056
    assert options.hosts_directory is None
    assert options.given == ()


def test_the_originals_manifest_is_taken():
    argv = "-v=2 -logtostderr -configDir=/etc/k8s/dns/dnsmasq-nanny -restartDnsmasq=true -- -k --cache-size=1000 "
    argv += "--no-negcache --log-facility=- --server=/cluster.local/127.0.0.1#10053"
    options = from_argv(argv.split())
    assert options.restart
    assert options.ignored_flags == ("--logtostderr",)
    assert options.given[0] == "-k"
    assert len(options.given) == 5


@pytest.mark.parametrize(
    ("argv", "reason"),
    [
        (["--dnsmasqexec=/x"], "unknown flag: --dnsmasqexec"),
        (["--syncInterval=0"], "--syncInterval: it must be more than zero"),
        (["--syncInterval=10"], "--syncInterval: .*not a duration"),
        (["--kubednsServer=localhost:53"], "--kubednsServer: .*not an IP address"),
        (["--kubednsServer=127.0.0.1:0"], "--kubednsServer: .*not a port"),
        (["--metricsPort=65536"], "--metricsPort: .*65535"),
        (["--dnsmasqExec="], "--dnsmasqExec: it is empty"),
        (["--configDir="], "--configDir: it is empty"),
        (["-k"], "unknown flag: --k"),
        (["dnsmasq"], "unexpected argument"),
    ],
)
def test_a_wrong_command_line_names_flag_and_reason(argv, reason):
    with pytest.raises(UsageError, match=reason):
        from_argv(argv)


def test_help_explains_every_flag_and_every_exit_status():
    text = help_text()
    for flag in FLAGS:
        assert f"--{flag.name}" in text
    for status in ("0 after", "1 when", "2 for", "126 when", "127 when"):
        assert status in " ".join(text.split())
