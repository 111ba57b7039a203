"""A real Prometheus scrapes the running add-on: series, dashboard panels, and alerts for real faults.

Needs `prometheus` and `promtool` (Debian: apt-get install prometheus), dnsmasq, and nothing of the
network but loopback.
"""

import contextlib
import json
import math
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dnslib
import pytest
import yaml

from tests.ports import free_port
from tests.tools import tool

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(400)]

MONITORING = Path(__file__).parents[2] / "deploy" / "monitoring"
DEADLINE = 90.0
DNSMASQ = tool("dnsmasq:dnsmasq-base")

SERIES = {
    "skydns_skydns_dns_request_count_total": "counter",
    "skydns_skydns_dns_request_duration_seconds": "histogram",
    "skydns_skydns_dns_response_size_bytes": "histogram",
    "skydns_skydns_dns_error_count_total": "counter",
    "skydns_skydns_dns_cachemiss_count_total": "counter",
    "kubedns_objects": "gauge",
    "kubedns_records": "gauge",
    "kubedns_last_event_age_seconds": "gauge",
    "kubedns_lists_total": "counter",
    "kubedns_watches_total": "counter",
    "kubedns_synced": "gauge",
    "kubedns_config_reloads_total": "counter",
    "kubedns_repairs_total": "counter",
    "kubedns_propagation_seconds": "histogram",
    "kubedns_dnsmasq_hits": "unknown",
    "kubedns_dnsmasq_misses": "unknown",
    "kubedns_dnsmasq_evictions": "unknown",
    "kubedns_dnsmasq_insertions": "unknown",
    "kubedns_dnsmasq_max_size": "gauge",
    "kubedns_dnsmasq_errors": "unknown",
    "kubedns_probe_kubedns_latency_ms": "histogram",
    "kubedns_probe_kubedns_errors": "unknown",
    "kubedns_probe_dnsmasq_latency_ms": "histogram",
    "kubedns_probe_dnsmasq_errors": "unknown",
    "kubedns_check_healthy": "gauge",
    "dnsmasq_nanny_restarts_total": "counter",
    "dnsmasq_nanny_config_reloads_total": "counter",
    "dnsmasq_nanny_config_last_reload_success": "gauge",
    "dnsmasq_nanny_child_start_time_seconds": "gauge",
    "dnsmasq_nanny_concurrency_ceiling_total": "counter",
    "dnsmasq_nanny_unresolved_servers": "gauge",
}

PORTS = ("api", "dnsmasq", "kubedns", "readiness", "metrics", "healthz", "nanny-metrics")

SERVICE = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {"ports": [{"name": "http", "port": 80}]},
}


def fetch(url: str, body: dict[str, Any] | None = None) -> bytes:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"} if data else {})
    with urllib.request.urlopen(request, timeout=10) as answer:
        return bytes(answer.read())


def wait_for(question: Callable[[], Any], what: str) -> Any:
    """Ask until the answer is true; what can't be asked yet is asked again."""
    end, last = time.monotonic() + DEADLINE, None
    while time.monotonic() < end:
        try:
            if last := question():
                return last
        except OSError as error:
            last = error
        time.sleep(0.2)
    pytest.fail(f"no {what} within {DEADLINE:g} s; last: {last}")


