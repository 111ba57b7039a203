"""The records of one name, as `backend.Records`: addresses, ports, and where both come from."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from kubedns.dns.names import Labels
from kubedns.objects import Endpoint
from kubedns.zone.recordlabel import record_label

Find = Callable[[bytes], Sequence[Endpoint]]
"""Finds the endpoints with one label."""


def distinct(endpoints: Iterable[Endpoint], octets: int) -> list[bytes]:
    """Return the distinct addresses of one length."""
    found = dict.fromkeys([address for it in endpoints for address in it.addresses])
    return [address for address in found if len(address) == octets]


def label_of(endpoint: Endpoint) -> bytes:
    """Return the label of an endpoint with one address."""
    return endpoint.hostname.encode() or record_label(endpoint.addresses[0])


def one_of_each(endpoints: Sequence[Endpoint]) -> Sequence[Endpoint]:
    """Return one endpoint for each label."""
    named = {it.hostname or it.addresses: it for it in endpoints}
    return endpoints if len(named) == len(endpoints) else list(named.values())


class Addresses:
    """Addresses at or right below `parent`, each an endpoint of one address; `find` knows all of the parent."""

    __slots__ = ("_by_octets", "_targets", "endpoints", "find", "parent")

    def __init__(self, parent: Labels, endpoints: Sequence[Endpoint], find: Find) -> None:
        self.parent = parent
        self.endpoints = endpoints
        self.find = find
        self._by_octets: dict[int, list[bytes]] = {}
        self._targets: Sequence[Endpoint] | None = None

    def one_of_each(self) -> Sequence[Endpoint]:
        """Return one endpoint for each label, worked out once."""
        if self._targets is None:
            self._targets = one_of_each(self.endpoints)
        return self._targets

    @property
    def distinct(self) -> int:
        """How many labels there are."""
        return len(self.one_of_each())

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.endpoints)

    def addresses(self, octets: int) -> Sequence[bytes]:
        """Return the distinct addresses of one length, worked out once."""
        found = self._by_octets.get(octets)
        if found is None:
            found = self._by_octets[octets] = distinct(self.endpoints, octets)
        return found

    def targets(self, start: int, most: int) -> list[tuple[bytes, int]]:
        """Return distinct labels from one on, with port 0."""
        return [(label_of(it), 0) for it in self.one_of_each()[start : start + most]]

    def glue(self, label: bytes, octets: int) -> Sequence[bytes]:
        """Return the addresses of one label."""
        return distinct(self.find(label), octets)

    def entries(self) -> Iterator[tuple[bytes, bytes | Labels, int]]:
        """Yield label, address and port as the original's tree holds them."""
        for it in self.endpoints:
            yield label_of(it), it.addresses[0], 0


class Unnamed:
    """Addresses to which no SRV record leads."""

    __slots__ = ("_addresses",)
    parent: Labels = ()
    count = distinct = 0

    def __init__(self, addresses: Sequence[bytes]) -> None:
        self._addresses = addresses

    def addresses(self, octets: int) -> Sequence[bytes]:
        """Return those of one length."""
        return [address for address in self._addresses if len(address) == octets]

    def targets(self, start: int, most: int) -> list[tuple[bytes, int]]:
        """Return none."""
        return []

    def glue(self, label: bytes, octets: int) -> Sequence[bytes]:
        """Return none."""
        return ()


class Ports:
    """The records of one named port: port numbers, each with the endpoints that have it.

    `whole` are the addresses of the Service where every endpoint of it has the port; with `portal`
    the target is the Service itself.
    """

    __slots__ = ("_groups", "_sets", "_targets", "_whole", "count", "portal")

    def __init__(
        self, whole: Addresses, groups: list[tuple[int, Sequence[Endpoint]]], *, portal: bool
    ) -> None:
        self._whole = whole
        self._groups = groups
        self._sets: dict[int, frozenset[Endpoint]] = {}
        self.portal = portal
        self.count = sum(len(endpoints) for _, endpoints in groups)
        self._targets: list[tuple[int, Sequence[Endpoint]]] | None = None

    def _by_number(self) -> list[tuple[int, Sequence[Endpoint]]]:
        """Return one endpoint for each target of each number, worked out once."""
        if self._targets is None:
            self._targets = [(number, self._one_of_each(endpoints)) for number, endpoints in self._groups]
        return self._targets

    @property
    def distinct(self) -> int:
        """How many distinct targets there are."""
        return sum(len(targets) for _, targets in self._by_number())

    def _one_of_each(self, endpoints: Sequence[Endpoint]) -> Sequence[Endpoint]:
        if self.portal:
            return endpoints[:1]
        return self._whole.one_of_each() if endpoints is self._whole.endpoints else one_of_each(endpoints)

    @property
    def parent(self) -> Labels:
        """The name of the Service."""
        return self._whole.parent

    def addresses(self, octets: int) -> Sequence[bytes]:
        """Return the addresses of the targets."""
        if self.portal or all(len(endpoints) == self._whole.count for _, endpoints in self._groups):
            return self._whole.addresses(octets)
        labels = dict.fromkeys(label for label, _ in self.targets(0, self.distinct))
        return list(dict.fromkeys([it for label in labels for it in self._whole.glue(label, octets)]))

    def targets(self, start: int, most: int) -> list[tuple[bytes, int]]:
        """Return distinct labels and ports from one on."""
        found: list[tuple[bytes, int]] = []
        for number, targets in self._by_number():
            if start < len(targets) and len(found) < most:
                some = targets[start : start + most - len(found)]
                found += [(b"" if self.portal else label_of(it), number) for it in some]
            start = max(start - len(targets), 0)
        return found

    def glue(self, label: bytes, octets: int) -> Sequence[bytes]:
        """Return the addresses of one target."""
        return self._whole.glue(label, octets) if label else self._whole.addresses(octets)

    def entry(self, label: bytes) -> "Ports | None":
        """Return the records whose own label is this one; None where there are none."""
        groups: list[tuple[int, Sequence[Endpoint]]] = []
        if known := self._whole.find(label):
            for number, endpoints in self._groups:
                if found := self._among(number, endpoints, known):
                    groups.append((number, found))
        return Ports(self._whole, groups, portal=self.portal) if groups else None

    def _among(
        self, number: int, endpoints: Sequence[Endpoint], known: Sequence[Endpoint]
    ) -> Sequence[Endpoint]:
        if len(endpoints) == self._whole.count:
            return known
        if number not in self._sets:
            self._sets[number] = frozenset(endpoints)
        return [it for it in known if it in self._sets[number]]

    def entries(self) -> Iterator[tuple[bytes, bytes | Labels, int]]:
        """Yield label, target and port as the original's tree holds them."""
        for number, endpoints in self._groups:
            for it in endpoints:
                label = label_of(it)
                yield label, self.parent if self.portal else (label, *self.parent), number
