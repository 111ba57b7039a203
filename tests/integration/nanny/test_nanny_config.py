"""Configuration values with a real dnsmasq: what is refused, resolved, routed and served."""

import json
import socket
from collections.abc import Callable

import pytest
from dnslib import RCODE, DNSRecord

from tests.integration.nanny.conftest import Nanny, wait_for

pytestmark = pytest.mark.integration

GOOD = '{"good.test": ["192.0.2.1"]}'
REFUSED: list[tuple[str, str | bytes, str]] = [
    ("stubDomains", "{", "is not JSON"),
    ("stubDomains", '{"a.test": ["192.0.2.1"],}', "is not JSON"),
    ("stubDomains", '["192.0.2.1"]', "must be a JSON object"),
    ("stubDomains", "\ufeff{}", "byte order mark"),
    ("stubDomains", '{"a.test": ["192.0.2.1:0"]}', "not a port"),
    ("stubDomains", '{"a.test": ["192.0.2.1:65536"]}', "not a port"),
    ("stubDomains", '{"a.test": ["192.0.2.1:abc"]}', "not a port"),
    ("stubDomains", '{"a.test": ["fe80::1%lo"]}', "zone id"),
    ("stubDomains", '{".test": ["192.0.2.1"]}', "empty label"),
    ("stubDomains", '{"*": ["192.0.2.1"]}', "not a DNS label"),
    ("stubDomains", '{"corp.local": ["192.0.2.1"]}', "is the cluster domain"),
    ("stubDomains", '{"a.test": ["192.0.2.1"], "a.test": ["192.0.2.2"]}', "twice"),
    ("stubDomains", b'{"\xff": []}', "not UTF-8"),
    ("stubDomains", " " * ((1 << 20) + 1), "larger than 1 MiB"),
    ("upstreamNameservers", '["192.0.2.1","192.0.2.2","192.0.2.3","192.0.2.4"]', "at most 3"),
    ("upstreamNameservers", '["ns.test"]', "not an IP address"),
    ("federations", '{"a.b": "x.test"}', "not one DNS-1123 label"),
    ("hosts", "192.0.2.1 web.default.svc.corp.local", "inside the cluster domain"),
    ("hosts", "web 192.0.2.1", "is not an IP address"),
]
TAKEN = [
    ("stubDomains", "null", ""),
    ("stubDomains", "", ""),
    ("stubDomains", "{}", ""),
    ("stubDomains", '{"UPPER.Test.": ["192.0.2.1"]}', "/upper.test/192.0.2.1#53"),
    ("stubDomains", '{"under_score.test": ["2001:db8::1"]}', "/under_score.test/2001:db8::1#53"),
    ("stubDomains", '{\r\n"a.test": ["[2001:db8::1]:5353"]\r\n}\r\n', "/a.test/2001:db8::1#5353"),
    ("upstreamNameservers", '["192.0.2.1:5353", "192.0.2.1:5353"]', "192.0.2.1#5353"),
]


def clustered(start: Callable[..., Nanny], **options: object) -> Nanny:
    return start(
        "--no-resolv", "--address=/a.test/192.0.2.9", "--server=/corp.local/127.0.0.1#10053", **options
    )


def read_servers(nanny: Nanny) -> list[str]:
    return [line for line in nanny.log.splitlines() if "dnsmasq reads its servers: " in line]


def test_bad_values_at_reload_are_named_and_leave_the_old_child_running(start):
    nanny = clustered(start)
    nanny.wait_up()
    nanny.write(stubDomains=GOOD)
    nanny.wait_log(r"using nameserver .* for domain good\.test")
    first = nanny.pid
    for key, value, reason in REFUSED:
        refused = nanny.log.count("refused as a whole")
        values: dict[str, str | bytes] = {"stubDomains": GOOD, key: value}
        nanny.write(**values)
        nanny.wait_log("refused as a whole", refused + 1)
        assert reason in nanny.log.splitlines()[-1]
        assert f"refused as a whole: {key}: " in nanny.log.splitlines()[-1]
        assert nanny.metric("dnsmasq_nanny_config_last_reload_success") == 0
    assert nanny.metric('dnsmasq_nanny_config_reloads_total{outcome="refused"}') == len(REFUSED)
    nanny.write(stubDomains=GOOD)
    wait_for("success", lambda: nanny.metric("dnsmasq_nanny_config_last_reload_success") == 1)
    assert nanny.pid == first
    assert nanny.addresses("a.test") == ["192.0.2.9"]


