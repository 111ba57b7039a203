"""Follows the configuration directory, and reads it again when told to.

In: a path.  Out: updates of the Settings, in the order in which the directory was read.
"""

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Mapping

from kubedns.config.settings import Settings
from kubedns.shared.configdir import ConfigDirError, DirectoryWatch, Snapshot
from kubedns.shared.tasks import cancel, spawn

_log = logging.getLogger(__name__)


class DirectoryFollower:
    """Keeps settings as the directory says; `period` is in seconds, for what no event tells."""

    def __init__(self, directory: str, period: float, settings: Settings) -> None:
        self._directory = directory
        self._period = period
        self._settings = settings
        self._had_keys = False
        self._following: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Take over the directory as it is now, then follow it."""
        snapshots = self._snapshots()
        await self._update(await anext(snapshots))
        self._following = spawn(self._follow(snapshots), name="configuration directory")

    def reread(self) -> None:
        """Read the directory again, changed or not, and go on from there."""
        self._following = spawn(self._follow_anew(self._following), name="configuration directory")

    async def stop(self) -> None:
        """Follow it no longer."""
        await cancel(self._following)

    def _snapshots(self) -> AsyncIterator[Snapshot]:
        return aiter(DirectoryWatch(self._directory, self._period))

    async def _follow_anew(self, before: "asyncio.Task[None] | None") -> None:
        await cancel(before)
        await self._follow(self._snapshots())

    async def _follow(self, snapshots: AsyncIterator[Snapshot]) -> None:
        async for snapshot in snapshots:
            await self._update(snapshot)

    async def _update(self, snapshot: Snapshot) -> None:
        if isinstance(snapshot, ConfigDirError):
            self._settings.unreadable(snapshot)
        else:
            self._note_absence(snapshot)
            await self._settings.update(snapshot, f"configuration directory {self._directory}")

    def _note_absence(self, snapshot: Mapping[str, bytes]) -> None:
        if not snapshot and self._had_keys and not os.path.isdir(self._directory):
            _log.warning("--config-dir=%s is gone; its keys are absent until it is back", self._directory)
        self._had_keys = bool(snapshot)
