"""kubedns's own word on its readiness -> a Check, for the page alone."""

from typing import Final

from healthz.counters import PROBE_BOUNDS
from healthz.fetch import FetchError, fetch
from healthz.results import Check, Outcome
from healthz.schedule import Clock
from kubedns.shared.histogram import Histogram

INTERVAL: Final = 5.0
_TIMEOUT: Final = 2.0
_SHOWN_OCTETS: Final = 300


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
            answer = await fetch(self._url, _TIMEOUT)
        except FetchError as error:
            self.check.record(Outcome(self._clock(), None, str(error)))
            return
        finished = self._clock()
        failure = None if answer.status == 200 else f"HTTP {answer.status}"
        body = answer.body[:_SHOWN_OCTETS].strip()
        self.check.record(Outcome(finished, finished - begun, failure, body))
