"""One HTTP GET of a program of the pod -> its status and body, whole and bounded.

HTTP/1.0, so that a body ends where the connection does (RFC 1945 4.4); no redirect is followed.
"""

import asyncio
import ssl
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

_LONGEST_HEAD: Final = 16 * 1024
_LONGEST_BODY: Final = 1 << 20


class FetchError(Exception):
    """There is no answer to show; the text says why."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """What a server answered, whatever its status."""

    status: int
    body: bytes


async def fetch(url: str, within: float) -> Fetched:
    """GET an http or https URL within so many seconds; raises FetchError."""
    try:
        async with asyncio.timeout(within):
            return await _fetch(url)
    except TimeoutError as error:
        raise FetchError(f"no answer within {within:g} s") from error
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
        raise FetchError("it answers something that is not HTTP") from error
    except OSError as error:
        raise FetchError(f"not reachable: {error.strerror or error}") from error


async def _fetch(url: str) -> Fetched:
    parts = urlsplit(url)
    secure = parts.scheme == "https"
    reader, writer = await asyncio.open_connection(
        parts.hostname,
        parts.port or (443 if secure else 80),
        ssl=ssl.create_default_context() if secure else None,
        limit=_LONGEST_HEAD,
    )
    try:
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        writer.write(f"GET {target} HTTP/1.0\r\nHost: {parts.netloc}\r\n\r\n".encode())
        status = _status(await reader.readuntil(b"\r\n\r\n"))
        body = bytearray()
        while piece := await reader.read(_LONGEST_HEAD):
            body += piece
            if len(body) > _LONGEST_BODY:
                raise FetchError(f"it answers more than {_LONGEST_BODY >> 20} MiB")
        return Fetched(status, bytes(body))
    finally:
        writer.transport.abort()


def _status(head: bytes) -> int:
    version, _, rest = head.partition(b" ")
    code = rest[:3]
    if not version.startswith(b"HTTP/") or not code.isdigit():
        raise FetchError("it answers something that is not HTTP")
    return int(code)
