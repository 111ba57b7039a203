"""One pod as the manifest has it, on a cluster's API: answers, isolation, changes, deaths."""

import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.e2e.pod.backstage import STUB_ADDRESS, UPSTREAM_ADDRESS
from tests.e2e.pod.kubelet import wait_until
from tests.e2e.pod.lookups import dig, dig_status, resolves
from tests.e2e.pod.manifest import CLASSIC, WIRING
from tests.e2e.pod.objects import service

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

DOMAIN = "cluster.local"
WEB = f"web.shop.svc.{DOMAIN}"


# Answers through dnsmasq


def test_cluster_names_resolve_where_clients_ask(pod) -> None:
    assert dig(pod.door, WEB) == ["10.96.1.1"]
    assert dig(pod.door, f"db.shop.svc.{DOMAIN}") == ["10.244.0.10", "10.244.0.11"]
    assert dig(pod.door, f"db-1.db.shop.svc.{DOMAIN}") == ["10.244.0.11"]
    assert dig(pod.door, f"_http._tcp.{WEB}", "SRV") == [f"10 100 80 {WEB}."]
    assert dig(pod.door, "-x", "10.96.1.1") == [f"{WEB}."]
    assert dig(pod.door, f"10-1-2-3.shop.pod.{DOMAIN}") == ["10.1.2.3"]


def test_the_same_over_tcp(pod) -> None:
    assert dig(pod.door, "+tcp", WEB) == ["10.96.1.1"]


def test_names_of_others_go_to_the_nodes_resolver(pod, backstage) -> None:
    assert dig(pod.door, "www.example.org") == [UPSTREAM_ADDRESS]
    assert backstage.upstream.asked["www.example.org"]


def test_an_absent_name_is_nxdomain_for_the_manifests_negative_ttl(pod, pod_manifest) -> None:
    status, records = dig_status(pod.door, f"absent.shop.svc.{DOMAIN}")
    assert status == "NXDOMAIN"
    (authority,) = [line.split() for line in records if "SOA" in line]
    (ttl,) = [it for it in pod_manifest.containers["kubedns"].arguments if it.startswith("--negative-ttl=")]
    assert int(authority[1]) <= int(ttl.partition("=")[2])


def test_a_service_that_is_created_resolves_and_one_deleted_does_not(pod, backstage) -> None:
    name = f"late.shop.svc.{DOMAIN}"
    backstage.apply(service("late", "shop", "10.96.1.77"))
    wait_until(lambda: resolves(pod.door, name, "10.96.1.77"), 10, pod.describe)
    backstage.delete("Service", "late", "shop")
    wait_until(lambda: dig(pod.address, "-p", "10053", name) == [], 5, pod.describe)


# Probes and metrics


def test_every_probe_of_the_manifest_passes(pod) -> None:
    assert pod.ready(), pod.describe()
    assert all(pod.live(name) for name in pod.pod.containers), pod.describe()


def test_the_probe_of_the_whole_way_passes(pod) -> None:
    assert pod.get(10054, "/healthcheck/cluster").healthy, pod.describe()


def test_all_three_serve_metrics_on_their_ports(pod) -> None:
    assert "skydns_skydns_dns_request_count_total" in pod.get(10055, "/metrics").text
    assert "kubedns_dnsmasq_hits" in pod.get(10054, "/metrics").text
    assert "# TYPE" in pod.get(10056, "/metrics").text
    assert WEB.split(".")[0] in json.dumps(json.loads(pod.get(8081, "/cache").text))


# Isolation


def _status_of(process: int) -> dict[str, str]:
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


@pytest.mark.parametrize("name", ["kubedns", "dnsmasq", "healthz"])
def test_every_process_is_unprivileged(pod, pod_manifest, name: str) -> None:
    processes = [_status_of(process) for process in pod.process_ids(name)]
    assert processes
    for status in processes:
        assert status["Uid"].split() == [str(pod_manifest.user)] * 4
        assert status["Gid"].split() == [str(pod_manifest.group)] * 4
        capabilities = {status[kind] for kind in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")}
        assert capabilities == {"0" * 16}
        assert status["NoNewPrivs"] == "1"
        assert status["Seccomp"] == "2"


@contextmanager
def _process(pod, container: str, name: str) -> Iterator[int]:
    """A descriptor of the process with this name in a container."""
    (process,) = [it for it in pod.process_ids(container) if _status_of(it)["Name"] == name]
    descriptor = os.pidfd_open(process)
    yield descriptor
    os.close(descriptor)


def test_dnsmasq_is_a_child_of_its_nanny_in_one_container(pod) -> None:
    names = [_status_of(process)["Name"] for process in pod.process_ids("dnsmasq")]
    assert names.count("dnsmasq") == 1
    assert len(names) == 2


@pytest.mark.parametrize("name", ["kubedns", "dnsmasq", "healthz"])
def test_nothing_is_written_outside_the_declared_mounts(pod, name: str) -> None:
    mounts = {mount.path for mount in pod.pod.containers[name].mounts} | {"/etc/resolv.conf"}
    places = [Path(path.replace("/var/run/", "/run/")) for path in mounts]
    made_for_mounts = {str(parent) for place in places for parent in (place, *place.parents)}
    engines_own = {"/run", "/run/.containerenv", "/etc", "/etc/mtab", "/proc", "/sys", "/dev"}
    changed = {line.split(" ", 1)[1] for line in pod.changed_files(name)}
    assert changed <= made_for_mounts | engines_own


# Configuration


def test_a_swapped_config_volume_is_followed_without_a_restart_of_any_container(
    pod, kubelet, backstage
) -> None:
    before = pod.process_ids("kubedns"), pod.process_ids("dnsmasq")[0]
    stub = f"{backstage.address}:{backstage.stub_port}"
    assert dig(pod.door, "host.corp.example") == [UPSTREAM_ADDRESS]

    kubelet.config.write(
        {"stubDomains": json.dumps({"corp.example": [stub]}), "hosts": "192.0.2.7 printer.lan\n"}
    )
    wait_until(lambda: resolves(pod.door, "new.corp.example", STUB_ADDRESS), 20, pod.describe)
    wait_until(lambda: resolves(pod.door, "printer.lan", "192.0.2.7"), 20, pod.describe)
    assert dig(pod.door, WEB) == ["10.96.1.1"]

    kubelet.config.write({"stubDomains": '{"corp.example": ["not an address!"]}'})
    wait_until(lambda: "not an address!" in pod.logs("dnsmasq"), 20, pod.describe)
    assert dig(pod.door, "other.corp.example") == [STUB_ADDRESS], "the last good configuration stays"

    kubelet.config.write({})
    wait_until(lambda: resolves(pod.door, "third.corp.example", UPSTREAM_ADDRESS), 20, pod.describe)
    assert before == (pod.process_ids("kubedns"), pod.process_ids("dnsmasq")[0])


def test_an_external_name_below_a_stub_domain_follows_it(pod, kubelet, backstage) -> None:
    stub = f"{backstage.address}:{backstage.stub_port}"
    kubelet.config.write({"stubDomains": json.dumps({"corp.example": [stub]})})
    external = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "ext", "namespace": "shop"},
        "spec": {"type": "ExternalName", "externalName": "db.corp.example"},
    }
    backstage.apply(external)
    name = f"ext.shop.svc.{DOMAIN}"
    wait_until(lambda: resolves(pod.door, name, "db.corp.example.", STUB_ADDRESS), 20, pod.describe)
    backstage.delete("Service", "ext", "shop")


