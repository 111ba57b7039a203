"""The other programs of the pod, each by its own account, read again and again.

In: the JSON at a program's `/status`.  Out: the account as it was last read, or why it can't be;
when the program was seen to have restarted.  Nothing is asked of the program because of a request.
"""

from collections import deque
from typing import Final

from healthz.account import Account, parse_account
from healthz.fetch import FetchError, fetch
from healthz.schedule import Clock

INTERVAL: Final = 5.0
HOUR: Final = 3600.0
_TIMEOUT: Final = 2.0
_MOST_RESTARTS: Final = 1000


class Program:
    """One program: `account` is None while it can't be read, and `failure` then says why.

    `failure` is empty before the first reading.  `read_at` and `restarts`, the times at which a new
    start was noticed, are of the monotonic clock.
    """

    def __init__(self, name: str, url: str, clock: Clock) -> None:
        self.name = name
        self.url = url
        self.account: Account | None = None
        self.failure = ""
        self.read_at = 0.0
        self.restarts: deque[float] = deque(maxlen=_MOST_RESTARTS)
        self._clock = clock
        self._started: float | None = None

    async def read(self) -> None:
        """Read the account once."""
        try:
            answer = await fetch(self.url, _TIMEOUT)
            if answer.status != 200:
                raise FetchError(f"HTTP {answer.status}")
            account = parse_account(answer.body)
        except (FetchError, ValueError, RecursionError) as error:
            self.account, self.failure = None, str(error)
            return
        self.account, self.failure, self.read_at = account, "", self._clock()
        if self._started not in {None, account.started}:
            self.restarts.append(self.read_at)
        self._started = account.started

    async def dnsmasq_started(self) -> float | None:
        """Read the account now; return since when the nanny's dnsmasq is up, None where that is not known."""
        await self.read()
        return self.account.dnsmasq.started if self.account and self.account.dnsmasq else None

    def restarts_within(self, seconds: float, now: float) -> int:
        """Return how many restarts were noticed in so many seconds before `now`."""
        return sum(now - moment <= seconds for moment in self.restarts)
