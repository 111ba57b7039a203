"""The caching server that names elsewhere are asked of first, such as the dnsmasq of the same pod.

In: questions, one at a time or many.  Out: its replies, whatever they say, or None where the question
is one for our own upstreams.  Invariants: there is one state, up or down, and no time-out of a question
tells it: a name may take long while the server is well.  While questions wait and nothing at all comes for
100 ms, the server is asked for its version, which it answers by itself; nothing for 300 ms, or a refusal of
its port, and it is down.  Down, it is asked for its version until it answers, and for nothing else.
"""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from kubedns.dns.message import Verdict
from kubedns.shared.tasks import cancel, spawn
from kubedns.upstream.ask import Ask
from kubedns.upstream.servers import Upstream

SILENT_SECONDS: Final = 0.3
_PROBE_SECONDS: Final = 0.1
_RETRY_SECONDS: Final = 0.2
_VERSION: Final = b"\0\0\0\0\0\1\0\0\0\0\0\0\7version\4bind\0\0\x10\0\3"
_log = logging.getLogger(__name__)


def _nobody() -> None:
    """Call nobody."""


class CacheServer:
    """One server and its state; `close` when it is not needed any more.

    `when_left` is called when it is found to be down.
    """

    def __init__(self, upstream: Upstream) -> None:
        self.upstream = upstream
        self._down = asyncio.Event()
        self._heard_at = 0.0
        self._waiting = 0
        self._watching: asyncio.Task[None] | None = None
        self.when_left: Callable[[], None] = _nobody

    @property
    def is_up(self) -> bool:
        """Whether questions go to it."""
        return not self._down.is_set()

    def is_client(self, address: tuple[str, int]) -> bool:
        """Whether a question comes from this server, which must not get it back.

        At the host's common loopback address everybody is, so that only its own port tells there; what
        comes back from there nevertheless joins the same question in flight, and goes no further.
        """
        host, port = address
        own = self.upstream.server
        return host == own.host and (host not in ("127.0.0.1", "::1") or port == own.port)

    async def ask(self, query: bytes, end: int, *, tcp: bool) -> bytes | None:
        """Return the reply, None as soon as the server is down; it is waited for as long as it is up."""
        if not self.is_up:
            return None
        loop = asyncio.get_running_loop()
        self.sent()
        reported: asyncio.Future[Ask] = loop.create_future()
        ask = Ask(self.upstream, query, end, reported.set_result)
        down = loop.create_task(self._down.wait(), name="cache server down")
        try:
            if tcp:
                ask.over_tcp()
            else:
                ask.over_udp()
            await asyncio.wait((reported, down), return_when=asyncio.FIRST_COMPLETED)
            if not reported.done():
                self.upstream.traffic.failures["timeout"] += 1
                return ask.truncated
            return self._taken(ask)
        finally:
            self.ended()
            down.cancel()
            ask.close()

    def sent(self) -> None:
        """Take note of a question that waits for it, so that its silence is noticed."""
        if not self._waiting:
            self._heard_at = asyncio.get_running_loop().time()
        self._waiting += 1
        if self._watching is None or self._watching.done():
            self._watching = spawn(self._watch(), name="cache server")

    def ended(self) -> None:
        """Take note that a question does not wait any more."""
        self._waiting -= 1

    async def close(self) -> None:
        """End the watch over it, and close its idle connections."""
        await cancel(self._watching)
        self.upstream.streams.close()

    def _taken(self, ask: Ask) -> bytes | None:
        if ask.verdict is None:
            if ask.fault is not None:
                self.fail(ask.fault)
            return None
        self.heard()
        return None if ask.verdict is Verdict.MALFORMED else ask.reply

    def heard(self) -> None:
        """Take note of a sign of life."""
        self._heard_at = asyncio.get_running_loop().time()
        self.upstream.answered()
        if not self.is_up:
            self._down.clear()
            _log.info("cache server %s answers again", self.upstream.server)

    def fail(self, reason: str) -> None:
        """Take it for down, until it answers again."""
        if was_up := self.is_up:
            self._down.set()
            _log.warning(
                "cache server %s is away, the servers of our own configuration are asked meanwhile: %s",
                self.upstream.server,
                reason,
            )
        self.upstream.failed(reason, asyncio.get_running_loop().time())
        if was_up:
            self.when_left()

    async def _watch(self) -> None:
        """Watch while questions wait, and while it is down."""
        loop = asyncio.get_running_loop()
        while self._waiting or not self.is_up:
            if not self.is_up:
                await self._probe(_RETRY_SECONDS)
                if not self.is_up:
                    await asyncio.sleep(_RETRY_SECONDS)
            elif loop.time() - self._heard_at < _PROBE_SECONDS:
                await asyncio.sleep(_PROBE_SECONDS)
            else:
                await self._probe(self._heard_at + SILENT_SECONDS - loop.time())
                if loop.time() - self._heard_at >= SILENT_SECONDS:
                    self.fail(f"silent for {SILENT_SECONDS:g} s")

    async def _probe(self, seconds: float) -> None:
        """Ask for the version; any reply within so many seconds is a sign of life."""
        reported: asyncio.Future[Ask] = asyncio.get_running_loop().create_future()
        ask = Ask(self.upstream, _VERSION, len(_VERSION), reported.set_result)
        try:
            ask.over_udp()
            with suppress(TimeoutError):
                async with asyncio.timeout(max(seconds, 0.0)):
                    answered = await reported
                    if answered.verdict is not None:
                        self.heard()
                    elif answered.fault is not None:
                        self.fail(answered.fault)
                        await asyncio.sleep(_RETRY_SECONDS)
        finally:
            ask.close()
