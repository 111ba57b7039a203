"""The front of this room: everything a record is made from, watched.

In: Credentials, two Sinks.
Out: Services and EndpointSlices to the Sinks as they change; `synced` once both are complete there.
Invariant: only what can make a record is asked for: of the slices those of headless Services,
and those the standard controller does not manage, which nobody labels headless.
"""

import asyncio
from collections.abc import Callable

from kubedns.cluster.access import Credentials
from kubedns.cluster.configmap import ConfigData, ConfigMapWatch
from kubedns.cluster.delivery import DirectDelivery
from kubedns.cluster.failurelog import cause_of
from kubedns.cluster.project import endpoint_slice, service
from kubedns.cluster.reflector import RELIST_PERIOD, Reflector
from kubedns.cluster.resources import ENDPOINT_SLICES, SERVICES, Selection
from kubedns.cluster.session import ApiSession
from kubedns.cluster.sliceunion import SliceUnion
from kubedns.objects import EndpointSlice, Service, Sink
from kubedns.shared.tasks import cancel, spawn
from kubedns.telemetry.watches import ResourceStatistics

_HEADLESS = "service.kubernetes.io/headless"
_UNMANAGED = f"!{_HEADLESS},endpointslice.kubernetes.io/managed-by!=endpointslice-controller.k8s.io"


class ClusterWatch:
    """Keeps two Sinks in step with the cluster.

    `synced` is set once Services and EndpointSlices were listed whole and applied; it stays set.
    `api` serves further requests with the same credentials.  `statistics` has one entry for each
    list-watch.
    """

    def __init__(
        self,
        credentials: Credentials,
        services: Sink[Service],
        slices: Sink[EndpointSlice],
        relist_period: float = RELIST_PERIOD,
    ) -> None:
        self.api = ApiSession(credentials)
        self.synced = asyncio.Event()
        self._services_statistics = ResourceStatistics("services")
        self._headless_statistics = ResourceStatistics("endpointslices_headless")
        self._unmanaged_statistics = ResourceStatistics("endpointslices_unmanaged")
        self._union = SliceUnion(slices, self._headless_statistics, self._unmanaged_statistics)
        self._services = Reflector[Service](
            self.api,
            Selection("services", SERVICES),
            service,
            DirectDelivery[Service](services, self._services_statistics),
            self._services_statistics,
            relist_period,
        )
        self._slices = [
            Reflector[EndpointSlice](
                self.api,
                Selection(side.statistics.name, ENDPOINT_SLICES, labels=labels),
                endpoint_slice,
                side,
                side.statistics,
                relist_period,
            )
            for side, labels in ((self._union.first, _HEADLESS), (self._union.second, _UNMANAGED))
        ]
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def statistics(self) -> tuple[ResourceStatistics, ...]:
        """The counters of each list-watch, in a stable order."""
        return self._services_statistics, self._headless_statistics, self._unmanaged_statistics

    def start(self) -> None:
        """Begin; must be called on the running loop."""
        self._tasks = [spawn(reflector.run(), name="reflector") for reflector in self._reflectors]
        self._tasks.append(spawn(self._await_sync(), name="first sync"))

    async def stop(self) -> None:
        """End all requests and close the connections."""
        await cancel(*self._tasks)
        self._union.stop()
        await self.api.close()

    async def _await_sync(self) -> None:
        for reflector in self._reflectors:
            await reflector.synced.wait()
        self.synced.set()

    @property
    def _reflectors(self) -> "tuple[Reflector[Service] | Reflector[EndpointSlice], ...]":
        return self._services, *self._slices

    def why_not_synced(self) -> str:
        """Return what the first sync still waits for, each cause once; empty when synced."""
        waiting: dict[str, tuple[list[str], str]] = {}
        for statistics, reflector in zip(self.statistics, self._reflectors, strict=True):
            if not reflector.synced.is_set():
                reason = reflector.failure or "its first list is not complete"
                names, _ = waiting.setdefault(cause_of(reason), ([], reason))
                names.append(statistics.name)
        return "; ".join(f"{', '.join(names)}: {reason}" for names, reason in waiting.values())

    def failures(self) -> dict[str, str]:
        """Return what stands in the way of each list-watch now, by its name; empty where nothing does."""
        return {
            statistics.name: reflector.failure
            for statistics, reflector in zip(self.statistics, self._reflectors, strict=True)
        }

    def watch_config_map(
        self, namespace: str, name: str, deliver: Callable[[ConfigData | None], None]
    ) -> ConfigMapWatch:
        """Return a watch of one ConfigMap over the same connections, to be started and stopped."""
        return ConfigMapWatch(self.api, namespace, name, deliver)
