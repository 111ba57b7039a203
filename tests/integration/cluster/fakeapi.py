"""A scripted API server on a real socket: raw HTTP/1.1, so that every octet and every cut can be chosen.

It keeps Services and EndpointSlices with a history, answers lists, streaming lists and watches with
label selectors as a real server does, and lets a test replace the answer to any next request.
"""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import orjson

HEADLESS = "service.kubernetes.io/headless"
DATA = Path(__file__).parents[2] / "data" / "apiserver"
KINDS = {"services": "Service", "endpointslices": "EndpointSlice", "configmaps": "ConfigMap", "nodes": "Node"}


@dataclass
class Asked:
    """A request that was received."""

    plural: str
    kind: str
    params: dict[str, str]
    headers: dict[str, str]
    path: str


@dataclass
class Exchange:
    """One request being answered."""

    asked: Asked
    writer: asyncio.StreamWriter

    async def head(self, status: int = 200, **headers: str) -> None:
        lines = [f"HTTP/1.1 {status} X", "Content-Type: application/json"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        self.writer.write(("\r\n".join(lines) + "\r\n\r\n").encode())
        await self.writer.drain()

    async def reply(self, status: int, body: Any, **headers: str) -> None:
        raw = body if isinstance(body, bytes) else orjson.dumps(body)
        await self.head(status, Content_Length=str(len(raw)), **headers)
        self.writer.write(raw)
        await self.writer.drain()

    async def begin_chunks(self) -> None:
        await self.head(Transfer_Encoding="chunked")

    async def chunk(self, data: bytes) -> None:
        if data:
            self.writer.write(b"%x\r\n%b\r\n" % (len(data), data))
            await self.writer.drain()

    async def end_chunks(self) -> None:
        self.writer.write(b"0\r\n\r\n")
        await self.writer.drain()


Responder = Callable[[Exchange], Awaitable[None]]


def status_body(code: int, **fields: Any) -> dict[str, Any]:
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": code, **fields}


def refuse(code: int, retry_after: str = "", **fields: Any) -> Responder:
    """Answer with an HTTP error."""
    headers = {"Retry_After": retry_after} if retry_after else {}

    async def responder(exchange: Exchange) -> None:
        await exchange.reply(code, status_body(code, **fields), **headers)

    return responder


def replay(name: str, piece: int = 1 << 20) -> Responder:
    """Answer as recorded, in chunks of `piece` octets."""
    head, _, body = (DATA / name).read_bytes().partition(b"\r\n\r\n")
    chunked = b"Transfer-Encoding: chunked" in head

    async def responder(exchange: Exchange) -> None:
        exchange.writer.write(head + b"\r\n\r\n")
        if not chunked:
            exchange.writer.write(body)
        else:
            for begin in range(0, len(body), piece):
                await exchange.chunk(body[begin : begin + piece])
            await exchange.end_chunks()
        await exchange.writer.drain()

    return responder


def event(kind: str, body: Any) -> bytes:
    return orjson.dumps({"type": kind, "object": body}) + b"\n"


def service(name: str, address: str = "10.0.0.1", namespace: str = "shop") -> dict[str, Any]:
    spec = {"clusterIP": address, "ports": [{"name": "http", "port": 80, "protocol": "TCP"}]}
    return {"kind": "Service", "metadata": {"namespace": namespace, "name": name}, "spec": spec}


def endpoint_slice(name: str, owner: str, *addresses: str, headless: bool = True) -> dict[str, Any]:
    labels = {"kubernetes.io/service-name": owner}
    if headless:
        labels |= {HEADLESS: "", "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io"}
    return {
        "kind": "EndpointSlice",
        "metadata": {"namespace": "shop", "name": name, "labels": labels},
        "addressType": "IPv4",
        "endpoints": [{"addresses": [address], "conditions": {"ready": True}} for address in addresses],
    }


def selected(params: dict[str, str], body: dict[str, Any]) -> bool:
    selector = params.get("labelSelector", "")
    labels = body["metadata"].get("labels") or {}
    if selector == HEADLESS:
        return HEADLESS in labels
    if selector:
        manager = labels.get("endpointslice.kubernetes.io/managed-by")
        return HEADLESS not in labels and manager != "endpointslice-controller.k8s.io"
    name = params.get("fieldSelector", "").removeprefix("metadata.name=")
    return not name or body["metadata"]["name"] == name


@dataclass
class FakeApi:
    """The server; `start` it, then `url` is where it listens."""

    tls: ssl.SSLContext | None = None
    tokens: set[str] = field(default_factory=set)
    objects: dict[tuple[str, str, str], dict[str, Any]] = field(default_factory=dict)
    history: list[tuple[int, str, dict[str, Any], dict[str, Any] | None]] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)
    script: dict[tuple[str, str], list[Responder]] = field(default_factory=dict)
    always: dict[tuple[str, str], Responder] = field(default_factory=dict)
    version: int = 100
    oldest: int = 0
    port: int = 0

    def __post_init__(self) -> None:
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.StreamWriter] = set()
        self._changed = asyncio.Event()
        self._stopping = False

    @property
    def url(self) -> str:
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self.port}"

    async def start(self) -> None:
        self._stopping = False
        self._changed = asyncio.Event()
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port, ssl=self.tls)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
            self._stopping = True
            self._changed.set()
            self.reset()
            await self._server.wait_closed()
            self._server = None

    def reset(self) -> None:
        """Drop all connections without a word."""
        for writer in list(self._connections):
            writer.transport.abort()

    # What happens in the cluster.

    def put(self, body: dict[str, Any]) -> int:
        self.version += 1
        plural = next(plural for plural, kind in KINDS.items() if kind == body["kind"])
        body = orjson.loads(orjson.dumps(body))
        body["metadata"]["resourceVersion"] = str(self.version)
        key = (plural, body["metadata"].get("namespace", ""), body["metadata"]["name"])
        self._happened(plural, body, self.objects.get(key))
        self.objects[key] = body
        return self.version

    def delete(self, plural: str, name: str, namespace: str = "shop") -> None:
        self.version += 1
        self._happened(plural, None, self.objects.pop((plural, namespace, name)))

    def expire(self) -> None:
        """Forget how the present state came about, so that all versions before it have expired."""
        self.history.clear()
        self.oldest = self.version

    def _happened(self, plural: str, new: dict[str, Any] | None, old: dict[str, Any] | None) -> None:
        self.history.append((self.version, plural, new or {}, old))
        self._changed.set()
        self._changed = asyncio.Event()

    # How it answers.

    def of_kind(self, plural: str, kind: str) -> list[Asked]:
        return [one for one in self.asked if (one.plural, one.kind) == (plural, kind)]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections.add(writer)
        try:
            while request := await reader.readuntil(b"\r\n\r\n"):
                exchange = Exchange(_parse(request), writer)
                self.asked.append(exchange.asked)
                await self._responder(exchange.asked)(exchange)
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the peer went, or the server stops
        finally:
            self._connections.discard(writer)
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    def _responder(self, asked: Asked) -> Responder:
        token = asked.headers.get("authorization", "")
        if self.tokens and token not in {f"Bearer {one}" for one in self.tokens}:
            return refuse(401, message="Unauthorized", reason="Unauthorized")
        which = (asked.plural, asked.kind)
        if self.script.get(which):
            return self.script[which].pop(0)
        return (
            self.always.get(which)
            or {"stream": self._stream, "list": self._list, "watch": self._watch}[asked.kind]
        )

    def _matching(self, asked: Asked) -> list[dict[str, Any]]:
        return [
            body
            for key, body in self.objects.items()
            if key[0] == asked.plural and selected(asked.params, body)
        ]

    async def _list(self, exchange: Exchange) -> None:
        items = self._matching(exchange.asked)
        await exchange.reply(200, {"metadata": {"resourceVersion": str(self.version)}, "items": items})

    async def _stream(self, exchange: Exchange) -> None:
        await exchange.begin_chunks()
        for body in self._matching(exchange.asked):
            await exchange.chunk(event("ADDED", body))
        await exchange.chunk(bookmark(exchange.asked.plural, self.version, ends_list=True))
        await self._follow(exchange, self.version)

    async def _watch(self, exchange: Exchange) -> None:
        version = int(exchange.asked.params["resourceVersion"])
        if version < self.oldest:
            await refuse(410, reason="Expired", message=f"too old resource version: {version}")(exchange)
            return
        await exchange.begin_chunks()
        await self._follow(exchange, version)

    async def _follow(self, exchange: Exchange, reached: int) -> None:
        loop = asyncio.get_running_loop()
        ends = loop.time() + float(exchange.asked.params["timeoutSeconds"])
        while not self._stopping and (left := ends - loop.time()) > 0:
            changed = self._changed
            for version, plural, new, old in list(self.history):
                if version > reached and plural == exchange.asked.plural:
                    await exchange.chunk(_event_of(exchange.asked.params, version, new, old))
            reached = self.version
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(left):
                    await changed.wait()
        await exchange.chunk(bookmark(exchange.asked.plural, reached))
        await exchange.end_chunks()


