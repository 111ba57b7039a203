"""The command line: what is taken, what the defaults are, what is refused and why."""

import pytest

from healthz.dnsprobe import Probe
from healthz.options import FLAGS, Command, from_argv, help_text, parse_probe
from kubedns.shared.flags import UsageError
from kubedns.shared.servers import ServerAddress


def test_defaults_are_the_contracts():
    options = from_argv([])
    assert options.commands == (Command("echo healthz", "/healthz"),)
    assert options.probes == ()
    assert (options.port, options.period, options.latency) == (8080, 2.0, 30.0)
    assert (options.quiet, options.output) == (False, False)
    assert options.dnsmasq == ServerAddress("127.0.0.1", 53)
    assert options.dnsmasq_interval == 5.0
    assert (options.metrics_namespace, options.metrics_path) == ("kubedns", "/metrics")


def test_commands_and_urls_are_matched_in_order_with_one_dash_or_two():
    options = from_argv(["-cmd=a", "--url=/x", "--cmd", "b c", "-url", "/y"])
    assert options.commands == (Command("a", "/x"), Command("b c", "/y"))


def test_default_command_is_left_out_when_there_is_a_probe():
    assert from_argv(["--probe=k,127.0.0.1,a.b"]).commands == ()


def test_arguments_of_an_old_manifest_start():
    options = from_argv(
        [
            "--cmd=nslookup kubernetes.default.svc.cluster.local 127.0.0.1 >/dev/null",
            "--url=/healthz-dnsmasq",
            "--cmd=nslookup kubernetes.default.svc.cluster.local 127.0.0.1:10053 >/dev/null",
            "--url=/healthz-kubedns",
            "--port=8080",
            "--quiet",
            "--logtostderr",
            "--v=2",
        ]
    )
    assert [command.path for command in options.commands] == ["/healthz-dnsmasq", "/healthz-kubedns"]
    assert options.quiet
    assert options.ignored == ("--logtostderr",)


@pytest.mark.parametrize(
    ("text", "probe"),
    [
        ("k,10.0.0.1,a.b", Probe("k", ServerAddress("10.0.0.1", 53), "a.b", 5.0, "A")),
        ("k,10.0.0.1:10053,a.b.,2", Probe("k", ServerAddress("10.0.0.1", 10053), "a.b", 2.0, "A")),
        ("k,127.0.0.1,a.b,5,SRV", Probe("k", ServerAddress("127.0.0.1"), "a.b", 5.0, "SRV")),
        ("k,127.0.0.1,_dns._udp.a,AAAA", Probe("k", ServerAddress("127.0.0.1"), "_dns._udp.a", 5.0, "AAAA")),
        ("k,[::1]:53,version.bind,0.5,ch", Probe("k", ServerAddress("::1"), "version.bind", 0.5, "CH")),
        ("k,::1,version.bind", Probe("k", ServerAddress("::1"), "version.bind", 5.0, "A")),
        ("k, 127.0.0.1, a.b, 5, A", Probe("k", ServerAddress("127.0.0.1"), "a.b", 5.0, "A")),
    ],
)
def test_probe_forms(text, probe):
    assert parse_probe(text) == probe


@pytest.mark.parametrize("interval", ["0.01", "1", "5", "86400"])
def test_probe_timeout_is_below_its_interval(interval):
    probe = parse_probe(f"k,127.0.0.1,a.b,{interval}")
    assert 0 < probe.timeout < probe.interval


@pytest.mark.parametrize(
    ("argv", "reason"),
    [
        (["--cmd=a"], "--cmd='a' has no --url: give one --url for each --cmd"),
        (["--url=/a"], "--url=/a has no --cmd: give one --cmd for each --url"),
        (["--cmd=a", "--cmd=b", "--url=/a"], "--cmd='b' has no --url"),
        (["--cmd=a", "--cmd=b", "--url=/a", "--url=/a"], "/a is taken twice"),
        (["--cmd=a", "--url=/metrics"], "/metrics is taken twice: by --prometheus-path and by --url"),
        (["--cmd=a", "--url=/healthcheck/k", "--probe=k,127.0.0.1,a"], "/healthcheck/k is taken twice"),
        (["--probe=k,127.0.0.1,a", "--probe=k,127.0.0.1,b"], "/healthcheck/k is taken twice"),
        (["--url=healthz"], "'healthz' is not a path"),
        (["--url=/a?b"], "is not a path"),
        (["--period=0"], "--period is 0 s"),
        (["--period=2"], "is not a duration"),
        (["--latency=1s"], "--latency (1 s) is below --period (2 s)"),
        (["--port=65536"], "--port"),
        (["--probe=k,127.0.0.1"], "is not label,server"),
        (["--probe=k,127.0.0.1,a,5,A,6"], "is not label,server"),
        (["--probe=a-b,127.0.0.1,a"], "label 'a-b'"),
        (["--probe=,127.0.0.1,a"], "label ''"),
        (["--probe=k,kube-dns,a"], "'kube-dns' is not an IP address"),
        (["--probe=k,127.0.0.1:0,a"], "port"),
        (["--probe=k,127.0.0.1,a..b"], "empty label"),
        (["--probe=k,127.0.0.1,a,0"], "interval 0 s is not between"),
        (["--probe=k,127.0.0.1,a,5x"], "interval '5x'"),
        (["--probe=k,127.0.0.1,a,5,ANY"], "type ANY is refused"),
        (["--probe=k,127.0.0.1,a,5,NOPE"], "type 'NOPE' is none of"),
        (["--dnsmasq-addr=dnsmasq"], "--dnsmasq-addr"),
        (["--dnsmasq-port=0"], "0 is not between 1"),
        (["--prometheus-namespace=a-b"], "can't begin a metric's name"),
        (["--kubedns-readiness=localhost:8081"], "is not an http:// or https:// URL"),
        (["--kubedns-readiness=http://[::1"], "--kubedns-readiness"),
        (["--frob"], "unknown flag: --frob"),
        (["frob"], "unexpected argument"),
        (["--", "frob"], "unexpected argument"),
    ],
)
def test_wrong_command_line_names_flag_and_reason(argv, reason):
    with pytest.raises(UsageError) as raised:
        from_argv(argv)
    assert reason in str(raised.value)


def test_help_explains_every_flag():
    text = help_text()
    assert all(f"--{flag.name}" in text and flag.help for flag in FLAGS)
    assert "(default 30s)" in text


@pytest.mark.parametrize(
    ("server", "port"), [("[127.0.0.1]:10053", 10053), ("[127.0.0.1]", 53), ("127.0.0.1:10053", 10053)]
)
def test_probe_takes_brackets_around_either_family(server, port):
    probe = parse_probe(f"kubedns,{server},kubernetes.default.svc.cluster.local,5,SRV")
    assert (probe.server, probe.qtype) == (ServerAddress("127.0.0.1", port), "SRV")


@pytest.mark.parametrize("server", ["[127.0.0.1]x", "[127.0.0.1", "[]:53", "[1.2.3]:53"])
def test_probe_refuses_other_brackets(server):
    with pytest.raises(ValueError, match=r"\S"):
        parse_probe(f"kubedns,{server},name.example,5,A")