def test_values_taken_at_reload_make_their_arguments(start):
    nanny = clustered(start)
    nanny.wait_up()
    for key, value, words in TAKEN:
        if not words:
            continue
        changes = nanny.log.count("dnsmasq reads its servers: ")
        nanny.write(**{key: value})
        nanny.wait_log("dnsmasq reads its servers: .*\n", changes + 1)
        assert read_servers(nanny)[-1].endswith(words)
    assert "refused" not in nanny.log


@pytest.mark.parametrize(("key", "value", "reason"), REFUSED[::3])
def test_a_bad_value_at_the_start_means_the_given_arguments_loudly(start, tmp_path, key, value, reason):
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / key).write_bytes(value if isinstance(value, bytes) else value.encode())
    nanny = clustered(start, flags=("--restartDnsmasq", f"--configDir={tmp_path}/config"))
    nanny.wait_up()
    assert f"refused as a whole: {key}: " in nanny.log
    assert reason in nanny.log
    assert "the configuration is NOT in effect" in nanny.log
    assert nanny.addresses("a.test") == ["192.0.2.9"]
    assert nanny.metric("dnsmasq_nanny_config_last_reload_success") == 0


@pytest.mark.parametrize(("key", "value", "words"), TAKEN)
def test_a_value_taken_at_the_start_makes_its_arguments(start, tmp_path, key, value, words):
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / key).write_text(value)
    nanny = clustered(start, flags=(f"--configDir={tmp_path}/config",))
    nanny.wait_up()
    assert [line.partition(": ")[2] for line in read_servers(nanny)] == ([words] if words else [])


def test_an_unreadable_directory_is_named_and_changes_nothing(start):
    nanny = clustered(start)
    nanny.wait_up()
    nanny.write(stubDomains=GOOD)
    nanny.wait_log(r"using nameserver .* for domain good\.test")
    first = nanny.pid
    (nanny.config / "..data").unlink()
    (nanny.config / "..data").symlink_to("nowhere")
    nanny.wait_log(r"refused as a whole: cannot read .*/\.\.data: it leads nowhere")
    assert nanny.pid == first


def test_names_in_the_cluster_are_resolved_by_kube_dns_and_followed(start, name_server):
    kubedns = name_server(ns_infra_svc_corp_local="127.0.0.1")
    target = name_server(www_corp_test="192.0.2.7")
    nanny = start(
        "--no-resolv",
        f"--server=/corp.local/127.0.0.1#{kubedns.port}",
        flags=("--restartDnsmasq", f"--kubednsServer=127.0.0.1:{kubedns.port}"),
    )
    nanny.wait_up()
    nanny.write(stubDomains=json.dumps({"corp.test": [f"ns.infra.svc.corp.local:{target.port}"]}))
    nanny.wait_log(rf"using nameserver 127.0.0.1#{target.port} for domain corp\.test")
    assert "ns.infra" not in " ".join(read_servers(nanny))
    assert nanny.addresses("www.corp.test") == ["192.0.2.7"]
    seen = len(kubedns.seen)
    wait_for("more rounds", lambda: len(kubedns.seen) >= seen + 6)
    assert len(read_servers(nanny)) == 1
    kubedns.answers["ns.infra.svc.corp.local"] = "192.0.2.8"
    nanny.wait_log(rf"reads its servers: /corp.test/192.0.2.8#{target.port}")
    kubedns.answers["ns.infra.svc.corp.local"] = None
    seen = len(kubedns.seen)
    wait_for("rounds without an answer", lambda: len(kubedns.seen) >= seen + 4)
    assert len(read_servers(nanny)) == 2


