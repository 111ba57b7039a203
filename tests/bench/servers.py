"""The servers that are measured and compared, each on its one core and its own free port.

In: a Cluster and its files.  Out: running programs, by name.  NSD, Unbound and dnsmasq get the
same names as data of their own: the floor of what a server in C needs for these questions.
"""

import json
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import yaml

from kubedns.dns.names import pack_address
from kubedns.zone.recordlabel import record_label
from tests.bench.api import answer, ask
from tests.bench.cluster import Cluster, cluster_ip, pod_ip
from tests.bench.machine import OTHER_CORE, ROOT, SERVER_CORE, WITH_PRIORITY, BenchError, Program, answers
from tests.ports import free_port

_DOMAIN: Final = "cluster.local"
_SOA: Final = f"ns.dns.{_DOMAIN}. hostmaster.{_DOMAIN}. 1 28800 7200 604800 60"
READY_OUTSIDE: Final = "ready.outside.test"
"""A name that the server of `Bench.outside` answers."""
_DAEMONS: Final = {"dnsmasq": "/usr/sbin/dnsmasq", "nsd": "/usr/sbin/nsd", "unbound": "/usr/sbin/unbound"}


@dataclass(frozen=True, slots=True)
class Running:
    """A server and its DNS port."""

    program: Program
    port: int


@dataclass(frozen=True, slots=True)
class KubeDns:
    """A running kube-dns: its DNS port, and the URLs of its health and metrics ports."""

    program: Program
    port: int
    health: str
    metrics: str

    def is_ready(self) -> bool:
        """Whether /readiness says so."""
        try:
            with urllib.request.urlopen(f"{self.health}/readiness", timeout=2):
                return True
        except (urllib.error.URLError, OSError):
            return False


@dataclass(frozen=True, slots=True)
class ApiServer:
    """The local API, its URL, and the port where changes are asked for."""

    program: Program
    url: str
    control: int

    def expire(self) -> None:
        """Make all watches end with 410, so that everything is listed again."""
        with closing(ask(self.control, "expire")) as connection:
            answer(connection)

    @contextmanager
    def changing(self, rate: int, seconds: float, *, unseen: bool = False) -> Iterator[None]:
        """Have Services change during the context; raises BenchError when the changes fail."""
        which = " unseen" if unseen else ""
        with closing(ask(self.control, f"change {rate} {seconds}{which}")) as connection:
            time.sleep(0.5)
            yield
            made = answer(connection)
        if made < 0.95 * seconds * rate:
            raise BenchError(f"only {made} changes in {seconds:g} s: the API server has too little time")