class AddOn:
    """The whole add-on on the local API, and clients that ask it all the time."""

    def __init__(self, directory: Path) -> None:
        self.ports = {name: free_port() for name in PORTS}
        self.config = directory / "config"
        self.config.mkdir()
        manifest = directory / "kubernetes.yaml"
        manifest.write_text(
            "apiVersion: v1\nkind: Service\nmetadata: {name: kubernetes, namespace: default}\n"
            "spec: {clusterIP: 10.96.0.1, ports: [{name: https, port: 443}]}\n"
        )
        self.log = (directory / "add-on.log").open("w+")
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-m", "kubedns.local", "up", f"--config-dir={self.config}"),
                f"--dnsmasq={DNSMASQ}",
                *(f"--{name}-port={port}" for name, port in self.ports.items()),
                str(manifest),
            ],
            stdout=self.log,
            stderr=self.log,
        )
        self.stopping = threading.Event()
        self.asking = threading.Thread(target=self._ask_all_the_time, daemon=True)

    def start(self) -> None:
        for name in ("kubedns", "dnsmasq"):
            self.wait_until(name, 200)
        self.asking.start()

    def stop(self) -> None:
        self.stopping.set()
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(30)
        finally:
            self.process.kill()
            self.log.close()

    def says(self, check: str) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(
                f"http://127.0.0.1:{self.ports['healthz']}/healthcheck/{check}", timeout=10
            ) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def wait_until(self, check: str, status: int) -> None:
        wait_for(lambda: self.says(check)[0] == status, f"{status} of {check}")

    def pid(self, word: str, port: str) -> int:
        """Return the process whose arguments hold a word and a port of ours."""
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                with contextlib.suppress(OSError):
                    arguments = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
                    if word in arguments and any(
                        argument.endswith(f"={self.ports[port]}") for argument in arguments
                    ):
                        return int(entry.name)
        pytest.fail(f"no process {word} with port {self.ports[port]}")

    def create_service(self, name: str) -> None:
        service = {**SERVICE, "metadata": {"name": name, "namespace": "default"}}
        fetch(f"http://127.0.0.1:{self.ports['api']}/api/v1/namespaces/default/services", service)

    def configure(self, key: str, text: str) -> None:
        temporary = self.config / f".{key}"
        temporary.write_text(text)
        temporary.rename(self.config / key)

    def send(self, port: str, name: str, qtype: str = "A") -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
            client.connect(("127.0.0.1", self.ports[port]))
            with contextlib.suppress(ConnectionRefusedError):
                client.send(dnslib.DNSRecord.question(name, qtype).pack())

    def _ask_all_the_time(self) -> None:
        turn = 0
        while not self.stopping.wait(0.1):
            turn += 1
            self.send("dnsmasq", "kubernetes.default.svc.cluster.local")
            self.send("dnsmasq", f"missing-{turn}.default.svc.cluster.local")
            self.send("kubedns", "1.0.96.10.in-addr.arpa", "PTR")
            self.send("kubedns", "kubernetes.default.svc.cluster.local", "MX")


class Prometheus:
    """A real Prometheus that scrapes every second, with our rules made impatient."""

    def __init__(self, directory: Path, addon: AddOn) -> None:
        rules = (MONITORING / "alerts.yaml").read_text()
        rules = re.sub(r"for: \d+m", "for: 1s", rules).replace("> 300", "> 20")
        (directory / "alerts.yaml").write_text(rules)
        targets = [f"127.0.0.1:{addon.ports[name]}" for name in ("metrics", "nanny-metrics", "healthz")]
        (directory / "prometheus.yml").write_text(
            yaml.safe_dump(
                {
                    "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
                    "rule_files": [str(directory / "alerts.yaml")],
                    "scrape_configs": [{"job_name": "kube-dns", "static_configs": [{"targets": targets}]}],
                }
            )
        )
        port = free_port()
        self.url = f"http://127.0.0.1:{port}/api/v1"
        self.log = (directory / "prometheus.log").open("w+")
        self.process = subprocess.Popen(
            [
                tool("prometheus:prometheus"),
                f"--config.file={directory / 'prometheus.yml'}",
                f"--storage.tsdb.path={directory / 'data'}",
                f"--web.listen-address=127.0.0.1:{port}",
            ],
            stdout=self.log,
            stderr=self.log,
        )

    def stop(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(30)
        finally:
            self.process.kill()
            self.log.close()

    def ask(self, path: str, **parameters: object) -> Any:
        query = urllib.parse.urlencode(parameters)
        return json.loads(fetch(f"{self.url}/{path}?{query}"))["data"]

    def values(self, expression: str) -> list[float]:
        """Return what an expression gave over the last 20 seconds, all series together, NaN left out."""
        now = time.time()
        data = self.ask("query_range", query=expression, start=now - 20, end=now, step=1)
        samples = [float(value) for series in data["result"] for _, value in series["values"]]
        return [sample for sample in samples if not math.isnan(sample)]

    def firing(self) -> set[str]:
        return {
            alert["labels"]["alertname"]
            for alert in self.ask("alerts")["alerts"]
            if alert["state"] == "firing"
        }

    def wait_for_alert(self, name: str) -> None:
        wait_for(lambda: name in self.firing(), f"alert {name}, but {self.firing()}")


@pytest.fixture(scope="module")
def addon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AddOn]:
    addon = AddOn(tmp_path_factory.mktemp("addon"))
    try:
        addon.start()
        yield addon
    finally:
        addon.stop()


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory, addon: AddOn) -> Iterator[Prometheus]:
    prometheus = Prometheus(tmp_path_factory.mktemp("prometheus"), addon)
    try:
        wait_for(
            lambda: (
                sum(prometheus.values("up")[-3:]) == 3 and prometheus.values("rate(kubedns_dnsmasq_hits[5s])")
            ),
            "three scraped targets",
        )
        addon.create_service("seen-by-the-watch")
        yield prometheus
    finally:
        prometheus.stop()


def test_every_series_of_the_contract_has_its_type(prometheus):
    missing: set[str] = set()

    def all_there() -> bool:
        nonlocal missing
        found = {entry["metric"]: entry["type"] for entry in prometheus.ask("targets/metadata")}
        missing = {f"{name} {kind}" for name, kind in SERIES.items() if found.get(name) != kind}
        return not missing

    with contextlib.suppress(pytest.fail.Exception):
        wait_for(all_there, "all series")
    assert missing == set()


