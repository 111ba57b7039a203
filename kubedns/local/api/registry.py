"""Create, read, update, patch and delete, by the rules of a real server.

In: objects and patches as requests carry them.  Out: entries of the store, or an ApiError
that says what a real server would say.  The invariant: what is stored has passed defaults,
validation and allocation, and a refused or dry-run request leaves no trace.

Differs: finalizers are stored but do not hold up a deletion; a namespace goes at once, with
everything in it.

Source: kubernetes pkg/registry (strategies), apiserver pkg/registry/generic/registry/store.go.
"""

import secrets
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final
from uuid import uuid4

import orjson

from kubedns.local.api import errors, services
from kubedns.local.api.allocation import Allocations, PoolFullError
from kubedns.local.api.errors import ApiError
from kubedns.local.api.history import Entry
from kubedns.local.api.intake import Write, check_name, read_object, reshape
from kubedns.local.api.kinds import ENDPOINT_SLICES, NAMESPACES, RESOURCES, SERVICES, Resource
from kubedns.local.api.patches import apply_patch
from kubedns.local.api.selectors import Selector
from kubedns.local.api.service_rules import immutable_address
from kubedns.local.api.store import Store, entry_of, key_of
from kubedns.local.api.validation import validate
from kubedns.local.api.wire import with_kind

_Object = dict[str, Any]
IMMORTAL_NAMESPACES: Final = frozenset({"default", "kube-public", "kube-system"})
_SUFFIX_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"


@dataclass(frozen=True, slots=True)
class Preconditions:
    """What must hold for a deletion to happen; None asks for nothing."""

    uid: str | None = None
    version: str | None = None


