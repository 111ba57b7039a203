"""What a file is now, and how many of them a part of the process may have open."""

import os
import resource

Stamp = tuple[int, int, int]


def stamp(path: str | os.PathLike[str]) -> Stamp | None:
    """Return what changes when the file behind a path is replaced or rewritten; None without a file."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


def share_of_open_files(wanted: int, files_for_each: int) -> int:
    """Return how many of `wanted` there may be when the process may have `files_for_each` files open for each."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return wanted if files == resource.RLIM_INFINITY else max(1, min(wanted, files // files_for_each))
