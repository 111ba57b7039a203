"""The tree of reversed labels that holds the cluster's records.

In: nodes made from Services, set and removed by path.  Out: nodes and entries by exact path or
with wildcards.  A node that is replaced takes with it everything that was packed from its names.
There are no references from a node to its parent, so a replaced node is gone at once.

Source: the original's TreeCache, whose wildcard rules are kept.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, Final

from kubedns.backend import ServiceRecord
from kubedns.dns.names import Labels

WILDCARD = b"*"
MOST_NODES: Final = 1000
"""Nodes that one wildcard lookup looks at, so that no question holds up the others."""


class TooManyNamesError(Exception):
    """A wildcard stands for more names than one lookup goes through."""


Entry = tuple[bytes | Labels, int]
"""One record of the tree: an address (packed) or a name, and the port of an SRV record or 0.

No class of its own, as those of a Service are all made anew at each change.
"""
Entries = Mapping[bytes, tuple[Entry, ...]]
"""Records by the last label of their own name."""
Made = tuple[Entries, "Mapping[bytes, Node]"]
"""The entries and children of a node."""
Maker = Callable[[], Iterator[Made]]
"""Makes the entries and children of a node in short steps: yields them as far as they are, the whole ones last.

Called again, it makes them again.
"""
_NONE: Mapping[bytes, Any] = {}


class Node:
    """A name, its children, and the entries one label below it.

    A `maker` makes entries and children when somebody first looks: most names of a large
    cluster are never asked for.
    """

    __slots__ = ("_children", "_entries", "_maker", "packed")

    def __init__(
        self,
        entries: Entries = _NONE,
        children: "Mapping[bytes, Node]" = _NONE,
        maker: "Maker | None" = None,
    ) -> None:
        self._entries = entries
        self._children = children
        self._maker = maker
        self.packed: dict[bytes, Any] | None = None

    @property
    def entries(self) -> Entries:
        """Records by the last label of their own name."""
        if self._maker is not None:
            self._grow(self._maker)
        return self._entries

    @property
    def children(self) -> "Mapping[bytes, Node]":
        """The nodes one label below."""
        if self._maker is not None:
            self._grow(self._maker)
        return self._children

    def _grow(self, maker: Maker) -> None:
        self._entries, self._children = _whole(maker)
        self._maker = None

    def is_made(self) -> bool:
        """Whether somebody has looked at its entries or children already."""
        return self._maker is None

    @property
    def is_alias(self) -> bool:
        """Whether nothing is known of it but that it exists, as of an ExternalName."""
        return self._maker is None and not self._entries and not self._children

    def has(self, path: Labels) -> bool:
        """Whether a name exists at this path below the node; the empty path is the node itself."""
        if not path:
            return True
        node = self
        for label in path[:-1]:
            child = node.children.get(label)
            if child is None:
                return False
            node = child
        if node._maker is not None:
            node._grow(node._maker)
        return path[-1] in node._entries or path[-1] in node._children

    def addresses(self, label: bytes, octets: int) -> tuple[bytes, ...] | None:
        """Return the distinct addresses of one length at the node (an empty label) or one label below it.

        None where there are no entries, or others.
        """
        entries = self.entries
        if not label:
            found = list(chain.from_iterable(entries.values()))
        else:
            found = [] if label in self._children else list(entries.get(label, ()))
        hosts = dict.fromkeys([host for host, port in found if isinstance(host, bytes) and not port])
        return tuple([host for host in hosts if len(host) == octets]) if hosts else None

    def targets(self, path: Labels) -> list[tuple[Labels, int]] | None:
        """Return target and port of each SRV record at a path below the node, None where there is none."""
        node: Node = self
        for label in path:
            if label not in node.children:
                return None
            node = node.children[label]
        entries = chain.from_iterable(node.entries.values())
        return [(host, port) for host, port in entries if isinstance(host, tuple) and port] or None

    def view(self) -> Made:
        """Return entries and children without keeping what a maker makes: for a look at everything."""
        return (self._entries, self._children) if self._maker is None else _whole(self._maker)

    def view_in_steps(self) -> Iterator[Made]:
        """Yield what `view` returns as a maker does."""
        return iter(((self._entries, self._children),)) if self._maker is None else self._maker()


def _whole(maker: Maker) -> Made:
    return deque(maker(), maxlen=1).pop()


class Branch(Node):
    """An inner node, whose children and entries the tree sets one by one."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__()
        self._entries: dict[bytes, tuple[Entry, ...]] = {}
        self._children: dict[bytes, Node] = {}

    def set_child(self, label: bytes, node: Node | None) -> None:
        """Swap in a sub-tree; None removes it."""
        if node is None:
            self._children.pop(label, None)
        else:
            self._children[label] = node

    def set_entry(self, label: bytes, records: tuple[Entry, ...]) -> None:
        """Replace the records of a name; none removes it."""
        if records:
            self._entries[label] = records
        else:
            self._entries.pop(label, None)

    def is_empty(self) -> bool:
        """Whether no name is left at or below this node."""
        return not self._children and not self._entries


