"""The tree as JSON, in pieces of little work each.

Source: the original's TreeCache, whose JSON is kept.
"""

import json
from collections.abc import Collection, Generator, Iterable, Iterator
from heapq import merge
from typing import Final

from kubedns.backend import Alias
from kubedns.dns.names import Labels, address_text, to_text
from kubedns.zone.records import Addresses, Ports
from kubedns.zone.servicenames import ExternalNames, ServiceNames
from kubedns.zone.treecache import TreeCache

_STEP: Final = 64
"""Records that are looked at between two pieces."""
_SORTED_AT_ONCE: Final = 1000
"""Labels of a node that are sorted at a time, which takes a quarter of a millisecond."""
_json = json.JSONEncoder(separators=(",", ":")).encode
Host = bytes | Labels
Entries = dict[bytes, dict[tuple[Host, int], None]]
"""Records, an address or a name and a port, by their own labels."""


def dump(tree: TreeCache, domain: Labels, ttl: int) -> Iterator[str]:
    """Yield the JSON of a tree in pieces of little work each, so that the caller can pause between them.

    `{"ChildNodes": {label: node}, "Entries": {label: record}}`, the two maps always, zero values
    left out; a record, or a list of them where a name holds several.  A piece may be empty.  What
    changes meanwhile is shown as it is when its turn comes, or not at all.
    """
    yield "".join(f'{{"ChildNodes":{{{_label(label)}:' for label in (*reversed(domain), b"svc"))
    yield '{"ChildNodes":{'
    before = ""
    for namespace in (yield from _in_order(tree.namespaces)):
        if (services := tree.namespaces.get(namespace)) is not None:
            yield before + _label(namespace) + ":"
            yield from _namespace(services, ttl)
            before = ","
    yield '},"Entries":{}}' + '},"Entries":{}}' * (len(domain) + 1)


def _namespace(services: dict[bytes, ServiceNames], ttl: int) -> Iterator[str]:
    yield '{"ChildNodes":{'
    before = ""
    aliases: Entries = {}
    for label in (yield from _in_order(services)):
        names = services.get(label)
        if isinstance(names, ExternalNames):
            own = names.own()
            aliases[label] = {
                ((own.target if isinstance(own, Alias) else own.endpoints[0].addresses[0]), 0): None
            }
        elif names is not None:
            yield before + _label(label) + ":"
            yield from _service(names, ttl)
            before = ","
    yield "}," + '"Entries":{'
    yield from _shown(aliases, ttl)
    yield "}}"


def _service(names: ServiceNames, ttl: int) -> Iterator[str]:
    yield '{"ChildNodes":{'
    ports: dict[bytes, list[bytes]] = {}
    for protocol, port in names.ports():
        ports.setdefault(protocol, []).append(port)
    before = ""
    for protocol in sorted(ports):
        yield before + _label(protocol) + ':{"ChildNodes":{'
        before = ""
        for port in sorted(ports[protocol]):
            yield before + _label(port) + ':{"ChildNodes":{},"Entries":{'
            records = names.port(protocol, port)
            assert records is not None
            yield from _shown((yield from _entries(records)), ttl)
            yield "}}"
            before = ","
        yield '},"Entries":{}}'
        before = ","
    yield '},"Entries":{'
    own = names.own()
    assert isinstance(own, Addresses)
    yield from _shown((yield from _entries(own)), ttl)
    yield "}}"


def _entries(records: Addresses | Ports) -> Generator[str, None, Entries]:
    """Return records by label, after an empty piece for each step."""
    found: Entries = {}
    for number, (label, host, port) in enumerate(records.entries(), 1):
        found.setdefault(label, {})[host, port] = None
        if number % _STEP == 0:
            yield ""
    return found


def _in_order(labels: Collection[bytes]) -> Generator[str, None, Iterable[bytes]]:
    """Return labels in order; where they are many, after an empty piece for each part that was sorted."""
    if len(labels) <= _SORTED_AT_ONCE:
        return sorted(labels)
    unsorted = list(labels)
    parts = []
    for first in range(0, len(unsorted), _SORTED_AT_ONCE):
        parts.append(sorted(unsorted[first : first + _SORTED_AT_ONCE]))
        yield ""
    return merge(*parts)


def _shown(entries: Entries, ttl: int) -> Iterator[str]:
    """Yield the members of a map of entries, in pieces of a record."""
    separator = ""
    for label in (yield from _in_order(entries)):
        records = entries[label]
        before = separator + _label(label) + ":" + ("[" if len(records) > 1 else "")
        for host, port in records:
            text = address_text(host) if isinstance(host, bytes) else to_text(host)
            record = {"host": text, "port": port, "priority": 10, "weight": 10, "ttl": ttl}
            yield before + _json({key: value for key, value in record.items() if value})
            before = ","
        if len(records) > 1:
            yield "]"
        separator = ","


def _label(label: bytes) -> str:
    return _json(label.decode("latin-1"))
