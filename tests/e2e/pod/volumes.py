"""Volumes as kubelet writes them: names are links through `..data`, which is swapped at once.

Source: kubelet's atomic writer for configMap, secret and projected volumes.
"""

import itertools
import shutil
from collections.abc import Mapping
from pathlib import Path


class SwappedVolume:
    """One directory whose files change together; owner root, readable by everybody."""

    def __init__(self, directory: Path, files: Mapping[str, str] | None = None) -> None:
        self.directory = directory
        self._versions = itertools.count()
        directory.mkdir(parents=True)
        directory.chmod(0o755)
        self.write(files or {})

    @property
    def empty(self) -> bool:
        """Whether the volume holds no file."""
        return not any((self.directory / "..data").iterdir())

    def write(self, files: Mapping[str, str]) -> None:
        """Make the volume hold exactly these files."""
        data = self.directory / "..data"
        old = data.resolve() if data.is_symlink() else None
        version = self.directory / f"..2026_01_01_{next(self._versions):010d}"
        version.mkdir(mode=0o755)
        for name, text in files.items():
            (version / name).write_text(text)
            (version / name).chmod(0o644)
        swap = self.directory / "..data_tmp"
        swap.symlink_to(version.name)
        swap.rename(data)
        for name in files:
            if not (self.directory / name).is_symlink():
                (self.directory / name).symlink_to(Path("..data", name))
        for entry in self.directory.iterdir():
            if not entry.name.startswith("..") and entry.name not in files:
                entry.unlink()
        if old is not None:
            shutil.rmtree(old)


def scratch_directory(directory: Path) -> Path:
    """Make an emptyDir: writable by every user of the pod."""
    directory.mkdir(parents=True)
    directory.chmod(0o777)
    return directory
