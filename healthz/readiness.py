"""kubedns's own word on its readiness -> a Check, for the page alone."""

from typing import Final

import aiohttp

from healthz.counters import PROBE_BOUNDS
from healthz.results import Check, Outcome
from healthz.schedule import Clock
from kubedns.shared.histogram import Histogram

INTERVAL: Final = 5.0
_TIMEOUT = aiohttp.ClientTimeout(2.0)
_SHOWN_OCTETS = 300


class Readiness:
    """What the readiness url of kubedns said last."""

    def __init__(self, url: str, clock: Clock) -> None:
        self._url = url
        self._clock = clock
        self.check = Check(
            url,
            "kubedns is ready",
            f"GET {url}",
            stale_after=3 * INTERVAL,
            latency=Histogram(PROBE_BOUNDS),
        )

    async def read(self) -> None:
        """GET the url: status 200 is healthy, the beginning of the body is the output or the reason."""
        begun = self._clock()
        try:
            async with (
                aiohttp.ClientSession(timeout=_TIMEOUT) as session,
                session.get(self._url, allow_redirects=False) as response,
            ):
                body = (await response.content.read(_SHOWN_OCTETS)).strip()
                status = response.status
        except TimeoutError:
            self.check.record(Outcome(self._clock(), None, f"no answer within {_TIMEOUT.total:g} s"))
        except (aiohttp.ClientError, OSError) as error:
            self.check.record(Outcome(self._clock(), None, f"not reachable: {error}"))
        else:
            finished = self._clock()
            failure = None if status == 200 else f"HTTP {status}"
            self.check.record(Outcome(finished, finished - begun, failure, body))
