"""The tree as JSON, in pieces of little work each.

Source: the original's TreeCache, whose JSON is kept.
"""

import json
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping
from heapq import merge
from typing import Final

from kubedns.dns.names import address_text, to_text
from kubedns.zone.treecache import Entries, Entry, Node

_SORTED_AT_ONCE: Final = 1000
"""Labels of a node that are sorted at a time, which takes a quarter of a millisecond."""
_json = json.JSONEncoder(separators=(",", ":")).encode


def dump(node: Node, ttl: int) -> Iterator[str]:
    """Yield the JSON of a tree in pieces of little work each, so that the caller can pause between them.

    `{"ChildNodes": {label: node}, "Entries": {label: record}}`, the two maps always, zero values
    left out; a record, or a list of them where a name holds several.  A piece may be empty.  What
    changes meanwhile is shown as it is when its turn comes, or not at all.
    """
    entries: Entries = {}
    children: Mapping[bytes, Node] = {}
    for entries, children in node.view_in_steps():  # noqa: B007  the last ones count
        yield ""
    yield '{"ChildNodes":{'
    separator = ""
    for label in (yield from _in_order(children)):
        if (child := children.get(label)) is not None:
            yield separator + _json(label.decode("latin-1")) + ":"
            yield from dump(child, ttl)
            separator = ","
    yield '},"Entries":{'
    separator = ""
    for label in (yield from _in_order(entries)):
        if records := entries.get(label):
            yield from _shown(separator, label, records, ttl)
            separator = ","
    yield "}}"


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


def _shown(separator: str, label: bytes, records: tuple[Entry, ...], ttl: int) -> Iterator[str]:
    """Yield the member of one name, in pieces of a record."""
    before = separator + _json(label.decode("latin-1")) + ":" + ("[" if len(records) > 1 else "")
    for host, port in records:
        text = address_text(host) if isinstance(host, bytes) else to_text(host)
        record = {"host": text, "port": port, "priority": 10, "weight": 10, "ttl": ttl}
        yield before + _json({key: value for key, value in record.items() if value})
        before = ","
    if len(records) > 1:
        yield "]"
