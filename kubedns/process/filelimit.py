"""The limit of open files, raised as far as the host allows."""

import resource
from typing import Final

_MOST_FILES: Final = 65536


def allow_many_files() -> None:
    """Raise the soft limit: each TCP client and each forwarded question needs a file."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, _MOST_FILES)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
