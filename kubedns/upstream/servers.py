"""The upstream name servers: which of them a name goes to, and which of them answer these days.

In: addresses from configuration, names, and the fate of questions.  Out: servers in the order to
ask them.  The longest stub domain that a name is in decides (the original asks stub domains in no
order); other names go to the name servers.

A server that fails, by silence or by ICMP, goes last for 10 s.  After that one question tries it
in its old place, while the others still leave it last until that question has been answered.
"""

import logging
import socket
from collections.abc import Iterable, Mapping, Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any, Final

from kubedns.dns.names import Labels, to_text
from kubedns.shared.servers import ServerAddress
from kubedns.telemetry.upstreams import UpstreamTraffic
from kubedns.upstream.streams import IdleStreams

PENALTY_SECONDS: Final = 10.0
FEWEST_LABELS: Final = 2
"""`Ndots` of the original: shorter names go to no name server."""

_QUIET_SECONDS: Final = 60.0
"""Between two log lines about the failure of one server, which may lose every tenth question."""

RECURSIVE: Final = "recursive"
STUB: Final = "stub"

_log = logging.getLogger(__name__)

Endpoint = tuple[str, int]
"""IP address and port of an own listener; the address may be `0.0.0.0` or `::`."""


class Upstream:
    """One server; `family` and `sockaddr` are what its sockets connect with, `streams` idle connections.

    `under_way` counts the questions that go to it first; `traffic` is what the metrics show.
    """

    __slots__ = (
        "_failing",
        "_last_until",
        "_logged",
        "_quiet_until",
        "family",
        "server",
        "sockaddr",
        "streams",
        "traffic",
        "under_way",
    )

    def __init__(self, server: ServerAddress) -> None:
        """Raise ValueError for a host that is no address, or whose zone id names no interface."""
        try:
            info = socket.getaddrinfo(
                server.host, server.port, type=socket.SOCK_DGRAM, flags=socket.AI_NUMERICHOST
            )
        except OSError as error:
            raise ValueError(f"{server.host} is no address that can be asked: {error.strerror}") from error
        self.server = server
        self.family = info[0][0]
        self.sockaddr: tuple[Any, ...] = info[0][4]
        self.streams = IdleStreams()
        self.traffic = UpstreamTraffic()
        self.under_way = 0
        self._failing = False
        self._last_until = 0.0
        self._logged = False
        self._quiet_until = 0.0

    @property
    def is_failing(self) -> bool:
        """Whether it did not answer the last time."""
        return self._failing

    def is_last(self, now: float) -> bool:
        """Whether the other servers are to be asked before this one."""
        return self._failing and now < self._last_until

    def try_again(self, now: float) -> None:
        """Take note that a question goes to it first; one that was failing stays last for others."""
        if self._failing:
            self._last_until = now + PENALTY_SECONDS

    def failed(self, reason: str, now: float) -> None:
        """Take note that it did not answer."""
        if not self._failing and now >= self._quiet_until:
            self._logged = True
            self._quiet_until = now + _QUIET_SECONDS
            _log.warning("upstream %s fails: %s", self.server, reason)
        self._failing = True
        self._last_until = now + PENALTY_SECONDS

    def answered(self) -> None:
        """Take note that it sent a reply, whatever the reply says."""
        if self._failing and self._logged:
            self._logged = False
            _log.info("upstream %s answers again", self.server)
        self._failing = False


def in_order(upstreams: Sequence[Upstream], now: float) -> list[Upstream]:
    """Return the servers in the order to ask them: as configured, those that fail last."""
    order = sorted(upstreams, key=lambda upstream: upstream.is_last(now))
    if order:
        order[0].try_again(now)
    return order


class Routes:
    """Which servers a name goes to; immutable, replaced as a whole by a new configuration."""

    def __init__(
        self,
        nameservers: Sequence[Upstream] = (),
        stub_domains: Mapping[Labels, Sequence[Upstream]] | None = None,
    ) -> None:
        self._nameservers = nameservers
        self._stub_domains = stub_domains or {}
        self._deepest = max(map(len, self._stub_domains), default=0)

    def route(self, labels: Labels) -> tuple[str, Sequence[Upstream]]:
        """Return RECURSIVE or STUB, and the servers for a name; none where it is not forwarded.

        A stub domain none of whose servers can be asked keeps its names to itself.
        """
        for first in range(max(0, len(labels) - self._deepest), len(labels)):
            servers = self._stub_domains.get(labels[first:])
            if servers is not None:
                return STUB, servers
        return RECURSIVE, self._nameservers if len(labels) >= FEWEST_LABELS else ()

    def targets(self) -> list[tuple[ServerAddress, str]]:
        """Return each server with the domain that it is asked for, `.` for all other names."""
        groups = {".": self._nameservers} | {
            to_text(domain).removesuffix("."): servers for domain, servers in self._stub_domains.items()
        }
        return [(upstream.server, domain) for domain, servers in groups.items() for upstream in servers]


def make_upstreams(
    servers: Iterable[ServerAddress],
    own: Iterable[Endpoint],
    known: dict[ServerAddress, Upstream],
    where: str,
) -> tuple[Upstream, ...]:
    """Return the servers that can be asked, each once and in order, warning of those left out.

    `own` are the listeners of this program, which would ask itself; `known` holds the Upstream of
    each server that is already in use and takes the new ones; `where` names the setting.
    """
    upstreams: dict[Upstream, None] = {}
    for server in servers:
        if any(is_same(server, endpoint) for endpoint in own):
            _log.warning("%s: %s is left out, it is this server itself", where, server)
            continue
        try:
            upstream = known.get(server) or Upstream(server)
        except ValueError as error:
            _log.warning("%s: %s is left out: %s", where, server, error)
            continue
        upstreams[known.setdefault(server, upstream)] = None
    return tuple(upstreams)


def stub_setting(domain: Labels) -> str:
    """Return how log lines name the servers of a stub domain."""
    return f"stub domain {to_text(domain)}"


def is_same(server: ServerAddress, own: Endpoint) -> bool:
    """Whether a server is a listener of this program."""
    if server.port != own[1] or not server.is_ip:
        return False
    address, listener = _plain(server.host), _plain(own[0])
    if not listener.is_unspecified:
        return address == listener
    takes = address.version == listener.version or listener.version == 6
    return takes and (address.is_loopback or _is_local(server))


def _plain(host: str) -> IPv4Address | IPv6Address:
    address = ip_address(host)
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address


def _is_local(server: ServerAddress) -> bool:
    """Whether an address is one of this host: the kernel then takes it as the source too."""
    try:
        upstream = Upstream(server)
        with socket.socket(upstream.family, socket.SOCK_DGRAM) as probe:
            probe.connect(upstream.sockaddr)
            return bool(_plain(probe.getsockname()[0]) == _plain(server.host))
    except (OSError, ValueError):
        return False
