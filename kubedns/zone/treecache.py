"""The tree that holds the cluster's records: namespaces, and the names of their Services.

In: the names of Services, set and removed by key.  Out: records by name, with wildcards or without.
A Service that is replaced takes with it everything that was packed from its names.
Source: the original's TreeCache, whose wildcard rules are kept.
"""

from collections.abc import Callable, Iterator

from kubedns.backend import Found
from kubedns.dns.names import Labels, to_wire
from kubedns.objects import Key
from kubedns.zone.servicenames import WILDCARD, ExternalNames, ServiceNames


def index(service: bytes, namespace: bytes) -> bytes:
    """Return the key of a Service's names: its labels in wire form, without a root."""
    return to_wire((service, namespace))[:-1]


class TreeCache:
    """The names below `svc`; `subtrees` has those of each Service by `index`."""

    def __init__(self) -> None:
        self.subtrees: dict[bytes, ServiceNames] = {}
        self.namespaces: dict[bytes, dict[bytes, ServiceNames]] = {}

    def set(self, key: Key, names: ServiceNames | None) -> None:
        """Swap in the names of a Service; None removes them, and the namespace with the last of them."""
        namespace, service = key[0].encode(), key[1].encode()
        if names is not None:
            self.subtrees[index(service, namespace)] = names
            self.namespaces.setdefault(namespace, {})[service] = names
        elif self.subtrees.pop(index(service, namespace), None) is not None:
            services = self.namespaces[namespace]
            del services[service]
            if not services:
                del self.namespaces[namespace]

    def named(self, namespace: bytes, service: bytes) -> ServiceNames | None:
        """Return the names of a Service, None where it has none."""
        return self.subtrees.get(index(service, namespace))

    def get(self, below: Labels) -> Found | tuple[()] | None:
        """Return what is at a name, by its labels before the domain's, `svc` or anything else last."""
        if below[-1] != b"svc":
            return None
        if len(below) > 2:
            names = self.named(below[-2], below[-3])
            return None if names is None else names.find(below[:-3])
        exists = below[0] in self.namespaces if len(below) == 2 else bool(self.namespaces)
        return () if exists else None

    def match(self, below: Labels, look: Callable[[int], None]) -> list[Found]:
        """Return what is at a name with wildcards; see `backend.Backend` for `look`.

        `*` stands for every name that does not begin with `_`; as the first label it means the
        records right below the rest: in a namespace those are ExternalNames, in a Service all.
        """
        if below[-1] not in (b"svc", WILDCARD) or len(below) < 3:
            return []
        found: list[Found] = []
        for names in self._services(below, look):
            records = names.match(below[:-3])
            if records:
                found.append(records)
        return found

    def _services(self, below: Labels, look: Callable[[int], None]) -> Iterator[ServiceNames]:
        service, namespace = below[-3], below[-2]
        wanted = (
            list(self.namespaces.values()) if namespace == WILDCARD else [self.namespaces.get(namespace, {})]
        )
        look(len(wanted) + (sum(map(len, wanted)) if service == WILDCARD else 0))
        for services in wanted:
            look(0)
            if service != WILDCARD:
                if (names := services.get(service)) is not None:
                    yield names
                continue
            for names in services.values():
                look(0)
                if len(below) > 3 or isinstance(names, ExternalNames):
                    yield names
