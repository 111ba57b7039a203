"""What changed, in order: a bounded log that all watchers read from.

In: changes of the store.  Out: the changes after a resource version, as event lines built
once for all watchers.  The invariant: every change above `floor` is in the log; a reader that
asks for less, or falls behind what is kept, is told so (`ExpiredError`) and never skips one.
"""

from bisect import bisect_right
from dataclasses import dataclass, field

import orjson

from kubedns.local.api.kinds import Resource
from kubedns.local.api.selectors import Selector
from kubedns.local.api.wire import event_line


class ExpiredError(Exception):
    """The history after a version is no longer kept; `floor` is the oldest version that works."""

    def __init__(self, floor: int) -> None:
        super().__init__(f"history up to version {floor} is gone")
        self.floor = floor


@dataclass(frozen=True, slots=True)
class Entry:
    """One version of one object; `item` is its JSON without kind and apiVersion."""

    key: str
    namespace: str
    name: str
    version: int
    labels: dict[str, str]
    item: bytes

    def matches(self, selector: Selector) -> bool:
        """Whether a selector means this object."""
        return selector.matches(self.labels, self.namespace, self.name)


@dataclass(slots=True)
class Change:
    """A step of one object: created (`before` is None), modified, or deleted (`after` is None)."""

    version: int
    resource: Resource
    before: Entry | None
    after: Entry | None
    _lines: dict[str, bytes] = field(default_factory=dict, repr=False)

    @property
    def key(self) -> str:
        """Key of the object."""
        entry = self.after or self.before
        return entry.key if entry else ""

    def line(self, selector: Selector) -> bytes | None:
        """Return the event as a watcher with this selector sees it, or None when it does not.

        An object that begins to match is ADDED, one that no longer does is DELETED.
        """
        seen = self.before is not None and self.before.matches(selector)
        stays = self.after is not None and self.after.matches(selector)
        if not seen and not stays:
            return None
        kind = "MODIFIED" if seen and stays else "ADDED" if stays else "DELETED"
        if kind not in self._lines:
            item = self.after.item if stays and self.after else self._last_item()
            self._lines[kind] = event_line(kind, self.resource, item)
        return self._lines[kind]

    def _last_item(self) -> bytes:
        """The last state before it was gone, which carries the version of its going."""
        value = orjson.loads(self.before.item if self.before else b"{}")
        value["metadata"]["resourceVersion"] = str(self.version)
        return orjson.dumps(value)


class History:
    """The log.  A cursor counts changes since the beginning; it is the reader's own."""

    def __init__(self, limit: int, floor: int) -> None:
        self.limit = limit
        self._changes: list[Change] = []
        self._versions: list[int] = []
        self._dropped = 0
        self.floor = floor

    @property
    def end(self) -> int:
        """The cursor after the newest change."""
        return self._dropped + len(self._changes)

    def add(self, change: Change) -> None:
        """Append a change; forget the oldest when twice the limit is kept."""
        self._changes.append(change)
        self._versions.append(change.version)
        if len(self._changes) >= 2 * self.limit:
            self._drop(len(self._changes) - self.limit)

    def compact(self, version: int) -> None:
        """Forget everything up to a version."""
        self._drop(bisect_right(self._versions, version))
        self.floor = max(self.floor, version)

    def _drop(self, count: int) -> None:
        if count:
            self.floor = self._versions[count - 1]
            del self._changes[:count], self._versions[:count]
            self._dropped += count

    def cursor_after(self, version: int) -> int:
        """Return the cursor of the first change above a version; raises ExpiredError."""
        if version < self.floor:
            raise ExpiredError(self.floor)
        return self._dropped + bisect_right(self._versions, version)

    def read(self, cursor: int, most: int) -> list[Change]:
        """Return at most `most` changes from a cursor on; raises ExpiredError."""
        if cursor < self._dropped:
            raise ExpiredError(self.floor)
        start = cursor - self._dropped
        return self._changes[start : start + most]
