"""The settings in force -> forwarder and zone, with what must be looked up for them first.

In: an `InForce`, as often as it changes.  Out: the forwarder's upstreams, the zone's federations.
Servers given by name are looked up each period; zone and region of the cluster once, when a
federation first needs them.
"""

import asyncio
from contextlib import suppress

from kubedns.cluster.nodes import find_topology
from kubedns.cluster.session import Api
from kubedns.config.settings import InForce
from kubedns.dns.names import to_text
from kubedns.objects import Topology
from kubedns.shared.report import UpstreamReport
from kubedns.shared.tasks import cancel, spawn
from kubedns.upstream.forward import Forwarder
from kubedns.upstream.stubservers import StubDomains, StubServers, has_names, only_addresses
from kubedns.zone.clusterzone import ClusterZone


class Steering:
    """Applies settings; `period` is in seconds, between look-ups of servers given by name."""

    def __init__(
        self, zone: ClusterZone, forwarder: Forwarder, stub_servers: StubServers, api: Api, period: float
    ) -> None:
        self._zone = zone
        self._forwarder = forwarder
        self._stub_servers = stub_servers
        self._api = api
        self._period = period
        self._in_force = InForce()
        self._stub_domains: StubDomains = {}
        self._changed = asyncio.Event()
        self._topology: Topology | None = None
        self._search: asyncio.Task[None] | None = None
        self._lookups: asyncio.Task[None] | None = None

    def apply(self, in_force: InForce) -> None:
        """Put settings into force; servers given by name follow as soon as they are looked up."""
        self._in_force = in_force
        self._configure(only_addresses(in_force.stub_domains))
        self._zone.configure_federations(in_force.federations, self._topology)
        if in_force.federations and self._search is None:
            self._search = spawn(self._find_topology(), name="topology")
        if has_names(in_force.stub_domains) and self._lookups is None:
            self._lookups = spawn(self._look_up(), name="stub servers")
        self._changed.set()

    def unresolved(self) -> list[UpstreamReport]:
        """Return the servers of stub domains that are left out because their name has no address."""
        return [
            UpstreamReport(
                str(server),
                to_text(domain).removesuffix("."),
                up=False,
                reason=f"{server.host} does not resolve",
            )
            for domain, servers in self._in_force.stub_domains.items()
            for server in servers
            if server.host in self._stub_servers.missing
        ]

    async def stop(self) -> None:
        """End the look-ups."""
        await cancel(self._search, self._lookups)

    def _configure(self, stub_domains: StubDomains) -> None:
        self._stub_domains = stub_domains
        self._forwarder.configure(self._in_force.nameservers, stub_domains)

    async def _look_up(self) -> None:
        while True:
            self._changed.clear()
            in_force = self._in_force
            found = await self._stub_servers.with_addresses(in_force.stub_domains)
            if in_force is self._in_force and found != self._stub_domains:
                self._configure(found)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), self._period)

    async def _find_topology(self) -> None:
        self._topology = await find_topology(self._api)
        self._zone.configure_federations(self._in_force.federations, self._topology)
