"""The configuration keys of a ConfigMap's manifest, as a pipeline has it before it is applied.

In: a file of YAML or JSON, with one ConfigMap among its objects, or one called kube-dns among
several.  Out: its keys, as the API server would hold them.
"""

import base64
import binascii
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from kubedns.shared.config import ConfigError, InvalidConfigError

NAME: Final = "kube-dns"


class ManifestError(Exception):
    """The file has no ConfigMap to check; the text says why."""


def read_manifest(path: str) -> Mapping[str, bytes]:
    """Return key -> value; raises ManifestError, and InvalidConfigError for values that are no text."""
    try:
        objects = list(_objects(yaml.safe_load_all(Path(path).read_bytes())))
    except OSError as error:
        raise ManifestError(f"cannot read {path}: {error.strerror}") from error
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise ManifestError(f"{path} is neither YAML nor JSON: {' '.join(str(error).split())}") from error
    maps = [one for one in objects if one.get("kind") == "ConfigMap"]
    chosen = maps if len(maps) == 1 else [one for one in maps if _name(one) == NAME]
    if len(chosen) != 1:
        found = ", ".join(map(_name, maps)) or "none"
        raise ManifestError(f"{path} must have one ConfigMap, or one called {NAME}; it has: {found}")
    return _keys(chosen[0])


def _objects(documents: Any) -> Iterator[dict[str, Any]]:
    for document in documents:
        if isinstance(document, dict) and document.get("kind") == "List":
            yield from _objects(document.get("items") or ())
        elif isinstance(document, dict):
            yield document


def _name(config_map: Mapping[str, Any]) -> str:
    metadata = config_map.get("metadata")
    return str(metadata.get("name", "")) if isinstance(metadata, dict) else ""


def _keys(config_map: Mapping[str, Any]) -> Mapping[str, bytes]:
    keys: dict[str, bytes] = {}
    errors: list[ConfigError] = []
    for key, value in _mapping(config_map, "data").items():
        if isinstance(value, str):
            keys[str(key)] = value.encode()
        else:
            errors.append(
                ConfigError(str(key), f"must be text; write the JSON after {key}: | in a line of its own")
            )
    for key, value in _mapping(config_map, "binaryData").items():
        try:
            keys[str(key)] = base64.b64decode(str(value), validate=True)
        except (binascii.Error, ValueError):
            errors.append(ConfigError(str(key), "in binaryData must be base64"))
    if errors:
        raise InvalidConfigError(errors)
    return keys


def _mapping(config_map: Mapping[str, Any], member: str) -> Mapping[Any, Any]:
    value = config_map.get(member) or {}
    if not isinstance(value, dict):
        raise ManifestError(f"{member} of ConfigMap {_name(config_map)} must be an object")
    return value
