"""`--check-config`: the configuration keys of a directory or a manifest, checked before they are used.

Stricter than the running server: what has no effect there, an unknown key or a stub domain
without servers, is a mistake here.
"""

import os
import sys
from collections.abc import Mapping

from kubedns.config.manifest import ManifestError, read_manifest
from kubedns.shared.config import InvalidConfigError, parse_config
from kubedns.shared.configdir import ConfigDirError, read_directory


def check_config(path: str, domain: str) -> int:
    """Say on standard error what is wrong with the keys; return the exit status, 0 or 1."""
    try:
        _, warnings = parse_config(_keys(path), domain, strict=True)
    except (ConfigDirError, ManifestError) as error:
        _say(str(error))
        return 1
    except InvalidConfigError as refused:
        for fault in refused.errors:
            _say(f"{path}: {fault}")
        return 1
    for warning in warnings:
        _say(f"{path}: warning: {warning}")
    _say(f"{path}: the configuration is good")
    return 0


def _keys(path: str) -> Mapping[str, bytes]:
    if os.path.isdir(path):
        return read_directory(path)
    if not os.path.exists(path):
        raise ConfigDirError(f"{path} does not exist")
    return read_manifest(path)


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")