# The API server


def test_a_rotated_token_is_used_when_the_old_one_is_refused(pod, kubelet, backstage) -> None:
    kubelet.token.write(kubelet.token_files("second-token"))
    backstage.stop_api()
    backstage.accept_tokens("second-token")
    backstage.start_api()
    backstage.apply(service("rotated", "shop", "10.96.1.88"))
    wait_until(lambda: resolves(pod.door, f"rotated.shop.svc.{DOMAIN}", "10.96.1.88"), 60, pod.describe)


def test_an_outage_of_the_api_server_changes_no_answer_and_no_probe(pod, backstage) -> None:
    backstage.stop_api()
    try:
        ended = time.monotonic() + 8
        while time.monotonic() < ended:
            assert dig(pod.door, WEB) == ["10.96.1.1"]
            assert pod.ready(), pod.describe()
            assert all(pod.live(name) for name in pod.pod.containers), pod.describe()
            time.sleep(0.5)
    finally:
        backstage.start_api()


# Deaths: each container is killed, the others are as the comment says, and it comes back.


def test_kubedns_killed_fails_its_own_probes_only_and_other_names_still_resolve(pod) -> None:
    pod.kill("kubedns", signal.SIGKILL)
    assert pod.wait_exit("kubedns", 5).status == 137
    wait_until(lambda: not pod.live("kubedns"), 20, pod.describe)
    assert pod.live("dnsmasq")
    assert pod.live("healthz")
    assert not pod.ready()
    assert dig(f"{pod.address}#53", "www.example.net") == [UPSTREAM_ADDRESS]
    pod.start("kubedns")
    pod.wait_ready()
    assert dig(pod.address, "-p", "10053", WEB) == ["10.96.1.1"]


def test_the_nanny_killed_takes_dnsmasq_with_it_and_comes_back(pod) -> None:
    pod.kill("dnsmasq", signal.SIGKILL)
    assert pod.wait_exit("dnsmasq", 5).status == 137
    wait_until(lambda: not pod.live("dnsmasq"), 20, pod.describe)
    assert pod.live("kubedns")
    if WIRING == CLASSIC:
        assert not pod.ready()
    else:
        assert pod.ready(), "kubedns asks the upstreams itself"
        assert dig(pod.door, "www.example.net") == [UPSTREAM_ADDRESS]
    pod.start("dnsmasq")
    pod.wait_ready()
    assert dig(pod.door, WEB) == ["10.96.1.1"]


def test_dnsmasq_killed_is_started_again_in_its_container(pod) -> None:
    with _process(pod, "dnsmasq", "dnsmasq") as dnsmasq:
        signal.pidfd_send_signal(dnsmasq, signal.SIGKILL)
    wait_until(lambda: "killed by SIGKILL: starting it again" in pod.logs("dnsmasq"), 20, pod.describe)
    pod.wait_ready()
    assert pod.live("dnsmasq")
    assert dig(pod.door, WEB) == ["10.96.1.1"]


def test_exechealthz_killed_disturbs_no_lookup(pod) -> None:
    pod.kill("healthz", signal.SIGKILL)
    assert pod.wait_exit("healthz", 5).status == 137
    assert pod.ready()
    assert dig(pod.door, WEB) == ["10.96.1.1"]
    pod.start("healthz")
    pod.wait_ready()


@pytest.mark.parametrize(
    ("name", "program", "other"), [("kubedns", "kube-dns", "dnsmasq"), ("dnsmasq", "dnsmasq", "kubedns")]
)
def test_a_stopped_program_fails_its_own_liveness_until_it_goes_on(pod, name, program, other) -> None:
    with _process(pod, name, program) as process:
        signal.pidfd_send_signal(process, signal.SIGSTOP)
        try:
            wait_until(lambda: not pod.live(name), 20, pod.describe)
            assert pod.live(other), pod.describe()
        finally:
            signal.pidfd_send_signal(process, signal.SIGCONT)
    pod.wait_ready()