def test_a_server_that_does_not_resolve_is_left_out_until_it_does(start, name_server, tmp_path):
    kubedns = name_server()
    (tmp_path / "config").mkdir()
    servers = ["ns.corp.local", "192.0.2.5"]
    (tmp_path / "config" / "stubDomains").write_text(
        json.dumps({"one.test": servers, "two.test": ["192.0.2.6"]})
    )
    nanny = start(
        "--no-resolv",
        f"--server=/corp.local/127.0.0.1#{kubedns.port}",
        flags=(
            f"--configDir={tmp_path}/config",
            f"--kubednsServer=127.0.0.1:{kubedns.port}",
            "--restartDnsmasq",
        ),
    )
    nanny.wait_up()
    assert "stubDomains: server ns.corp.local of one.test is left out" in nanny.log
    assert nanny.metric("dnsmasq_nanny_unresolved_servers") == 1
    assert nanny.metric("dnsmasq_nanny_config_last_reload_success") == 0
    (line,) = read_servers(nanny)
    assert line.endswith(": /one.test/192.0.2.5#53, /two.test/192.0.2.6#53")
    kubedns.answers["ns.corp.local"] = "192.0.2.4"
    nanny.wait_log(r"reads its servers: /one.test/192.0.2.4#53, /one.test/192.0.2.5#53")
    wait_for("success", lambda: nanny.metric("dnsmasq_nanny_config_last_reload_success") == 1)
    assert nanny.log.count("is left out") == 1


def test_other_names_are_resolved_by_the_system(start):
    nanny = start("--no-resolv")
    nanny.wait_up()
    nanny.write(stubDomains='{"corp.test": ["localhost:5399", "ns.no-such.invalid"]}')
    nanny.wait_log(r"reads its servers: /corp.test/127.0.0.1#5399")
    assert "server ns.no-such.invalid of corp.test is left out" in nanny.log


def test_upstreams_leave_resolv_conf_unread_and_their_removal_brings_it_back(start, name_server, tmp_path):
    ours = name_server(**{f"h{number}_ext_test": "192.0.2.2" for number in range(50)})
    resolv_conf = tmp_path / "resolv.conf"
    resolv_conf.write_text("nameserver 192.0.2.53\n")
    nanny = start(f"--resolv-file={resolv_conf}")
    nanny.wait_up()
    nanny.wait_log("using nameserver 192.0.2.53#53")
    nanny.write(upstreamNameservers=json.dumps([f"127.0.0.1:{ours.port}", f"127.0.0.1:{ours.port}"]))
    nanny.wait_up(2)
    for number in range(50):
        assert nanny.addresses(f"h{number}.ext.test") == ["192.0.2.2"]
    second = nanny.pid
    assert f"dnsmasq[{second}]: using nameserver 192.0.2.53#53" not in nanny.log
    nanny.write()
    third = nanny.wait_up(3)
    nanny.wait_log(rf"dnsmasq\[{third}\]: using nameserver 192.0.2.53#53")
    assert f"dnsmasq[{third}]: using nameserver 127.0.0.1#" not in nanny.log


def test_a_given_server_for_all_names_beside_upstreams_is_warned_about(start):
    nanny = start("--server=127.0.0.1#10053")
    nanny.wait_up()
    nanny.write(upstreamNameservers='["192.0.2.1"]')
    nanny.wait_log("upstreamNameservers share all names with the given argument --server=127.0.0.1:10053")


def test_hosts_are_served_changed_and_removed_without_a_restart(start, name_server):
    upstream = name_server()
    nanny = start("--no-resolv", f"--server=127.0.0.1#{upstream.port}")
    first = nanny.wait_up()
    assert nanny.rcode("www.test") == nanny.rcode("www.test", "AAAA") == "NXDOMAIN"
    nanny.write(hosts="# ours\n192.0.2.7 www.test WWW2.test\n2001:db8::7 six.test\n")
    wait_for("the host", lambda: nanny.addresses("www.test") == ["192.0.2.7"])
    assert nanny.addresses("www2.test") == ["192.0.2.7"]
    assert str(nanny.ask("7.2.0.192.in-addr.arpa", "PTR").rr[0].rdata) == "www.test."
    assert str(nanny.ask("six.test", "AAAA").rr[0].rdata) == "2001:db8::7"
    nanny.write(hosts="192.0.2.8 www.test\n")
    wait_for("the change", lambda: nanny.addresses("www.test") == ["192.0.2.8"])
    assert nanny.addresses("www2.test") == []
    nanny.write()
    wait_for("the removal", lambda: nanny.rcode("www.test") == "NXDOMAIN")
    assert nanny.pid == first
    assert nanny.log.count("] restarting ") == 0