class Registry:
    """The rules in front of a store."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._allocations = Allocations()

    def get(self, resource: Resource, namespace: str, name: str) -> Entry:
        """Return an object; raises the 404."""
        entry = self.store.get(resource, namespace, name)
        if entry is None:
            raise errors.not_found(resource, name)
        return entry

    def value(self, resource: Resource, entry: Entry) -> _Object:
        """Return an entry as an object with kind and apiVersion."""
        value: _Object = orjson.loads(with_kind(resource, entry.item))
        return value

    def create(self, resource: Resource, namespace: str, body: _Object, write: Write) -> Entry:
        """Store a new object."""
        value = read_object(resource, namespace, body, write)
        metadata = value["metadata"]
        if not metadata.get("name") and metadata.get("generateName"):
            suffix = "".join(secrets.choice(_SUFFIX_LETTERS) for _ in range(5))
            metadata["name"] = metadata["generateName"][:58] + suffix
        if namespace and self.store.get(NAMESPACES, "", namespace) is None:
            raise errors.not_found(NAMESPACES, namespace)
        if self.store.get(resource, namespace, metadata.get("name", "")) is not None:
            raise errors.already_exists(resource, metadata["name"])
        metadata["uid"], metadata["creationTimestamp"] = str(uuid4()), _now()
        metadata.pop("generation", None)
        if resource is ENDPOINT_SLICES:
            metadata["generation"] = 1
        if resource is SERVICES:
            value["status"] = {"loadBalancer": {}}
        return self._finish(resource, value, None, write)

    def update(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        body: _Object,
        write: Write,
        *,
        status: bool = False,
    ) -> tuple[Entry, bool]:
        """Replace an object, or with `status` its status only; return it and whether it is new."""
        old_entry = self.store.get(resource, namespace, name)
        check_name(body, name)
        if old_entry is None:
            if not resource.create_on_update or status:
                raise errors.not_found(resource, name)
            return self.create(resource, namespace, body, write), True
        value = read_object(resource, namespace, body, write)
        old: _Object = orjson.loads(old_entry.item)
        metadata, before = value["metadata"], old["metadata"]
        if metadata.get("resourceVersion", before["resourceVersion"]) != before["resourceVersion"]:
            raise errors.conflict(resource, name)
        if metadata.get("uid", before["uid"]) != before["uid"]:
            detail = f"Precondition failed: UID in precondition: {metadata['uid']}, UID in object meta: {before['uid']}"
            raise errors.conflict(resource, name, detail)
        if status:
            value = {**old, "status": value["status"]}
        elif resource.has_status:
            value["status"] = old["status"]
        for kept in ("name", "namespace", "uid", "creationTimestamp", "generateName", "generation"):
            if kept in before:
                value["metadata"][kept] = before[kept]
        return self._finish(resource, value, old, write), False

    def patch(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        patch: tuple[str, Any],
        write: Write,
        *,
        status: bool = False,
    ) -> Entry:
        """Apply a patch, given as its media type and body."""
        old = self.value(resource, self.get(resource, namespace, name))
        value = apply_patch(patch[0], resource.schema, old, patch[1])
        return self.update(resource, namespace, name, value, write, status=status)[0]

    def delete(
        self, resource: Resource, namespace: str, name: str, wanted: Preconditions, write: Write
    ) -> Entry:
        """Delete an object and return what it was; a namespace takes its content along."""
        entry = self.get(resource, namespace, name)
        uid = orjson.loads(entry.item)["metadata"]["uid"]
        if wanted.uid is not None and wanted.uid != uid:
            detail = f"the UID in the precondition ({wanted.uid}) does not match the UID in record ({uid})"
            raise errors.conflict(
                resource, name, f"{detail}. The object might have been deleted and then recreated"
            )
        if wanted.version is not None and wanted.version != str(entry.version):
            detail = (
                f"the ResourceVersion in the precondition ({wanted.version}) does not match the "
                f"ResourceVersion in record ({entry.version}). The object might have been modified"
            )
            raise errors.conflict(resource, name, detail)
        if resource is NAMESPACES and name in IMMORTAL_NAMESPACES:
            message = f'namespaces "{name}" is forbidden: this namespace may not be deleted'
            raise ApiError(403, "Forbidden", message, errors.details_of(NAMESPACES, name))
        if not write.dry_run:
            self._remove(resource, entry)
        return entry

    def delete_collection(
        self, resource: Resource, namespace: str, selector: Selector, write: Write
    ) -> list[Entry]:
        """Delete what a selector means and return what it was."""
        entries = self.store.entries(resource, namespace, selector)
        if not write.dry_run:
            for entry in entries:
                self._remove(resource, entry)
        return entries

    def load(self, resource: Resource, body: _Object, *, keep_version: bool = False) -> Entry:
        """Create or replace an object as a dump of a cluster has it, without asking what was there.

        Its namespace is made; uid, creation time, status and generation stay as they are given,
        with `keep_version` the resourceVersion too.  Cluster IPs may change.
        """
        namespace = ""
        if resource.namespaced:
            namespace = (body.get("metadata") or {}).get("namespace") or "default"
            self.ensure_namespace(namespace)
        value = read_object(resource, namespace, body, None)
        metadata = value["metadata"]
        version = metadata.get("resourceVersion", "")
        old = self.store.get(resource, namespace, metadata.get("name", ""))
        if "uid" not in metadata:
            metadata["uid"] = orjson.loads(old.item)["metadata"]["uid"] if old else str(uuid4())
        if "creationTimestamp" not in metadata:
            metadata["creationTimestamp"] = _now()
        if resource is ENDPOINT_SLICES:
            metadata.setdefault("generation", 1)
        self._decide(resource, value, None)
        kept = int(version) if keep_version and version.isascii() and version.isdigit() else None
        return self.store.write(resource, reshape(resource, value), kept)

    def ensure_namespace(self, name: str) -> None:
        """Make a namespace that is not there yet."""
        if self.store.get(NAMESPACES, "", name) is None:
            self.create(NAMESPACES, "", {"metadata": {"name": name}}, Write())

    def _finish(self, resource: Resource, value: _Object, old: _Object | None, write: Write) -> Entry:
        self._decide(resource, value, old, dry_run=write.dry_run)
        value["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"] if old else "0"
        shaped = reshape(resource, value)
        if old is not None and shaped == old:
            return entry_of(old, int(old["metadata"]["resourceVersion"]))
        if old is not None and resource is ENDPOINT_SLICES and _content(shaped) != _content(old):
            shaped["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1
        if write.dry_run:
            return entry_of(shaped, int(shaped["metadata"]["resourceVersion"]))
        return self.store.write(resource, shaped)

    def _decide(
        self, resource: Resource, value: _Object, old: _Object | None, *, dry_run: bool = False
    ) -> None:
        """Validate, and let a Service have its addresses and ports; raises the 422."""
        name = value["metadata"].get("name", "")
        if resource is SERVICES and old is not None:
            services.inherit(value["spec"], old["spec"])
        causes = validate(resource, value, old)
        if resource is SERVICES and old is not None:
            causes += immutable_address(value["spec"], old["spec"])
        if not causes and resource is SERVICES:
            owner = key_of(value["metadata"]["namespace"], name)
            spec = value["spec"]
            try:
                causes = services.complete(spec, self._allocations, owner)
            except PoolFullError as error:
                raise ApiError(500, "InternalError", f"Internal error occurred: {error}", {}) from error
            if not causes and not dry_run:
                self._allocations.assign(owner, services.addresses_of(spec), services.node_ports_of(spec))
        if causes:
            raise errors.invalid(resource.kind, resource.group, name, causes)

    def _remove(self, resource: Resource, entry: Entry) -> None:
        if resource is NAMESPACES:
            for kind in RESOURCES:
                if kind.namespaced:
                    for content in self.store.entries(kind, entry.name):
                        self._remove(kind, content)
        if resource is SERVICES:
            self._allocations.assign(entry.key, (), ())
        self.store.remove(resource, entry)


def _content(value: _Object) -> tuple[Any, ...]:
    """What a generation numbers: everything but metadata, and the labels."""
    return value["metadata"].get("labels"), [part for name, part in value.items() if name != "metadata"]


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
