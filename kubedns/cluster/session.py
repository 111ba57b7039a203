"""The HTTP session with the API server: a request in, the body's bytes out, faults as ApiError.

In: a Request, Credentials.
Out: the body as chunks, as they come from the network.
Invariant: every wait for a connection or for the head of an answer is bounded; how long a body may
last is the caller's to say.  A dead peer is noticed by TCP keepalive even when nobody reads.
"""

import asyncio
import contextlib
import logging
import socket
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

import aiohttp
import orjson

from kubedns import __version__
from kubedns.cluster.access import Access, Credentials
from kubedns.cluster.errors import ApiError, Fault, from_exception, from_status
from kubedns.cluster.failurelog import FailureLog
from kubedns.cluster.files import CredentialsError
from kubedns.cluster.resources import Request

_log = logging.getLogger(__name__)

CONNECT_WITHIN = 10.0
_LARGEST_ERROR_BODY = 64 * 1024
_KEEPALIVE = (
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 15),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 5),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3),
    (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 30_000),
)


class Api(Protocol):
    """What reflectors need of a session; they share `failures`."""

    failures: FailureLog

    def open(self, request: Request) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Send a request; the context is its successful answer's body in chunks.

        Entering it and reading raise ApiError.
        """


class ApiSession:
    """One aiohttp session; made when first used, ended by `close`."""

    def __init__(self, credentials: Credentials) -> None:
        self.failures = FailureLog()
        self._credentials = credentials
        self._session: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    @contextlib.asynccontextmanager
    async def open(self, request: Request) -> AsyncIterator[AsyncIterator[bytes]]:
        """Send a request; the context is its successful answer's body in chunks.

        A 401 is tried once more with the credential read anew.  Raises ApiError, also while the
        body is read.
        """
        response = await self._send(request)
        try:
            yield response.content.iter_any()
        except (aiohttp.ClientError, OSError) as error:
            # TimeoutError is an OSError, but here it is the caller's own deadline.
            if isinstance(error, TimeoutError) and not isinstance(error, aiohttp.ClientError):
                raise
            raise from_exception(request, self._credentials.server, error) from error
        finally:
            response.close()

    async def _send(self, request: Request) -> aiohttp.ClientResponse:
        access = await self._access(request)
        response = await self._get(request, access)
        if response.status == 401:
            self._credentials.refused()
            renewed = await self._access(request)
            if renewed.authorization != access.authorization:
                response.close()
                response = await self._get(request, renewed)
        if response.status != 200:
            raise await self._error(request, response)
        return response

    async def _access(self, request: Request) -> Access:
        try:
            return await self._credentials.access()
        except CredentialsError as error:
            raise ApiError(Fault.CREDENTIALS, f"cannot {request}: {error}") from error

    async def _get(self, request: Request, access: Access) -> aiohttp.ClientResponse:
        if self._session is None:
            self._session = _new_session()
        # A watch must not wait in a compressor; a page of a list is worth compressing.
        headers = {"Accept-Encoding": "gzip" if request.verb == "list" else "identity"}
        if access.authorization is not None:
            headers["Authorization"] = access.authorization
        try:
            async with asyncio.timeout(request.answer_within):
                return await self._session.get(
                    access.server + request.path,
                    params=request.params,
                    headers=headers,
                    ssl=True if access.tls is None else access.tls,
                    server_hostname=access.server_name,
                    proxy=access.proxy,
                    allow_redirects=False,
                )
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise from_exception(request, access.server, error) from error

    async def _error(self, request: Request, response: aiohttp.ClientResponse) -> ApiError:
        try:
            async with asyncio.timeout(CONNECT_WITHIN):
                body = await response.content.read(_LARGEST_ERROR_BODY)
                while len(body) < _LARGEST_ERROR_BODY and (more := await response.content.readany()):
                    body += more
        except (aiohttp.ClientError, OSError) as error:
            _log.debug("the body of a %d answer was cut: %s", response.status, error)
            body = b""
        finally:
            response.close()
        location = response.headers.get("Location") if 300 <= response.status < 400 else None
        return from_status(
            request, response.status, _decoded(body), response.headers.get("Retry-After"), location
        )


def _decoded(body: bytes) -> Any:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        return {"message": body.decode(errors="replace")}


def _new_session() -> aiohttp.ClientSession:
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(socket_factory=_keepalive_socket, ttl_dns_cache=10),
        cookie_jar=aiohttp.DummyCookieJar(),
        headers={"Accept": "application/json", "User-Agent": f"kube-dns/{__version__}"},
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_WITHIN),
    )


def _keepalive_socket(address: Any) -> socket.socket:
    family, kind, protocol, _, _ = address
    made = socket.socket(family, kind, protocol)
    for level, option, value in _KEEPALIVE:
        made.setsockopt(level, option, value)
    return made