def panels() -> list[Any]:
    dashboard = json.loads((MONITORING / "dashboard.json").read_text())
    return [
        pytest.param(panel, id=panel["title"].replace(" ", "-"))
        for panel in dashboard["panels"]
        if panel["type"] != "row"
    ]


@pytest.mark.parametrize("panel", panels())
def test_dashboard_panel_is_not_empty(prometheus, panel):
    def filled() -> list[float]:
        found: list[float] = []
        for target in panel["targets"]:
            expression = target["expr"].replace("$__rate_interval", "10s")
            found += prometheus.values(expression.replace("$job", "kube-dns").replace("$instance", ".*"))
        return found

    wait_for(filled, f"data in the panel {panel['title']}")


def test_no_alert_fires_while_all_is_well(prometheus):
    # The watch of a quiet cluster is older than the shortened limit.
    assert prometheus.firing() <= {"KubeDNSWatchStale"}


@pytest.mark.parametrize(
    ("word", "port", "stopped", "other"),
    [("kubedns", "kubedns", "kubedns", "dnsmasq"), (DNSMASQ, "dnsmasq", "dnsmasq", "kubedns")],
    ids=["kubedns", "dnsmasq"],
)
def test_stopped_server_fails_its_own_url_and_fires(prometheus, addon, word, port, stopped, other):
    pid = addon.pid(word, port)
    os.kill(pid, signal.SIGSTOP)
    begun = time.monotonic()
    try:
        addon.wait_until(stopped, 503)
        print(f"{stopped}: 503 after {time.monotonic() - begun:.1f} s")
        assert addon.says(other) == (200, "ok\n")
        prometheus.wait_for_alert("KubeDNSCheckFails")
    finally:
        os.kill(pid, signal.SIGCONT)
    begun = time.monotonic()
    addon.wait_until(stopped, 200)
    print(f"{stopped}: 200 after {time.monotonic() - begun:.1f} s")


def test_refused_configuration_fires(prometheus, addon):
    addon.configure("upstreamNameservers", '["127.0.0.1:0"]')
    prometheus.wait_for_alert("KubeDNSConfigRefused")
    (addon.config / "upstreamNameservers").unlink()


def test_restarts_fire(prometheus, addon):
    def restarts() -> float:
        return float(max(prometheus.values("sum(dnsmasq_nanny_restarts_total)")))

    def restarted() -> bool:
        return restarts() >= enough

    for turn in range(8):
        enough = restarts() + 1
        # Only the first upstream to come and the last to go restart dnsmasq.
        if turn % 2:
            (addon.config / "upstreamNameservers").unlink()
        else:
            addon.configure("upstreamNameservers", '["127.0.0.1:1"]')
        wait_for(restarted, "a restart of dnsmasq")
    prometheus.wait_for_alert("DnsmasqRestarting")


def test_dead_stub_server_fires_servfail_and_its_flood_the_ceiling(prometheus, addon):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.1", 0))
        dead = {"dead.test": ["127.0.0.1:1"], "silent.test": [f"127.0.0.1:{silent.getsockname()[1]}"]}
        addon.configure("stubDomains", json.dumps(dead))
        turn = 0

        def servfail() -> bool:
            nonlocal turn
            for _ in range(20):
                turn += 1
                addon.send("kubedns", f"n{turn}.dead.test")
            return "KubeDNSServfailShare" in prometheus.firing()

        wait_for(servfail, "alert KubeDNSServfailShare")

        def ceiling() -> bool:
            nonlocal turn
            for _ in range(100):
                turn += 1
                addon.send("dnsmasq", f"n{turn}.silent.test")
            return "DnsmasqConcurrencyCeiling" in prometheus.firing()

        wait_for(ceiling, "alert DnsmasqConcurrencyCeiling")


def test_dead_api_server_fires_and_fails_no_liveness_url(prometheus, addon):
    def stale() -> bool:
        firing = 'ALERTS{alertname="KubeDNSWatchStale",alertstate="firing",resource="services"}'
        return bool(prometheus.ask("query", query=firing)["result"])

    addon.create_service("heard-of")
    wait_for(lambda: not stale(), "watch that hears of changes")
    pid = addon.pid("api", "api")
    os.kill(pid, signal.SIGSTOP)
    try:
        wait_for(stale, "alert KubeDNSWatchStale for services")
        assert addon.says("kubedns") == (200, "ok\n")
        assert addon.says("dnsmasq") == (200, "ok\n")
    finally:
        os.kill(pid, signal.SIGCONT)