class TreeCache:
    """The tree from the root down; the inner nodes on the path `kept` stay when they are empty."""

    def __init__(self, kept: Labels = ()) -> None:
        self.root = Branch()
        self._kept = kept
        self.branch(kept)

    def branch(self, path: Labels) -> Branch:
        """Return the inner node at a path, made where it is missing."""
        node = self.root
        for label in path:
            child = node._children.get(label)
            if not isinstance(child, Branch):
                child = Branch()
                node.set_child(label, child)
            node = child
        return node

    def set_subtree(self, path: Labels, node: Node | None) -> None:
        """Swap in the sub-tree at a path; None removes it, with every inner node that it leaves empty."""
        if node is not None:
            self.branch(path[:-1]).set_child(path[-1], node)
        else:
            self._discard(path, lambda parent: parent.set_child(path[-1], None))

    def set_entry(self, path: Labels, records: tuple[Entry, ...]) -> None:
        """Replace the records of the name at a path; none removes it, as `set_subtree` does."""
        if records:
            self.branch(path[:-1]).set_entry(path[-1], records)
        else:
            self._discard(path, lambda parent: parent.set_entry(path[-1], ()))

    def _discard(self, path: Labels, remove: Callable[[Branch], None]) -> None:
        trail = [self.root]
        for label in path[:-1]:
            child = trail[-1].children.get(label)
            if not isinstance(child, Branch):
                return
            trail.append(child)
        remove(trail[-1])
        for depth in range(len(trail) - 1, 0, -1):
            if not trail[depth].is_empty() or path[:depth] == self._kept[:depth]:
                break
            trail[depth - 1].set_child(path[depth - 1], None)

    def get(self, path: Labels) -> list[ServiceRecord] | None:
        """Return the records at exactly this path; None when the name does not exist.

        The records at a node are its entries, each found at its own name; an inner node has none.
        """
        node: Node = self.root
        for depth, label in enumerate(path, 1):
            child = node.children.get(label)
            if child is None:
                records = node.entries.get(label) if depth == len(path) else None
                return None if records is None else _records(path[::-1], records)
            node = child
        if isinstance(node, Branch) and node.is_empty():
            return None
        return _records_at(path[::-1], node)

    def match(self, path: Labels) -> list[ServiceRecord] | None:
        """Return the records at a path with wildcards; None when there are none.

        `*` stands for every child that does not begin with `_`; as the last label it means the
        entries of the node before it.  Raises TooManyNamesError where that takes a look at more
        than MOST_NODES nodes.
        """
        label = path[-1]
        found: list[ServiceRecord] = []
        for at, node in self._matching(path[:-1]):
            if label == WILDCARD:
                found += _records_below(at, node)
            elif label in node.entries:
                found += _records((label, *at), node.entries[label])
            elif (child := node.children.get(label)) is not None:
                found += _records_at((label, *at), child)
        return found or None

    def _matching(self, path: Labels) -> list[tuple[Labels, Node]]:
        """Return the nodes at a path with wildcards, each with its labels."""
        nodes: list[tuple[Labels, Node]] = [((), self.root)]
        looked = 0
        for label in path:
            below: list[tuple[Labels, Node]] = []
            for at, node in nodes:
                looked += len(node.children) if label == WILDCARD else 1
                if looked > MOST_NODES:
                    raise TooManyNamesError(f"a wildcard stands for more than {MOST_NODES} names")
                if label == WILDCARD:
                    below += [((it, *at), child) for it, child in node.children.items() if it[:1] != b"_"]
                elif (child := node.children.get(label)) is not None:
                    below.append(((label, *at), child))
            nodes = below
        return nodes


def _records_at(at: Labels, node: Node) -> list[ServiceRecord]:
    """Return the records of a node's own name; the entries of an inner node are those of names below it."""
    return [] if isinstance(node, Branch) else _records_below(at, node)


def _records_below(at: Labels, node: Node) -> list[ServiceRecord]:
    return [
        ServiceRecord(host, port, (label, *at))
        for label, entries in node.view()[0].items()
        for host, port in entries
    ]


def _records(owner: Labels, entries: Iterable[Entry]) -> list[ServiceRecord]:
    return [ServiceRecord(host, port, owner) for host, port in entries]