class Bench:
    """A scratch directory and the programs that run in it; all end with the stack."""

    def __init__(self, stack: ExitStack, directory: Path, cluster: Cluster) -> None:
        self._stack = stack
        self._directory = directory
        self.cluster = cluster
        self.manifest = directory / "cluster.json"
        cluster.write_objects(self.manifest)
        self.questions = cluster.write_questions(directory)

    def start(
        self,
        name: str,
        command: list[str],
        cores: frozenset[int] = SERVER_CORE,
        environment: dict[str, str] | None = None,
    ) -> Program:
        """Start a program that lives until the end of the bench."""
        first = WITH_PRIORITY if cores == SERVER_CORE else ()
        program = Program([*first, *command], cores, self._directory / f"{name}.log", environment)
        return self._stack.enter_context(program)

    def _start_server(
        self, name: str, command: list[str], port: int, cores: frozenset[int] = SERVER_CORE
    ) -> Running:
        program = self.start(name, command, cores)
        program.wait_until(lambda: answers(port) or answers(port, READY_OUTSIDE), "it answered")
        return Running(program, port)

    def echo(self) -> Running:
        """Compile and start the C echo."""
        binary, port = self._directory / "echo", free_port()
        source = Path(__file__).with_name("echo.c")
        try:
            subprocess.run(["cc", "-O2", "-o", str(binary), str(source)], check=True)
        except (OSError, subprocess.CalledProcessError) as error:
            raise BenchError(
                f"cannot compile {source.name}: {error} (Debian: apt-get install gcc)"
            ) from error
        return self._start_server("echo", [str(binary), str(port)], port)

    def api(self) -> ApiServer:
        """Start the local API with the cluster's objects."""
        port, control = free_port(), free_port()
        command = [sys.executable, "-m", "tests.bench.api", str(port), str(control), str(self.manifest)]
        program = self.start("api", command, OTHER_CORE)
        program.wait_until(lambda: "serving" in program.log.read_text(), "it served")
        return ApiServer(program, f"http://127.0.0.1:{port}", control)

    def kube_dns(self, api: str, *flags: str, module: str = "kubedns") -> KubeDns:
        """Start kube-dns, or a module that runs it, on an API server; return at once, it is not ready yet."""
        port, health, metrics = free_port(), free_port(), free_port()
        command = [sys.executable, "-m", module, f"--kube-master-url={api}", f"--dns-port={port}"]
        command += [f"--healthz-port={health}", "--nameservers=127.0.0.1:9", "--negative-ttl=5", *flags]
        program = self.start(f"{module}-{port}", command, environment={"PROMETHEUS_PORT": str(metrics)})
        return KubeDns(program, port, f"http://127.0.0.1:{health}", f"http://127.0.0.1:{metrics}/metrics")

    def nsd(self) -> Running:
        """Start NSD with the cluster as a zone."""
        port, zone = free_port(), self._directory / "cluster.zone"
        zone.write_text(f"{_DOMAIN}. 3600 IN SOA {_SOA}\n" + "".join(f"{line}\n" for line in self._records()))
        return self._start_nsd("nsd", port, _DOMAIN, zone, SERVER_CORE)

    def _start_nsd(self, name: str, port: int, domain: str, zone: Path, cores: frozenset[int]) -> Running:
        config = self._write(
            f"{name}.conf",
            f"""
            server:
                ip-address: 127.0.0.1@{port}
                username: ""
                server-count: 1
                pidfile: "{self._directory}/{name}.pid"
                zonelistfile: "{self._directory}/{name}.list"
                xfrdfile: ""
                database: ""
                rrl-ratelimit: 0
                round-robin: yes
            remote-control:
                control-enable: no
            zone:
                name: {domain}
                zonefile: {zone}
            """,
        )
        return self._start_server(name, [_DAEMONS["nsd"], "-d", "-c", str(config)], port, cores)

    def unbound(self) -> Running:
        """Start Unbound with the cluster as local data."""
        port, data = free_port(), self._directory / "unbound.data"
        soa = f'local-data: "{_DOMAIN}. 3600 IN SOA {_SOA}"\n'
        data.write_text(
            f"local-zone: {_DOMAIN}. static\n{soa}"
            + "".join(f'local-data: "{line}"\n' for line in self._records())
        )
        config = self._write(
            "unbound.conf",
            f"""
            server:
                interface: 127.0.0.1
                port: {port}
                do-daemonize: no
                username: ""
                chroot: ""
                directory: "{self._directory}"
                pidfile: ""
                use-syslog: no
                num-threads: 1
                so-rcvbuf: 4m
                module-config: "iterator"
                include: "{data}"
            remote-control:
                control-enable: no
            """,
        )
        return self._start_server("unbound", [_DAEMONS["unbound"], "-d", "-c", str(config)], port)

    def dnsmasq(self) -> Running:
        """Start dnsmasq with the cluster's addresses as hosts and the manifest's arguments.

        SRV records are left out: dnsmasq looks for them one after the other.
        """
        port, hosts = free_port(), self._directory / "hosts"
        addresses = (line.split() for line in self._records() if " A " in line)
        hosts.write_text("".join(f"{fields[-1]} {fields[0].rstrip('.')}\n" for fields in addresses))
        own = [f"--local=/{_DOMAIN}/", f"--addn-hosts={hosts}", "--local-ttl=30"]
        arguments = [word for word in _manifest_arguments() if not word.startswith("--server=")]
        return self._start_server("dnsmasq", _dnsmasq_at(port, [*arguments, *own]), port)

    def pod_dnsmasq(self, kube_dns_port: int, port: int, upstream: int) -> Running:
        """Start dnsmasq below its nanny as the manifest does: beside a kube-dns, with an upstream on loopback."""
        config = self._directory / f"config-{port}"
        config.mkdir()
        (config / "upstreamNameservers").write_text(json.dumps([f"127.0.0.1:{upstream}"]))
        arguments = [word.replace("10053", str(kube_dns_port)) for word in _manifest_arguments()]
        command = [sys.executable, "-m", "nanny", "-restartDnsmasq=true", f"-configDir={config}"]
        command += ["-metricsPort=0", f"-kubednsServer=127.0.0.1:{kube_dns_port}", "-lameDuck=0s", "--"]
        return self._start_server(f"pod-{port}", [*command, *_dnsmasq_at(port, arguments)[1:]], port)

    def outside(self) -> Running:
        """Start NSD, on the core of what asks, with every name below outside.test at one address."""
        port, zone = free_port(), self._directory / "outside.zone"
        zone.write_text(
            "outside.test. 3600 IN SOA ns.outside.test. hostmaster.outside.test. 1 3600 600 86400 60\n"
            "outside.test. 3600 IN NS ns.outside.test.\n"
            "*.outside.test. 3600 IN A 192.0.2.1\n"
        )
        return self._start_nsd("outside", port, "outside.test", zone, OTHER_CORE)

    def _write(self, name: str, text: str) -> Path:
        path = self._directory / name
        path.write_text("\n".join(line.strip() for line in text.splitlines()) + "\n")
        return path

    def _records(self) -> Iterator[str]:
        """Yield the cluster's records in the form of a zone file."""
        cluster = self.cluster
        for number in range(cluster.services):
            name = cluster.name(number)
            if number < cluster.portals:
                yield f"{name}. 30 IN A {cluster_ip(number)}"
                label = record_label(pack_address(cluster_ip(number))).decode()
                yield f"{label}.{name}. 30 IN A {cluster_ip(number)}"
                for port, inner in (("http", 80), ("grpc", 9090)):
                    yield f"_{port}._tcp.{name}. 30 IN SRV 10 100 {inner} {name}."
                continue
            for index in range(cluster.endpoints):
                pod = f"svc-{number}-{index}.{name}"
                address = pod_ip(number * cluster.endpoints + index)
                yield f"{name}. 30 IN A {address}"
                yield f"{pod}. 30 IN A {address}"
                for port, inner in (("http", 8080), ("grpc", 9090)):
                    yield f"_{port}._tcp.{name}. 30 IN SRV 10 {100 // cluster.endpoints} {inner} {pod}."


def _manifest_arguments() -> list[str]:
    """Return what the manifest gives to dnsmasq."""
    manifest = yaml.safe_load((ROOT / "deploy/base/deployment.yaml").read_text())
    containers = manifest["spec"]["template"]["spec"]["containers"]
    words = next(container["args"] for container in containers if container["name"] == "dnsmasq")
    return [word.replace("$(CLUSTER_DOMAIN)", _DOMAIN) for word in words[words.index("--") + 1 :]]


def _dnsmasq_at(port: int, arguments: list[str]) -> list[str]:
    where = [f"--port={port}", "--listen-address=127.0.0.1", "--bind-interfaces"]
    alone = [
        "--conf-file=/dev/null",
        "--no-resolv",
        "--no-hosts",
        "--pid-file=",
        "--user=root",
        "--group=root",
    ]
    return [_DAEMONS["dnsmasq"], *arguments, *where, *alone]


def fetch(url: str) -> bytes:
    """Return a page; raises OSError."""
    with urllib.request.urlopen(url, timeout=30) as response:
        body: bytes = response.read()
    return body
