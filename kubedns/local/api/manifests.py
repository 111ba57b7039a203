"""Manifests in files: YAML or JSON, several documents, Lists.

In: paths of files or directories.  Out: the objects in them, loaded into a registry.  The
first fault ends it, with a message that names file, document, object and reason.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import orjson
import yaml

from kubedns.local.api.errors import ApiError
from kubedns.local.api.kinds import NAMESPACES, RESOURCES, SERVICES, Resource, resource_of
from kubedns.local.api.lastapplied import as_applied
from kubedns.local.api.registry import Registry

_SUFFIXES: Final = (".yaml", ".yml", ".json")
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class ManifestError(Exception):
    """A manifest that can't be loaded; the text says where and why."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """One object and where it stands, for messages."""

    origin: str
    resource: Resource
    value: dict[str, Any]


def load_files(registry: Registry, paths: Sequence[Path]) -> int:
    """Load all objects and return how many; raises ManifestError.

    Namespaces come first, then Services that name their cluster IP, so that no other gets it.
    Versions are kept; the registry's history begins after them.  Hand-written ones count as applied
    by kubectl.
    """
    manifests = [manifest for path in paths for manifest in read_path(path)]
    for manifest in sorted(manifests, key=_rank):
        try:
            value = as_applied(manifest.resource, manifest.value)
            registry.load(manifest.resource, value, keep_version=True)
        except ApiError as error:
            raise ManifestError(f"{manifest.origin}: {error.message}") from error
    registry.store.restart_history()
    return len(manifests)


def _rank(manifest: Manifest) -> int:
    if manifest.resource is NAMESPACES:
        return 0
    if manifest.resource is SERVICES and (manifest.value.get("spec") or {}).get("clusterIP"):
        return 1
    return 2


def read_path(path: Path) -> Iterator[Manifest]:
    """Yield the objects of a file, or of the manifests directly in a directory by name."""
    if path.is_dir():
        files = sorted(child for child in path.iterdir() if child.suffix in _SUFFIXES)
        if not files:
            raise ManifestError(f"{path}: the directory has no {', '.join(_SUFFIXES)} files")
        for file in files:
            yield from read_path(file)
        return
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ManifestError(f"{path}: {error.strerror}") from error
    for number, document in enumerate(_documents(path, content), 1):
        if document is not None:
            yield from _objects(f"{path}: document {number}", document)


def _documents(path: Path, content: bytes) -> list[Any]:
    if content.lstrip()[:1] == b"{":
        try:
            return [orjson.loads(content)]
        except orjson.JSONDecodeError as json_error:
            if path.suffix == ".json":
                raise ManifestError(f"{path}: document 1: not JSON: {json_error}") from json_error
    documents: list[Any] = []
    try:
        documents.extend(map(_plain, yaml.load_all(content, Loader=_Loader)))
    except (yaml.YAMLError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise ManifestError(f"{path}: document {len(documents) + 1}: not YAML: {reason}") from error
    return documents


def _objects(origin: str, value: Any) -> Iterator[Manifest]:
    if not isinstance(value, dict):
        raise ManifestError(f"{origin}: not an object but {type(value).__name__}")
    kind = value.get("kind")
    if isinstance(kind, str) and kind.endswith("List") and "items" in value:
        if not isinstance(value["items"], list):
            raise ManifestError(f"{origin}: items is not a list")
        inherited = {"kind": kind.removesuffix("List"), "apiVersion": value.get("apiVersion")}
        for number, item in enumerate(value["items"], 1):
            place = f"{origin}: item {number}"
            yield from _objects(place, {**inherited, **item} if isinstance(item, dict) else item)
        return
    yield _manifest(origin, value)


def _manifest(origin: str, value: dict[str, Any]) -> Manifest:
    for name in ("apiVersion", "kind"):
        if not isinstance(value.get(name), str) or not value[name]:
            raise ManifestError(f"{origin}: {name} is not set")
    metadata = value.get("metadata") or {}
    if not isinstance(metadata, dict):
        raise ManifestError(f"{origin}: metadata is not an object")
    name = "/".join(str(metadata[part]) for part in ("namespace", "name") if metadata.get(part))
    place = f"{origin}: {value['kind']} {name}".rstrip()
    resource = resource_of(value)
    if resource is None:
        served = ", ".join(sorted(f"{kind.api_version} {kind.kind}" for kind in RESOURCES))
        raise ManifestError(
            f"{place}: {value['apiVersion']} {value['kind']} is not served here, only {served}"
        )
    return Manifest(place, resource, value)


def _plain(value: Any) -> Any:
    """Turn what YAML makes of unquoted timestamps back into text, as JSON has it."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if value is None or isinstance(value, str | int | float):
        return value
    if hasattr(value, "isoformat"):
        return value.isoformat().replace("+00:00", "Z")
    return str(value)
