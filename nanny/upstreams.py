"""Which name servers dnsmasq asks: its arguments, and resolv.conf where they name none.

In: the arguments of the running dnsmasq.  Out: each server with the domain that it is asked for.
Source: dnsmasq(8): `--server`, `--no-resolv`, `--resolv-file`; resolv.conf(5).
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from kubedns.shared.servers import ServerAddress, parse_server
from kubedns.shared.upstreamcheck import Target
from nanny.arguments import given_servers

ALL_NAMES: Final = "."
_RESOLV_CONF: Final = "/etc/resolv.conf"
_LARGEST_FILE: Final = 64 * 1024


def upstream_servers(arguments: Sequence[str], kubedns: ServerAddress) -> list[Target]:
    """Return the servers other than kubedns, given by address, with `.` or their domain."""
    targets: list[Target] = []
    for domains, server in given_servers(arguments):
        if server != kubedns and server.is_ip:
            targets += [(server, domain or ALL_NAMES) for domain in domains or (ALL_NAMES,)]
    if not {"--no-resolv", "-R"} & set(arguments):
        targets += [(server, ALL_NAMES) for server in _resolv_conf(_file(arguments))]
    return targets


def _file(arguments: Sequence[str]) -> Path:
    words = iter(arguments)
    path = _RESOLV_CONF
    for word in words:
        if word in {"--resolv-file", "-r"}:
            path = next(words, path)
        elif word.startswith("--resolv-file="):
            path = word.partition("=")[2]
    return Path(path)


def _resolv_conf(path: Path) -> list[ServerAddress]:
    """Return the name servers of a file, as dnsmasq reads it; none of one that cannot be read."""
    try:
        with path.open("rb") as file:
            text = file.read(_LARGEST_FILE).decode(errors="replace")
    except OSError:
        return []
    servers = []
    for line in text.splitlines():
        words = line.split()
        if len(words) >= 2 and words[0] == "nameserver":
            try:
                servers.append(parse_server(words[1], hostnames=False))
            except ValueError:
                continue  # dnsmasq says so itself
    return servers
