"""The ready endpoints of a headless Service, looked up in the ways that questions need.

In: its slices.  Out: records.  Each index is made when the first question needs it, so that no
question makes all of them: for 10,000 endpoints each takes 1 to 4 ms, and the first look for a hashed
label, which needs three of them, 6.6 ms.
"""

from collections.abc import Iterable, Sequence
from itertools import chain
from operator import itemgetter
from typing import Generic, TypeVar

from kubedns.dns.names import Labels
from kubedns.objects import Endpoint, EndpointSlice
from kubedns.zone.recordlabel import address_hashes, hash_of_label
from kubedns.zone.records import Addresses, Ports

Slices = tuple[EndpointSlice, ...]
_ADDRESSES = itemgetter(0)
_K = TypeVar("_K", str, int)


def members(slices: Iterable[EndpointSlice]) -> list[Endpoint]:
    """Return the distinct endpoints of slices, with one address each."""
    found = dict.fromkeys(chain.from_iterable([slice_.endpoints for slice_ in slices]))
    if set(map(len, map(_ADDRESSES, found))) <= {1}:
        return list(found)
    return list(dict.fromkeys(Endpoint((address,), it.hostname) for it in found for address in it.addresses))


class _Index(Generic[_K]):
    """Endpoints by a key, which nearly always one has alone."""

    __slots__ = ("_one", "_several")

    def __init__(self, keys: Sequence[_K], endpoints: Sequence[Endpoint]) -> None:
        self._one: dict[_K, Endpoint] = dict(zip(keys, endpoints, strict=True))
        self._several: dict[_K, list[Endpoint]] = {}
        if len(self._one) < len(keys):
            for key, endpoint in zip(keys, endpoints, strict=True):
                self._several.setdefault(key, []).append(endpoint)

    def get(self, key: _K) -> Sequence[Endpoint]:
        """Return the endpoints with a key."""
        if key not in self._one:
            return ()
        return self._several[key] if self._several else (self._one[key],)


class Endpoints:
    """Indexes over the slices of one Service, whose name is `parent`."""

    __slots__ = ("_by_hash", "_by_hostname", "_members", "_ports", "_slices", "parent")

    def __init__(self, parent: Labels, slices: Slices) -> None:
        self.parent = parent
        self._slices = tuple(slice_ for slice_ in slices if slice_.endpoints)
        self._members: Addresses | None = None
        self._by_hostname: _Index[str] | None = None
        self._by_hash: _Index[int] | None = None
        self._ports: dict[tuple[bytes, bytes], Ports | None] | None = None

    def all(self) -> Addresses:
        """Return the records of the Service's own name."""
        if self._members is None:
            self._members = Addresses(self.parent, members(self._slices), self.at)
        return self._members

    def at(self, label: bytes) -> Sequence[Endpoint]:
        """Return the endpoints with one label."""
        if self._by_hostname is None:
            named = [it for it in self.all().endpoints if it[1]]
            self._by_hostname = _Index([it[1] for it in named], named)
        found = self._by_hostname.get(label.decode("latin-1"))
        spelt = hash_of_label(label)
        return found if spelt is None else [*found, *self._hashed(spelt)]

    def _hashed(self, spelt: int) -> Sequence[Endpoint]:
        if self._by_hash is None:
            unnamed = [it for it in self.all().endpoints if not it[1]]
            self._by_hash = _Index(address_hashes([it[0][0] for it in unnamed]), unnamed)
        return self._by_hash.get(spelt)

    def ports(self) -> dict[tuple[bytes, bytes], Ports | None]:
        """Return protocol and name of the ports, as labels; None stands for records not yet looked for."""
        if self._ports is None:
            known = dict.fromkeys(chain.from_iterable([slice_.ports for slice_ in self._slices]))
            self._ports = {(b"_" + it.protocol.encode(), b"_" + it.name.encode()): None for it in known}
        return self._ports

    def port(self, protocol: bytes, name: bytes) -> Ports | None:
        """Return the records of a named port, None where no slice has it."""
        ports = self.ports()
        if (protocol, name) not in ports:
            return None
        found = ports[protocol, name]
        if found is None:
            found = self._ports_of(protocol[1:].decode(), name[1:].decode())
            ports[protocol, name] = found
        return found

    def _ports_of(self, protocol: str, name: str) -> Ports:
        """Return the records of one port, whose number each slice has its own of."""
        by_number: dict[int, list[EndpointSlice]] = {}
        for slice_ in self._slices:
            for number in {it.number for it in slice_.ports if (it.name, it.protocol) == (name, protocol)}:
                by_number.setdefault(number, []).append(slice_)
        whole = self.all()
        groups = [
            (number, whole.endpoints if len(slices) == len(self._slices) else members(slices))
            for number, slices in by_number.items()
        ]
        return Ports(whole, groups, portal=False)
