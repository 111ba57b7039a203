"""The objects of the local API and their versions; no HTTP, no clock, no Kubernetes rules.

In: objects already shaped, defaulted and checked.  Out: entries, snapshots at a version, and
through `history` the changes.  The invariant: one counter numbers every write of any kind, as
etcd's revision does, and entries never change once stored.
"""

from bisect import bisect_left, insort
from collections.abc import Callable
from typing import Any

from kubedns.local.api.history import Change, Entry, History
from kubedns.local.api.kinds import RESOURCES, Resource
from kubedns.local.api.selectors import EVERYTHING, Selector
from kubedns.local.api.wire import dump


def key_of(namespace: str, name: str) -> str:
    """Return the key of an object, ordered as etcd orders them; cluster-wide ones have no namespace."""
    return f"/{namespace}/{name}" if namespace else f"/{name}"


def entry_of(value: dict[str, Any], version: int) -> Entry:
    """Return the entry of an object with a version, which is written into its metadata."""
    metadata = value["metadata"]
    metadata["resourceVersion"] = str(version)
    namespace, name = metadata.get("namespace", ""), metadata["name"]
    return Entry(key_of(namespace, name), namespace, name, version, metadata.get("labels", {}), dump(value))


class Store:
    """Holds the objects of all kinds.

    `first_version` is the version of the empty store; `history` is how many changes are kept
    at least for watches and consistent pages.
    """

    def __init__(self, first_version: int = 1, history: int = 4_000) -> None:
        self.version = first_version
        self.history = History(history, first_version)
        self._entries: dict[Resource, dict[str, Entry]] = {resource: {} for resource in RESOURCES}
        self._keys: dict[Resource, list[str]] = {resource: [] for resource in RESOURCES}
        self._listeners: dict[object, Callable[[], None]] = {}

    def get(self, resource: Resource, namespace: str, name: str) -> Entry | None:
        """Return an object, or None."""
        return self._entries[resource].get(key_of(namespace, name))

    def count(self, resource: Resource) -> int:
        """Return how many objects of a kind there are."""
        return len(self._keys[resource])

    def entries(
        self, resource: Resource, namespace: str = "", selector: Selector = EVERYTHING, start: str = ""
    ) -> list[Entry]:
        """Return the objects of a kind in the order of their keys, from the key `start` on.

        An empty namespace means all of them.
        """
        keys, entries = self._keys[resource], self._entries[resource]
        prefix = f"/{namespace}/" if namespace else ""
        low = bisect_left(keys, max(start, prefix))
        high = bisect_left(keys, f"/{namespace}0") if namespace else len(keys)
        found = [entries[key] for key in keys[low:high]]
        return [entry for entry in found if entry.matches(selector)] if selector else found

    def entries_at(self, resource: Resource, version: int, namespace: str, start: str) -> list[Entry]:
        """Return what `entries` would have returned at an earlier version; raises ExpiredError."""
        changes = self.history.read(self.history.cursor_after(version), self.history.end)
        then = {entry.key: entry for entry in self.entries(resource, namespace, start=start)}
        prefix = f"/{namespace}/" if namespace else ""
        for change in reversed(changes):
            key = change.key
            if change.resource is not resource or key < start or not key.startswith(prefix):
                continue
            if change.before is None:
                then.pop(key, None)
            else:
                then[key] = change.before
        return [then[key] for key in sorted(then)]

    def write(self, resource: Resource, value: dict[str, Any], version: int | None = None) -> Entry:
        """Create or replace an object and return its entry.

        It gets the next version; or, when `version` is given, keeps that one, as objects do
        that are loaded from a dump.
        """
        self.version = max(self.version + 1, version or 0)
        entry = entry_of(value, self.version if version is None else version)
        before = self._entries[resource].get(entry.key)
        if before is None:
            insort(self._keys[resource], entry.key)
        self._entries[resource][entry.key] = entry
        self._changed(Change(self.version, resource, before, entry))
        return entry

    def remove(self, resource: Resource, entry: Entry) -> None:
        """Delete an object that is stored."""
        self.version += 1
        del self._entries[resource][entry.key]
        keys = self._keys[resource]
        del keys[bisect_left(keys, entry.key)]
        self._changed(Change(self.version, resource, entry, None))

    def restart_history(self, version: int | None = None) -> None:
        """Forget all changes; a given version becomes the current one.

        Versions seen by watchers so far expire when objects changed after them.
        """
        self.history.compact(self.version)
        if version is not None:
            self.version = version
            self.history = History(self.history.limit, version)

    def subscribe(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Have a function called after every change; the returned one ends that."""
        token = object()
        self._listeners[token] = listener

        def unsubscribe() -> None:
            self._listeners.pop(token, None)

        return unsubscribe

    def _changed(self, change: Change) -> None:
        self.history.add(change)
        for listener in list(self._listeners.values()):
            listener()
