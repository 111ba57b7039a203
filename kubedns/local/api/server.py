"""The local API as one object: for `python -m kubedns.local api` and for tests.

async with LocalApi() as api:
api.apply({"apiVersion": "v1", "kind": "Service", ...})
... a client of api.url ...
"""

import asyncio
import ssl
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from aiohttp import web

from kubedns.local.api.access import Access
from kubedns.local.api.errors import ApiError
from kubedns.local.api.handlers import Api
from kubedns.local.api.intake import Write
from kubedns.local.api.kinds import Resource, resource_of
from kubedns.local.api.manifests import load_files
from kubedns.local.api.registry import Preconditions, Registry
from kubedns.local.api.store import Store
from kubedns.local.api.watching import StreamingLists

_SYSTEM_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")


class LocalApi:
    """An in-memory Kubernetes API on one address.

    Objects given in Python count at once, before the call returns; HTTP clients see them as
    they see any other change.  `start` and `stop` may be called again and again: the objects
    stay, as those of a real server stay in etcd.

    Args:
        host: address to listen on.
        port: port to listen on; 0 picks a free one, kept when started again.
        tls: certificate and key files; None for plain HTTP.  Read at every start.
        token_file: file of the tokens that are good, one a line; None lets everybody in.
        first_version: resourceVersion of the empty API.  By default a number that grows with
            time, so that watches of an earlier run find their version expired.
        history: how many changes are kept at least.
        bookmark_interval: seconds between the bookmarks of a watch.
    """

    def __init__(  # noqa: PLR0913 - all are settings of one server, given by name
        self,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        tls: tuple[Path, Path] | None = None,
        token_file: Path | None = None,
        first_version: int | None = None,
        history: int = 4_000,
        bookmark_interval: float = 60,
    ) -> None:
        self.store = Store(int(time.time()) * 10 if first_version is None else first_version, history)
        self.registry = Registry(self.store)
        self.access = Access(token_file)
        self._api = Api(self.registry, self.access, bookmark_interval)
        self._host, self.port, self._tls = host, port, tls
        self._runner: web.AppRunner | None = None
        for name in _SYSTEM_NAMESPACES:
            self.registry.ensure_namespace(name)
        self.store.restart_history(first_version)

    @property
    def url(self) -> str:
        """Base URL, without a final slash."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"{'https' if self._tls else 'http'}://{host}:{self.port}"

    async def start(self) -> None:
        """Listen; raises OSError when the port is taken, ssl.SSLError for a bad certificate."""
        context = None
        if self._tls is not None:
            context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            context.load_cert_chain(*self._tls)
        self._runner = web.AppRunner(
            self._api.application(), access_log=None, shutdown_timeout=0.1, handler_cancellation=True
        )
        await self._runner.setup()
        site = web.TCPSite(self._runner, self._host, self.port, ssl_context=context, reuse_address=True)
        try:
            await site.start()
        except OSError:
            await self._runner.cleanup()
            raise
        self.port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        """Close the port and all connections."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.stop()

    def load(self, paths: Sequence[Path]) -> int:
        """Load manifests and return how many objects they hold; raises ManifestError.

        To be called before `start`: history begins after it.
        """
        return load_files(self.registry, paths)

    def apply(self, value: Mapping[str, Any]) -> dict[str, Any]:
        """Create or replace an object and return it as stored; raises ApiError.

        Defaults and validation are those of a real server, but a cluster IP may change, status
        and uid are taken as given, and a missing namespace is made.
        """
        resource = _resource(value)
        return self.registry.value(resource, self.registry.load(resource, dict(value)))

    def apply_all(self, values: Iterable[Mapping[str, Any]]) -> None:
        """Create or replace several objects, without a turn of the event loop between them."""
        for value in values:
            self.apply(value)

    def get(self, kind: str, name: str, namespace: str = "default") -> dict[str, Any] | None:
        """Return an object by its kind, or None; for a kind without namespaces that is ignored."""
        resource = _resource_of_kind(kind)
        entry = self.store.get(resource, namespace if resource.namespaced else "", name)
        return None if entry is None else self.registry.value(resource, entry)

    def delete(self, kind: str, name: str, namespace: str = "default") -> None:
        """Delete an object; raises ApiError when there is none."""
        resource = _resource_of_kind(kind)
        where = namespace if resource.namespaced else ""
        self.registry.delete(resource, where, name, Preconditions(), Write())

    def deny(self, verb: str, resource: str) -> None:
        """Refuse a verb on a resource (plural; `*` for any) with 403 from now on."""
        self.access.denied.add((verb, resource))

    def allow(self, verb: str, resource: str) -> None:
        """Take a refusal back."""
        self.access.denied.discard((verb, resource))

    def expire_history(self) -> None:
        """Forget all changes: older versions get 410, as after a compaction of etcd."""
        self.store.version += 1
        self.store.restart_history()

    def serve_streaming_lists(self, how: StreamingLists) -> None:
        """Choose how `sendInitialEvents` is answered: `on`, `off` (422), `broken` (ERROR 500)."""
        self._api.streaming_lists = how

    @property
    def watches(self) -> int:
        """How many watches are open."""
        return len(self._api.watches)

    def drop_watches(self) -> None:
        """Cut the connections of all watches, without an end of the stream."""
        for connection in list(self._api.watches):
            if isinstance(connection, asyncio.WriteTransport):
                connection.abort()


def _resource(value: Mapping[str, Any]) -> Resource:
    resource = resource_of(value)
    if resource is None:
        raise ApiError(
            404, "NotFound", f"{value.get('apiVersion')} {value.get('kind')} is not served here", {}
        )
    return resource


def _resource_of_kind(kind: str) -> Resource:
    version = "discovery.k8s.io/v1" if kind == "EndpointSlice" else "v1"
    return _resource({"apiVersion": version, "kind": kind})
