"""An Api without a network: a small store of Services whose answers can be bent, and a Sink."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, Generic, TypeVar

import orjson

from kubedns.cluster.errors import ApiError, Fault, from_status
from kubedns.cluster.failurelog import FailureLog
from kubedns.cluster.resources import Request
from kubedns.objects import Key

T = TypeVar("T")
Body = AsyncIterator[bytes]
Answer = Callable[[Request], Body]


def line(kind: str, body: Mapping[str, Any]) -> bytes:
    return orjson.dumps({"type": kind, "object": body}) + b"\n"


def service(name: str, version: int, address: str = "10.0.0.1", namespace: str = "shop") -> dict[str, Any]:
    metadata = {"namespace": namespace, "name": name, "resourceVersion": str(version)}
    return {"kind": "Service", "metadata": metadata, "spec": {"clusterIP": address}}


def bookmark(version: int, *, ends_list: bool = False) -> bytes:
    metadata: dict[str, Any] = {"resourceVersion": str(version)}
    if ends_list:
        metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
    return line("BOOKMARK", {"kind": "Service", "metadata": metadata})


def status(code: int, **fields: Any) -> dict[str, Any]:
    return {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, **fields}


def kind_of(request: Request) -> str:
    if "sendInitialEvents" in request.params:
        return "stream"
    return "watch" if "watch" in request.params else "list"


async def chunks(*parts: bytes) -> Body:
    """Answer with these chunks, then end."""
    for part in parts:
        yield part


async def hang() -> Body:
    """Send nothing, for ever: a black hole after the head of the answer."""
    await asyncio.Event().wait()
    yield b""


class ScriptedApi:
    """A store with history; `script` entries bend the next answers, by kind of request."""

    def __init__(self) -> None:
        self.failures = FailureLog()
        self.version = 100
        self.objects: dict[str, dict[str, Any]] = {}
        self.history: list[tuple[int, bytes]] = []
        self.swallowed: set[int] = set()
        self.requests: list[tuple[float, str, Request]] = []
        self.script: dict[str, list[Callable[[Request], Body]]] = {"stream": [], "watch": [], "list": []}
        self.always: dict[str, Callable[[Request], Body]] = {}
        self.bookmarks = 10.0
        self.hole = False
        self._changed = asyncio.Event()
        self._cut = asyncio.Event()

    # What happens in the cluster.

    def put(self, name: str, address: str = "10.0.0.1", *, swallow: bool = False) -> int:
        self.version += 1
        body = service(name, self.version, address)
        kind = "MODIFIED" if name in self.objects else "ADDED"
        self.objects[name] = body
        self._happened(line(kind, body), swallow)
        return self.version

    def delete(self, name: str, *, swallow: bool = False) -> int:
        self.version += 1
        body = self.objects.pop(name)
        body = {**body, "metadata": {**body["metadata"], "resourceVersion": str(self.version)}}
        self._happened(line("DELETED", body), swallow)
        return self.version

    def _happened(self, event: bytes, swallow: bool) -> None:
        if swallow:
            self.swallowed.add(self.version)
        self.history.append((self.version, event))
        self._changed.set()
        self._changed = asyncio.Event()

    def cut(self) -> None:
        """Reset all open streams."""
        self._cut.set()
        self._cut = asyncio.Event()

    # How it answers.

    def asked(self, kind: str) -> list[Request]:
        return [request for _, one, request in self.requests if one == kind]

    @contextlib.asynccontextmanager
    async def open(self, request: Request) -> AsyncIterator[Body]:
        kind = kind_of(request)
        self.requests.append((asyncio.get_running_loop().time(), kind, request))
        if self.hole:
            await asyncio.sleep(request.answer_within)
            raise ApiError(Fault.TIMEOUT, "the API server does not answer in time")
        if self.script[kind]:
            body = self.script[kind].pop(0)(request)
        elif kind in self.always:
            body = self.always[kind](request)
        else:
            body = {"stream": self._stream, "watch": self._watch, "list": self._list}[kind](request)
        yield body

    async def _stream(self, request: Request) -> Body:
        for body in list(self.objects.values()):
            yield line("ADDED", body)
        yield bookmark(self.version, ends_list=True)

    async def _list(self, request: Request) -> Body:
        yield orjson.dumps(
            {"metadata": {"resourceVersion": str(self.version)}, "items": list(self.objects.values())}
        )

    async def _watch(self, request: Request) -> Body:
        loop, cut = asyncio.get_running_loop(), self._cut
        reached = int(request.params["resourceVersion"])
        ends = loop.time() + float(request.params["timeoutSeconds"])
        marked = loop.time()
        while not self.hole and loop.time() < ends:
            for version, event in list(self.history):
                if version > reached and version not in self.swallowed:
                    yield event
            reached = self.version
            if loop.time() - marked >= self.bookmarks:
                marked = loop.time()
                yield bookmark(reached)
            waiters = [asyncio.ensure_future(one.wait()) for one in (self._changed, cut)]
            await asyncio.wait(waiters, timeout=1.0, return_when=asyncio.FIRST_COMPLETED)
            for waiter in waiters:
                waiter.cancel()
            if cut.is_set():
                raise ApiError(Fault.CUT, "the connection to the API server was cut")
        if self.hole:
            await asyncio.Event().wait()


def refuse(code: int, after: str | None = None, **fields: Any) -> Callable[[Request], Body]:
    """Answer with an HTTP error."""

    async def answer(request: Request) -> Body:
        for fault in (from_status(request, code, status(code, **fields), after),):
            raise fault
        yield b""

    return answer


class RecordingSink(Generic[T]):
    """Holds the state that was applied, and every batch."""

    def __init__(self) -> None:
        self.state: dict[Key, T] = {}
        self.batches: list[dict[Key, T | None]] = []

    def apply(self, changes: Mapping[Key, T | None]) -> None:
        self.batches.append(dict(changes))
        for key, value in changes.items():
            if value is None:
                self.state.pop(key, None)
            else:
                self.state[key] = value


async def until(condition: Callable[[], bool], within: float = 60.0) -> None:
    """Wait until something holds; fails after `within` seconds of the loop's clock."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + within
    while not condition():
        assert loop.time() < deadline, "what was waited for did not come"
        await asyncio.sleep(0.01)
