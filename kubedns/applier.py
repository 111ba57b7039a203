"""Applies the effective settings to forwarder and zone, and looks up what they need.

In: a Config, as often as it changes.  Out: the forwarder's upstreams, the zone's federations.
Servers given by name are looked up each period; zone and region of the cluster once, when a
federation first needs them.
"""

import asyncio
from contextlib import suppress

from kubedns.cluster.nodes import find_topology
from kubedns.cluster.session import Api
from kubedns.dns.names import parse_domain, to_text
from kubedns.objects import Topology
from kubedns.shared.config import Config
from kubedns.shared.report import UpstreamReport
from kubedns.shared.tasks import cancel, spawn
from kubedns.upstream.forward import Forwarder
from kubedns.upstream.stubservers import StubDomains, StubServers, has_names, only_addresses
from kubedns.zone.clusterzone import ClusterZone


class SettingsApplier:
    """Applies settings; `period` is in seconds, between look-ups of servers given by name."""

    def __init__(
        self, zone: ClusterZone, forwarder: Forwarder, stub_servers: StubServers, api: Api, period: float
    ) -> None:
        self._zone = zone
        self._forwarder = forwarder
        self._stub_servers = stub_servers
        self._api = api
        self._period = period
        self._effective = Config()
        self._stub_domains: StubDomains = {}
        self._resolved: StubDomains = {}
        self._changed = asyncio.Event()
        self._topology: Topology | None = None
        self._search: asyncio.Task[None] | None = None
        self._lookups: asyncio.Task[None] | None = None

    def apply(self, effective: Config) -> None:
        """Put settings into force; servers given by name follow as soon as they are looked up."""
        self._effective = effective
        self._stub_domains = {
            parse_domain(name, underscores=True): servers for name, servers in effective.stub_domains.items()
        }
        self._configure(only_addresses(self._stub_domains))
        self._zone.configure_federations(effective.federations, self._topology)
        if effective.federations and self._search is None:
            self._search = spawn(self._find_topology(), name="topology")
        if has_names(self._stub_domains) and self._lookups is None:
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
            for domain, servers in self._stub_domains.items()
            for server in servers
            if server.host in self._stub_servers.missing
        ]

    async def stop(self) -> None:
        """End the look-ups."""
        await cancel(self._search, self._lookups)

    def _configure(self, resolved: StubDomains) -> None:
        self._resolved = resolved
        self._forwarder.configure(self._effective.upstream_nameservers, resolved)

    async def _look_up(self) -> None:
        while True:
            self._changed.clear()
            stub_domains = self._stub_domains
            found = await self._stub_servers.with_addresses(stub_domains)
            if stub_domains is self._stub_domains and found != self._resolved:
                self._configure(found)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), self._period)

    async def _find_topology(self) -> None:
        self._topology = await find_topology(self._api)
        self._zone.configure_federations(self._effective.federations, self._topology)
