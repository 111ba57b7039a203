"""A node's network: a bridge, a namespace for each pod, the Service address in front of them.

In: names and addresses.  Out: namespaces that containers join by path; a DNAT like kube-proxy's.
All of it goes with `close`.  Needs root, iproute2 and nftables.
"""

import os
import subprocess
from collections.abc import Iterable
from pathlib import Path

from tests.tools import tool


class MissingToolError(Exception):
    """The machine lacks what the pod-level test needs; the text says how to get it."""


def require_tools() -> None:
    """Fail unless every program is there; raise MissingToolError unless we are root."""
    tool("conntrack:conntrack")
    tool("dig:bind9-dnsutils")
    tool("ip:iproute2")
    tool("nft:nftables")
    tool("openssl:openssl")
    tool("podman:podman")
    tool("sysctl:procps")
    if os.geteuid() != 0:
        raise MissingToolError("run as root: network namespaces and memory limits need it")


def run(*words: str, stdin: str | None = None) -> str:
    """Run a program to its end and return its output; raises with its own words when it fails."""
    done = subprocess.run(words, input=stdin, capture_output=True, text=True, timeout=30, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(words)}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


class Node:
    """One bridge `198.18.N.1/24` (RFC 2544's range: nobody's network) and what hangs on it."""

    def __init__(self) -> None:
        taken = {path.name for path in Path("/sys/class/net").iterdir()}
        self.number = next(it for it in range(1, 255) if f"kdns{it}" not in taken)
        self.name = f"kdns{self.number}"
        self.address = f"198.18.{self.number}.1"
        self._namespaces: list[str] = []
        self._balanced: set[tuple[str, int]] = set()
        # With an address of its own: otherwise it takes the lowest of its ports', which changes as
        # pods come and go, and pods send to the one they know for a while.
        mac = f"02:00:c6:12:{self.number:02x}:01"
        run("ip", "link", "add", self.name, "address", mac, "type", "bridge")
        run("ip", "address", "add", f"{self.address}/24", "dev", self.name)
        run("ip", "link", "set", self.name, "up")
        run("nft", "add", "table", "ip", self.name)

    def add_namespace(self, host: int, sysctls: dict[str, str]) -> tuple[Path, str]:
        """Make the namespace of a pod; return its path and the pod's address, `198.18.N.HOST`."""
        name = f"{self.name}-{host}"
        address = f"198.18.{self.number}.{host}"
        run("ip", "netns", "add", name)
        self._namespaces.append(name)
        inside = ("ip", "-n", name)
        run("ip", "link", "add", f"{self.name}v{host}", "type", "veth", "peer", "name", "eth0", "netns", name)
        run("ip", "link", "set", f"{self.name}v{host}", "master", self.name, "up")
        run(*inside, "link", "set", "lo", "up")
        run(*inside, "address", "add", f"{address}/24", "dev", "eth0")
        run(*inside, "link", "set", "eth0", "up")
        run(*inside, "route", "add", "default", "via", self.address)
        for key, value in sysctls.items():
            run("ip", "netns", "exec", name, "sysctl", "-q", "-w", f"{key}={value}")
        return Path("/run/netns", name), address

    def remove_namespace(self, path: Path) -> None:
        """Remove a namespace when its containers are gone."""
        run("ip", "netns", "delete", path.name)
        self._namespaces.remove(path.name)

    def redirect_resolver(self, port: int) -> None:
        """Make port 53 of the node's own address, as pods see it, reach `port`."""
        rules = "\n".join(
            f'add rule ip {self.name} resolver iifname "{self.name}" ip daddr {self.address} '
            f"{protocol} dport 53 redirect to :{port}"
            for protocol in ("udp", "tcp")
        )
        chain = f"add chain ip {self.name} resolver {{ type nat hook prerouting priority dstnat; }}"
        run("nft", "-f", "-", stdin=f"{chain}\n{rules}\n")

    def balance(self, service: str, pods: Iterable[str], port: int) -> None:
        """Spread new flows to `service`:53 over `port` of the pods at random, as kube-proxy does.

        TCP connections stay where they are.  UDP flows to a pod, or a port, that is no longer among
        them are forgotten, as kube-proxy does: a client that uses the same port again would meet nobody.
        """
        endpoints = {(address, port) for address in pods}
        choice = ", ".join(f"{number} : {address}" for number, (address, _) in enumerate(sorted(endpoints)))
        target = f"dnat to numgen random mod {len(endpoints)} map {{ {choice} }} : {port}"
        chain = f"ip {self.name} service"
        run(
            "nft",
            "-f",
            "-",
            stdin=f"add chain {chain} {{ type nat hook output priority -100; }}\n"
            f"flush chain {chain}\n"
            f"add rule {chain} ip daddr {service} udp dport 53 {target}\n"
            f"add rule {chain} ip daddr {service} tcp dport 53 {target}\n",
        )
        if not self._balanced:
            _forget_flows(service)
        for address, gone in self._balanced - endpoints:
            _forget_flows(service, "--reply-src", address, "--reply-port-src", str(gone))
        self._balanced = endpoints

    def close(self) -> None:
        """Remove everything."""
        for name in self._namespaces:
            run("ip", "netns", "delete", name)
        self._namespaces.clear()
        run("nft", "delete", "table", "ip", self.name)
        run("ip", "link", "delete", self.name)


def _forget_flows(service: str, *which: str) -> None:
    """Delete the UDP flows to a Service's address, all or those that the tool's options name.

    The tool gives up at a flow that expires under its hands, so it is asked until nothing is left.
    """
    command = ["conntrack", "-D", "-p", "udp", "--orig-dst", service, *which]
    told = ""
    for _ in range(20):
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
        told = done.stderr.strip()
        if " 0 flow entries" in told:
            return
    raise RuntimeError(f"flows to {service} cannot be deleted: {told}")
