"""dnsmasq's cache statistics -> CacheTotals, by five questions in class CHAOS.

Source: dnsmasq(8), "--no-ident": cachesize.bind, insertions.bind, evictions.bind, hits.bind and
misses.bind, each a TXT record of one string with a decimal number.
"""

import logging
import re
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Final

import dnslib

from healthz.counters import CacheStatistics, CacheTotals
from healthz.schedule import Clock
from healthz.traffic import OwnQuestions
from kubedns.dns.client import DNSExchangeError
from kubedns.dns.whole import exchange
from kubedns.shared.servers import ServerAddress

_log = logging.getLogger(__name__)
_FIELDS: Final = ("hits", "misses", "insertions", "evictions", "size")
"""In the order of the questions: each of them is a hit of its own, so these come first."""
_NAMES: Final = {"size": "cachesize.bind"}
_NUMBER: Final = re.compile(rb"[0-9]{1,20}")


class _NoStatisticsError(Exception):
    """The server answered, but with no number; the text says to what."""


class DnsmasqStatistics:
    """The figures of one dnsmasq; `failure` is why the last reading failed, None when it did not.

    `own_before` is what exechealthz had asked of dnsmasq when it counted them, at `read_at` of the
    monotonic clock.  `started` returns since when dnsmasq is up, None where that is not known.
    """

    def __init__(
        self,
        server: ServerAddress,
        timeout: float,
        own: OwnQuestions,
        clock: Clock,
        started: Callable[[], Awaitable[float | None]],
    ) -> None:
        self.server = server
        self.cache = CacheTotals()
        self.errors = 0
        self.failure: str | None = None
        self.own_before = OwnQuestions()
        self.read_at: float | None = None
        self._timeout = timeout
        self._own = own
        self._clock = clock
        self._started = started
        self._up_since: float | None = None
        self._told: bool | None = None

    async def read(self) -> None:
        """Read all five figures; a reading that fails is counted and leaves the figures alone.

        Figures during which dnsmasq restarted, so that nobody knows whose they are, are dropped.
        """
        up_since = await self._started()
        own = replace(self._own)
        try:
            figures = {field: await self._figure(field) for field in _FIELDS}
        except (DNSExchangeError, _NoStatisticsError) as error:
            self.errors += 1
            self.failure = str(error)
            self._tell()
            return
        self.failure = None
        self._tell()
        if await self._started() != up_since:
            return
        restarted = None not in {up_since, self._up_since} and up_since != self._up_since
        self.cache.update(CacheStatistics(**figures), restarted=restarted)
        self.own_before, self.read_at, self._up_since = own, self._clock(), up_since

    async def _figure(self, field: str) -> int:
        name = _NAMES.get(field, f"{field}.bind")
        question = dnslib.DNSRecord.question(name, "TXT", "CH")
        self._own.hits += 1  # as which dnsmasq counts what it answers by itself
        reply = await exchange(question, (self.server.host, self.server.port), self._timeout)
        texts = [record.rdata.data for record in reply.rr if isinstance(record.rdata, dnslib.TXT)]
        if len(texts) != 1 or len(texts[0]) != 1 or not _NUMBER.fullmatch(texts[0][0]):
            raise _NoStatisticsError(f"{self.server}: no number in the answer to {name}; is it dnsmasq?")
        return int(texts[0][0])

    def _tell(self) -> None:
        works = self.failure is None
        if works == self._told:
            return
        if not works:
            _log.warning("dnsmasq's statistics can't be read: %s", self.failure)
        elif self._told is not None:
            _log.info("dnsmasq's statistics are read again from %s", self.server)
        self._told = works