def bookmark(plural: str, version: int, *, ends_list: bool = False) -> bytes:
    annotations = {"annotations": {"k8s.io/initial-events-end": "true"}} if ends_list else {}
    return event(
        "BOOKMARK", {"kind": KINDS[plural], "metadata": {"resourceVersion": str(version), **annotations}}
    )


def _event_of(params: dict[str, str], version: int, new: dict[str, Any], old: dict[str, Any] | None) -> bytes:
    is_in, was_in = bool(new) and selected(params, new), old is not None and selected(params, old)
    if is_in:
        return event("MODIFIED" if was_in else "ADDED", new)
    if not was_in or old is None:
        return b""
    return event("DELETED", {**old, "metadata": {**old["metadata"], "resourceVersion": str(version)}})


def _parse(request: bytes) -> Asked:
    first, *lines = request.decode().split("\r\n")
    url = urlsplit(first.split(" ")[1])
    params = dict(parse_qsl(url.query))
    kind = "stream" if "sendInitialEvents" in params else "watch" if "watch" in params else "list"
    headers = {name.lower(): value.strip() for name, _, value in (one.partition(":") for one in lines if one)}
    return Asked(url.path.rsplit("/", 1)[1], kind, params, headers, url.path)


@contextlib.asynccontextmanager
async def fake_api(tls: ssl.SSLContext | None = None, *tokens: str) -> AsyncIterator[FakeApi]:
    api = FakeApi(tls, set(tokens))
    await api.start()
    try:
        yield api
    finally:
        await api.stop()
