"""The data of one ConfigMap, kept up to date.

In: namespace and name.
Out: each new state of its data to a callback, None while it does not exist.
Source: list and watch with `fieldSelector=metadata.name=...`, which RBAC allows for one
`resourceName`; `get` is not needed.
"""

import asyncio
from collections.abc import Callable, Mapping

from kubedns.cluster.delivery import DirectDelivery
from kubedns.cluster.project import config_data
from kubedns.cluster.reflector import Reflector
from kubedns.cluster.resources import CONFIG_MAPS, Selection
from kubedns.cluster.session import Api
from kubedns.objects import Key
from kubedns.shared.tasks import cancel, spawn
from kubedns.telemetry.watches import ResourceStatistics

ConfigData = Mapping[str, bytes]


class ConfigMapWatch:
    """Watches one ConfigMap; `deliver` is called with its data, first when it is known to exist or not."""

    def __init__(
        self, api: Api, namespace: str, name: str, deliver: Callable[[ConfigData | None], None]
    ) -> None:
        self.statistics = ResourceStatistics("configmaps")
        selection = Selection("configmaps", CONFIG_MAPS, namespace, fields=f"metadata.name={name}")
        self._deliver = deliver
        self._known = False
        self._reflector = Reflector[ConfigData](
            api, selection, config_data, DirectDelivery[ConfigData](self, self.statistics), self.statistics
        )
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def failure(self) -> str:
        """What keeps the ConfigMap from being known, empty when nothing does."""
        return self._reflector.failure

    def start(self) -> None:
        """Begin."""
        self._tasks = [
            spawn(self._reflector.run(), name="configmap"),
            spawn(self._tell_absence(), name="configmap absence"),
        ]

    async def stop(self) -> None:
        """End; the callback is not called any more."""
        await cancel(*self._tasks)

    def apply(self, changes: Mapping[Key, ConfigData | None]) -> None:
        """Hand the new state on."""
        for data in changes.values():
            self._known = True
            self._deliver(data)

    async def _tell_absence(self) -> None:
        await self._reflector.synced.wait()
        if not self._known:
            self._deliver(None)
