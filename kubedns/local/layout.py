"""Which programs make up the add-on, where they listen, and how each is called.

In: options.  Out: ports that are free, command lines.

Source: the container arguments of the manifests, turned to loopback and unprivileged ports.
"""

import dataclasses
import shutil
import socket
import sys
from pathlib import Path
from typing import Final

from kubedns.local.failure import StartError
from kubedns.local.options import KUBEDNS_FIRST, Ports, UpOptions
from kubedns.local.processes import Program

HOST: Final = "127.0.0.1"
_REVERSE_ZONES: Final = ("in-addr.arpa", "ip6.arpa")
_SYSTEM_PATH: Final = "/usr/local/sbin:/usr/sbin:/sbin"
_DNS_PORTS: Final = frozenset({"dnsmasq", "kubedns"})


def find_dnsmasq(program: str) -> str:
    """Return the path of dnsmasq; raises StartError that says what to install."""
    found = shutil.which(program) or shutil.which(program, path=_SYSTEM_PATH)
    if found is None:
        raise StartError(
            f"{program} is not installed. On Debian or Ubuntu: sudo apt-get install dnsmasq-base "
            "(the program alone, no service); or name it with --dnsmasq=PROGRAM"
        )
    return found


def claim_ports(wanted: Ports) -> Ports:
    """Return the ports with a free one in place of each 0; raises StartError for one in use."""
    held: list[socket.socket] = []
    chosen: dict[str, int] = {}
    try:
        for name, port in dataclasses.asdict(wanted).items():
            flag = f"--{name.replace('_', '-')}-port"
            chosen[name] = _claim(port, flag, held, udp=name in _DNS_PORTS)
    finally:
        for one in held:
            one.close()
    return Ports(**chosen)


def _claim(port: int, flag: str, held: list[socket.socket], *, udp: bool) -> int:
    for kind in (socket.SOCK_STREAM, *((socket.SOCK_DGRAM,) if udp else ())):
        one = socket.socket(socket.AF_INET, kind)
        held.append(one)
        if kind == socket.SOCK_STREAM:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            one.bind((HOST, port))
        except OSError as error:
            family = "UDP" if kind == socket.SOCK_DGRAM else "TCP"
            raise StartError(
                f"{family} port {port} is in use ({error.strerror}); stop what listens there "
                f"(ss -lnp 'sport = :{port}' shows it) or choose another with {flag}"
            ) from error
        port = one.getsockname()[1]
    return port


def door(options: UpOptions, ports: Ports) -> int:
    """Return the port that clients ask."""
    return ports.kubedns if options.wiring == KUBEDNS_FIRST else ports.dnsmasq


def api_program(options: UpOptions, ports: Ports) -> Program:
    """Return the Kubernetes API, which the others need."""
    command = [
        sys.executable,
        "-m",
        "kubedns.local",
        "api",
        f"--port={ports.api}",
        f"--v={options.verbosity}",
    ]
    return Program("api", [*command, "--", *map(str, options.files)], {})


def server_programs(options: UpOptions, ports: Ports, config_dir: Path, dnsmasq: str) -> list[Program]:
    """Return the two that answer DNS."""
    return [_kubedns(options, ports, config_dir), _nanny(options, ports, config_dir, dnsmasq)]


def _kubedns(options: UpOptions, ports: Ports, config_dir: Path) -> Program:
    command = [
        *(sys.executable, "-m", "kubedns"),
        f"--kube-master-url=http://{HOST}:{ports.api}",
        f"--domain={options.domain}",
        f"--dns-bind-address={HOST}",
        f"--dns-port={ports.kubedns}",
        f"--healthz-port={ports.readiness}",
        f"--http-bind-address={HOST}",
        f"--config-dir={config_dir}",
        *((f"--cache-server={HOST}:{ports.dnsmasq}",) if options.wiring == KUBEDNS_FIRST else ()),
        "--negative-ttl=5",
        "--lame-duck=0s",
        f"--v={options.verbosity}",
    ]
    return Program("kubedns", command, {"PROMETHEUS_PORT": str(ports.metrics)})


def _nanny(options: UpOptions, ports: Ports, config_dir: Path, dnsmasq: str) -> Program:
    zones = (options.domain, *_REVERSE_ZONES)
    command = [
        *(sys.executable, "-m", "nanny"),
        f"-dnsmasqExec={dnsmasq}",
        "-restartDnsmasq=true",
        f"-configDir={config_dir}",
        f"-kubednsServer={HOST}:{ports.kubedns}",
        f"-metricsPort={ports.nanny_metrics}",
        f"-httpBindAddress={HOST}",
        "-lameDuck=0s",
        f"-v={options.verbosity}",
        *("--", "-k", "--cache-size=1000", "--log-facility=-", "--dns-loop-detect"),
        *("--conf-file=/dev/null", "--no-hosts", "--bind-interfaces"),
        f"--listen-address={HOST}",
        f"--port={ports.dnsmasq}",
        *(f"--server=/{zone}/{HOST}#{ports.kubedns}" for zone in zones),
    ]
    return Program("dnsmasq", command, {})


def health_program(options: UpOptions, ports: Ports) -> Program:
    """Return what watches over the two."""
    command = [
        *(sys.executable, "-m", "healthz"),
        f"--port={ports.healthz}",
        f"--http-bind-address={HOST}",
        f"--probe=kubedns,{HOST}:{ports.kubedns},version.bind,2,CH",
        f"--probe=dnsmasq,{HOST}:{ports.dnsmasq},version.bind,2,CH",
        f"--probe=cluster,{HOST}:{door(options, ports)},dns-version.{options.domain},2,TXT",
        f"--dnsmasq-addr={HOST}",
        f"--dnsmasq-port={ports.dnsmasq}",
        f"--kubedns-readiness=http://{HOST}:{ports.readiness}/readiness",
        f"--kubedns-status=http://{HOST}:{ports.readiness}/status",
        f"--nanny-status=http://{HOST}:{ports.nanny_metrics}/status",
        f"--v={options.verbosity}",
    ]
    return Program("healthz", command, {})