def test_a_host_has_no_other_types_and_captures_no_names_below(start, name_server):
    upstream = name_server(sub_www_test="192.0.2.9", www_test="192.0.2.66")
    nanny = start("--no-resolv", f"--server=127.0.0.1#{upstream.port}", flags=())
    nanny.wait_up()
    nanny.write(hosts="192.0.2.7 www.test\n")
    wait_for("the host", lambda: nanny.addresses("www.test") == ["192.0.2.7"])
    upstream.seen.clear()
    for kind in ("AAAA", "HTTPS", "MX", "TXT"):
        answer = nanny.ask("www.test", kind)
        assert (RCODE[answer.header.rcode], answer.rr) == ("NOERROR", [])
    assert "www.test" not in upstream.seen
    assert nanny.ask("www.test").rr[0].ttl == 30
    assert nanny.addresses("sub.www.test") == ["192.0.2.9"]
    assert str(nanny.ask("7.2.0.192.in-addr.arpa", "PTR").rr[0].rdata) == "www.test."
    nanny.write()
    wait_for("the removal", lambda: nanny.addresses("www.test") == ["192.0.2.66"])


def test_hosts_that_could_not_be_written_are_served_as_soon_as_they_can(start, tmp_path):
    hosts = tmp_path / "hosts"
    (hosts).mkdir()
    nanny = start("--no-resolv", flags=("--restartDnsmasq", f"--hostsDir={hosts}", "--syncInterval=1s"))
    nanny.wait_up()
    (hosts / "hosts.new").mkdir()
    nanny.write(hosts="192.0.2.7 www.test\n")
    nanny.wait_log("hosts: cannot write")
    (hosts / "hosts.new").rmdir()
    wait_for("the host", lambda: nanny.addresses("www.test") == ["192.0.2.7"])
    assert nanny.log.count("hosts: cannot write") == 1


def test_a_host_that_was_asked_for_before_loses_its_cached_nxdomain_for_other_types(start, name_server):
    upstream = name_server()
    nanny = start("--no-resolv", f"--server=127.0.0.1#{upstream.port}")
    nanny.wait_up()
    for _ in range(2):
        assert nanny.rcode("www.test", "AAAA") == "NXDOMAIN"
    assert [name for name in upstream.seen if name] == ["www.test"]  # the nanny itself asks for the root
    nanny.write(hosts="192.0.2.7 www.test\n")
    wait_for("the host", lambda: nanny.addresses("www.test") == ["192.0.2.7"])
    wait_for("NODATA", lambda: nanny.rcode("www.test", "AAAA") == "NOERROR")


def test_too_many_questions_at_once_are_counted(start, name_server):
    silent = name_server(**{f"q{number}_test": None for number in range(40)})
    nanny = start("--no-resolv", f"--server=127.0.0.1#{silent.port}", "--dns-forward-max=10")
    nanny.wait_up()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        for number in range(40):
            client.sendto(DNSRecord.question(f"q{number}.test").pack(), ("127.0.0.1", nanny.port))
    nanny.wait_log("Maximum number of concurrent DNS queries reached")
    assert nanny.metric("dnsmasq_nanny_concurrency_ceiling_total") >= 1
    assert nanny.metric('dnsmasq_nanny_dnsmasq_info{version="2.90"}') == 1
    assert nanny.metric("dnsmasq_nanny_child_start_time_seconds") > 0


def test_repair_and_loss_of_the_directory_are_said(start):
    nanny = start("--no-resolv")
    nanny.wait_up()
    nanny.write(stubDomains="[1]")
    nanny.wait_log("configuration refused as a whole")
    nanny.write(stubDomains='{"corp.test": ["192.0.2.1"]}')
    nanny.wait_log("the configuration is good again, and in force")
    nanny.config.rename(nanny.config.with_name("elsewhere"))
    nanny.wait_log("is gone; its keys are absent until it is back")
