"""`--check-config`: the configuration keys of a directory, checked as the running server would."""

import os
import sys

from kubedns.shared.config import InvalidConfigError, parse_config
from kubedns.shared.configdir import ConfigDirError, read_directory


def check_config(directory: str, domain: str) -> int:
    """Say on standard error what is wrong with the keys; return the exit status, 0 or 1."""
    try:
        if not os.path.isdir(directory):
            raise ConfigDirError(f"{directory} is not a directory")
        _, warnings = parse_config(read_directory(directory), domain)
    except ConfigDirError as error:
        _say(str(error))
        return 1
    except InvalidConfigError as refused:
        for fault in refused.errors:
            _say(f"{directory}: {fault}")
        return 1
    for warning in warnings:
        _say(f"{directory}: warning: {warning}")
    _say(f"{directory}: the configuration is good")
    return 0


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")
