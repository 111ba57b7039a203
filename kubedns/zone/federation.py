"""Names of a federation: the same Service in this cluster, or in another one.  Pure.

`s.ns.fed.svc.D` names the local Service `s.ns` where it exists, else
`s.ns.fed.svc.<zone>.<region>.<federation's domain>`, which the federation's own DNS serves.
Source: the original's federation queries.  Differs: a local cluster-IP Service counts without a
look at its endpoints; the name of an endpoint in a namespace that is called as a federation stays
that endpoint's.
"""

from collections.abc import Mapping

from kubedns.dns import numbers
from kubedns.dns.names import Labels, parse_domain, to_wire
from kubedns.objects import Topology


class Federations:
    """The configured federations, and where in the world this cluster is."""

    def __init__(self, domains: Mapping[str, str] | None = None, topology: Topology | None = None) -> None:
        self._domains = {
            name.lower().encode(): parse_domain(domain) for name, domain in (domains or {}).items()
        }
        self.topology = topology

    def __bool__(self) -> bool:
        return bool(self._domains)

    def covers(self, name: Labels) -> bool:
        """Whether the labels before the cluster domain are a question to a federation."""
        return len(name) == 4 and name[3] == b"svc" and name[2] in self._domains and b"*" not in name

    def remote(self, name: Labels) -> Labels | None:
        """Return the name elsewhere of a name that `covers`.

        None while zone or region are unknown, or where the name would be longer than names can be.
        """
        if self.topology is None:
            return None
        place = f"{self.topology.zone}.{self.topology.region}".lower().encode().split(b".")
        remote = (*name, *place, *self._domains[name[2]])
        return remote if len(to_wire(remote)) <= numbers.LONGEST_NAME else None
