"""What one reflector has delivered, and how a list compares with it; pure.

In: keys, resource versions and objects, from events and lists.
Out: whether something is news; the Changes that make the holdings follow.
Invariant: an object never goes back to an older version but by a list that replaces
everything.  Versions are compared as numbers (Kubernetes guarantees their order within a
resource); 0 stands for one that is no number, is never stale and never equal.
A version stands for one content, or a relist would have to look into every object.  So what an etcd
restored from a backup shows at the very number that is held is taken for what is held, until the
object changes; and what it shows at an older one is taken over by a list that replaces, not by an Audit.
"""

from typing import Any, Generic, TypeVar

from kubedns.cluster.delivery import Change
from kubedns.objects import Key

T = TypeVar("T")


class Holdings(Generic[T]):
    """Objects by key, with the version each was delivered at."""

    def __init__(self) -> None:
        self._objects: dict[Key, tuple[int, T]] = {}
        self._graves: dict[Key, int] = {}
        self._graves_until = 0
        self.audited = False

    def __len__(self) -> int:
        return len(self._objects)

    def version(self, key: Key) -> int | None:
        """Return the version an object is held at, None when it is not held."""
        held = self._objects.get(key)
        return None if held is None else held[0]

    def has(self, key: Key, version: int) -> bool:
        """Whether exactly this version is held, so that it need not be looked at."""
        return version != 0 and self.version(key) == version

    def is_stale(self, key: Key, version: int) -> bool:
        """Whether something newer is known than an event of a watch says."""
        if version == 0:
            return False
        return (self.version(key) or 0) > version or self._graves.get(key, 0) >= version

    def put(self, key: Key, version: int, value: T, arrival: float | None = None) -> Change[T] | None:
        """Take an object over; return the change, None where only its version is new."""
        held = self._objects.get(key)
        if held is not None and held[1] == value:
            self._objects[key] = (version, held[1])
            return None
        self._objects[key] = (version, value)
        self._graves.pop(key, None)
        return Change(key, version, 0 if held is None else held[0], value, arrival)

    def remove(self, key: Key, version: int, arrival: float | None = None) -> Change[T] | None:
        """Drop an object; return the change, None when it was not held."""
        held = self._objects.pop(key, None)
        return None if held is None else Change(key, version, held[0], None, arrival)

    def bury(self, key: Key, version: int) -> None:
        """Remember a removal, so that older events and lists do not bring the object back."""
        self._graves[key] = max(version, self._graves.get(key, 0))
        self._graves_until = max(self._graves_until, version)

    def reached(self, version: int) -> None:
        """Forget removals that the watch has passed, unless a list beside it is being compared."""
        if self._graves and version >= self._graves_until and not self.audited:
            self._graves.clear()
            self._graves_until = 0

    def void_audit(self) -> None:
        """Take note that a list replaces, which is newer than what one beside the watch has shown."""
        self.audited = False

    def held_keys(self) -> list[Key]:
        """Return the keys that are held now."""
        return list(self._objects)

    def distrust(self) -> None:
        """Make every object news again, as after a delivery that failed half-way."""
        self._objects = dict.fromkeys(self._objects, (-1, _NOTHING))


_NOTHING: Any = object()


class Audit(Generic[T]):
    """A list read beside the live watch, to find what the watch did not deliver.

    The list may be ahead of the watch or behind it, so a difference is only suspect at first;
    what the watch has not explained when `repairs` is asked for is a repair.
    """

    def __init__(self, holdings: Holdings[T]) -> None:
        self._holdings = holdings
        self._seen: set[Key] = set()
        self._suspects: dict[Key, tuple[int, T | None]] = {}
        holdings.audited = True

    @property
    def void(self) -> bool:
        """Whether a list has replaced what was compared, so that nothing here may be repaired by it."""
        return not self._holdings.audited

    @property
    def suspicious(self) -> bool:
        """Whether anything is suspect."""
        return bool(self._suspects)

    def restart(self) -> None:
        """Forget what the list showed so far: it begins again."""
        self._seen.clear()
        self._suspects.clear()

    def see(self, key: Key, version: int) -> bool:
        """Note a listed object; True when it is not held at this version or a newer one."""
        self._seen.add(key)
        held = self._holdings.version(key)
        return (held is None or held < version) and not self._holdings.is_stale(key, version)

    def suspect(self, key: Key, version: int, value: T) -> None:
        """Note the content of an object for which `see` was True."""
        self._suspects[key] = (version, value)

    def unsee(self, key: Key) -> None:
        """Note that the list itself took an object back."""
        self._seen.discard(key)
        self._suspects.pop(key, None)

    def compare(self, key: Key, version: int) -> None:
        """Suspect a held object that the list, which showed the state at `version`, did not have."""
        held = self._holdings.version(key)
        if key not in self._seen and held is not None and held <= version:
            self._suspects[key] = (version, None)

    def repairs(self) -> list[Change[T]]:
        """Put right what is still different in the holdings; return the changes."""
        changes = []
        for key, (version, value) in self._suspects.items():
            held = self._holdings.version(key)
            if self._holdings.is_stale(key, version) or (value is not None and held == version):
                continue
            if value is None:
                change = self._holdings.remove(key, version)
                self._holdings.bury(key, version)
            else:
                change = self._holdings.put(key, version, value)
            if change is not None:
                changes.append(change)
        return changes

    def end(self) -> None:
        """Forget the comparison; to be called however it went."""
        self.restart()
        self._holdings.audited = False
