"""Servers of stub domains that are given by name: their addresses, looked up again and again.

In: stub domains as configured.  Out: the same with addresses for names, a name that does not
resolve left out with one warning.  A name in the cluster domain is answered from the zone itself,
any other by the upstreams.  Source: the original resolves such names once, at its start.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping

from kubedns.backend import Alias, Backend, BackendError
from kubedns.dns import numbers
from kubedns.dns.names import Labels, address_text, parse_domain
from kubedns.dns.records import Resolution
from kubedns.shared.hosts import Hosts
from kubedns.shared.servers import ServerAddress

_log = logging.getLogger(__name__)
StubDomains = Mapping[Labels, tuple[ServerAddress, ...]]


class StubServers:
    """Looks the names up: those of the domain in `backend`, others by `resolve`, which asks upstreams.

    `missing` are the names that have no address; `hosts` the names of that key, which go before others.
    """

    def __init__(self, backend: Backend, resolve: Callable[[Labels, int], Awaitable[Resolution]]) -> None:
        self._backend = backend
        self._resolve = resolve
        self.missing: set[str] = set()
        self.hosts = Hosts()

    async def with_addresses(self, stub_domains: StubDomains) -> StubDomains:
        """Return the stub domains with every server given by address, in order, each once."""
        servers = [server for group in stub_domains.values() for server in group]
        names = sorted({server.host for server in servers if not server.is_ip})
        found = dict(zip(names, await asyncio.gather(*map(self._addresses, names)), strict=True))
        self._warn({name for name, addresses in found.items() if not addresses})
        return {
            domain: tuple(
                dict.fromkeys(
                    ServerAddress(host, server.port)
                    for server in group
                    for host in ([server.host] if server.is_ip else found[server.host])
                )
            )
            for domain, group in stub_domains.items()
        }

    async def _addresses(self, name: str) -> list[str]:
        labels = parse_domain(name, underscores=True)
        domain = self._backend.domain
        if (found := self.hosts.addresses.get(labels)) is not None:
            packed = list(found)
        elif labels[-len(domain) :] == domain:
            packed = self._own(labels)
        else:
            said = [await self._resolve(labels, qtype) for qtype in (numbers.A, numbers.AAAA)]
            packed = [
                record.rdata
                for each in said
                for record in each.records
                if record.rtype in (numbers.A, numbers.AAAA)
            ]
        return sorted(address_text(address) for address in packed if len(address) in (4, 16))

    def _own(self, labels: Labels) -> list[bytes]:
        try:
            found = self._backend.records(labels) or ()
        except BackendError:
            return []
        records = [it for it in found if not isinstance(it, Alias)]
        return [address for it in records for octets in (4, 16) for address in it.addresses(octets)]

    def _warn(self, missing: set[str]) -> None:
        for name in sorted(missing - self.missing):
            _log.warning("stubDomains: server %s does not resolve and is left out for now", name)
        for name in sorted(self.missing - missing):
            _log.info("stubDomains: server %s resolves again, or is not used any more", name)
        self.missing = missing


def has_names(stub_domains: StubDomains) -> bool:
    """Whether any server is given by name."""
    return any(not server.is_ip for group in stub_domains.values() for server in group)


def only_addresses(stub_domains: StubDomains) -> StubDomains:
    """Return the stub domains without the servers given by name."""
    return {
        domain: tuple(server for server in group if server.is_ip) for domain, group in stub_domains.items()
    }
