"""Lists as streams of events: ADDED for each object, then one BOOKMARK with the list's version.

In: a Selection.
Out: Event, as a watch's.
Source: Kubernetes' streaming lists (`sendInitialEvents`, ended by a bookmark annotated
`k8s.io/initial-events-end`) and, where a server cannot, its pages (`limit`, `continue`).  Neither
asks for a resource version, so both show the state at least as new as the request.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Final

from kubedns.cluster.errors import ApiError, Fault, from_status
from kubedns.cluster.liststream import ListStream
from kubedns.cluster.project import version_text
from kubedns.cluster.resources import Request, Selection
from kubedns.cluster.session import Api
from kubedns.cluster.watchstream import Event, StreamError, WatchStream

Events = AsyncGenerator[Event, None]

PAGE_LIMIT: Final = 500
MOST_PAGES: Final = 2000
"""A million objects at PAGE_LIMIT: more than any cluster has."""
RESTART: Final = "RESTART"
"""Type of an event that says: the list begins again, what it showed so far does not count."""
_LIST_WITHIN = 60.0
_SILENCE = 30.0
_STREAM_SILENCE = 10.0
"""Seconds: a server that has not ended its list is asked for pages in good time before the first sync is due."""
_UNSUPPORTED = {400, 422, 500}
"""422 where the feature is off, 500 where its etcd is too old, 400 from what is not quite an API server."""
_END = "k8s.io/initial-events-end"


class StreamingUnsupportedError(Exception):
    """The server does not stream lists; the text is its answer."""


async def listed(api: Api, selection: Selection) -> Events:
    """Yield a list, streamed if the server can, else paged after a RESTART whose object has the reason.

    Raises ApiError, with Fault.EXPIRED when the list must be begun again.
    """
    try:
        async with aclosing(streamed(api, selection)) as events:
            async for event in events:
                yield event
        return
    except StreamingUnsupportedError as error:
        reason = str(error)
    yield Event(RESTART, {"message": reason})
    async with aclosing(paged(api, selection)) as events:
        async for event in events:
            yield event


async def streamed(api: Api, selection: Selection) -> Events:
    """Yield a streaming list.

    Raises StreamingUnsupportedError where pages must be asked for, ApiError otherwise.
    """
    request = selection.request(
        "watch",
        {
            "watch": "1",
            "allowWatchBookmarks": "true",
            "sendInitialEvents": "true",
            "resourceVersionMatch": "NotOlderThan",
            "timeoutSeconds": "120",
        },
        _LIST_WITHIN,
    )
    stream = WatchStream()
    try:
        async with api.open(request) as chunks:
            async for chunk in _lively(chunks, _STREAM_SILENCE):
                for event in stream.feed(chunk):
                    if event.type == "ERROR":
                        raise error_of(request, event)
                    if event.type == "BOOKMARK" and _ends_list(event):
                        yield event
                        return
                    if event.type != "ADDED":
                        raise StreamingUnsupportedError(
                            f"cannot {request}: {event.type} came before the end of the list, "
                            "so the server does not know sendInitialEvents"
                        )
                    yield event
    except StreamError as error:
        raise ApiError(Fault.PROTOCOL, f"cannot {request}: {error}") from error
    except ApiError as error:
        if error.code in _UNSUPPORTED:
            raise StreamingUnsupportedError(str(error)) from error
        raise
    except TimeoutError as error:
        raise StreamingUnsupportedError(
            f"cannot {request}: the stream fell silent within its list"
        ) from error
    raise StreamingUnsupportedError(f"cannot {request}: the stream ended before its list did")


async def paged(api: Api, selection: Selection, limit: int = PAGE_LIMIT) -> Events:
    """Yield a list asked for in pages; raises ApiError, with Fault.EXPIRED when it must be begun again."""
    params, tokens = {"limit": str(limit)}, set[str]()
    while True:
        request = selection.request("list", params, _LIST_WITHIN)
        stream = ListStream()
        try:
            async with api.open(request) as chunks:
                async for chunk in _lively(chunks):
                    for item in stream.feed(chunk):
                        yield Event("ADDED", item)
            envelope = stream.envelope()
        except StreamError as error:
            raise ApiError(Fault.PROTOCOL, f"cannot {request}: {error}") from error
        except TimeoutError as error:
            raise ApiError(
                Fault.TIMEOUT, f"cannot {request}: the server fell silent within the list"
            ) from error
        metadata = envelope.get("metadata")
        token = metadata.get("continue") if isinstance(metadata, dict) else None
        if not version_text(envelope):
            raise ApiError(Fault.PROTOCOL, f"cannot {request}: the list has no resource version")
        if not token:
            yield Event("BOOKMARK", envelope)
            return
        if not isinstance(token, str) or token in tokens:
            raise ApiError(Fault.PROTOCOL, f"cannot {request}: the list has no usable continue token")
        tokens.add(token)
        if len(tokens) >= MOST_PAGES:
            raise ApiError(
                Fault.PROTOCOL, f"cannot {request}: the list does not end after {MOST_PAGES} pages"
            )
        params["continue"] = token


def error_of(request: Request, event: Event) -> ApiError:
    """Return the error that an ERROR event stands for; without a code it counts as 500."""
    code = event.object.get("code")
    return from_status(request, code if type(code) is int else 500, event.object)


async def _lively(chunks: AsyncIterator[bytes], silence: float = _SILENCE) -> AsyncIterator[bytes]:
    """Yield chunks; raises TimeoutError when one is longer than `silence` seconds in coming."""
    while True:
        async with asyncio.timeout(silence):
            chunk = await anext(chunks, None)
        if chunk is None:
            return
        yield chunk


def _ends_list(event: Event) -> bool:
    metadata = event.object.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    return isinstance(annotations, dict) and annotations.get(_END) == "true"
