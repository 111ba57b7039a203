"""dnsmasq's cache statistics -> CacheTotals, by five questions in class CHAOS.

Source: dnsmasq(8), "--no-ident": cachesize.bind, insertions.bind, evictions.bind, hits.bind and
misses.bind, each a TXT record with a decimal number.
"""

import asyncio
import logging
from dataclasses import fields

import dnslib

from healthz.counters import CacheStatistics, CacheTotals
from kubedns.dns.client import DNSExchangeError
from kubedns.dns.whole import exchange
from kubedns.shared.servers import ServerAddress

_log = logging.getLogger(__name__)
_NAMES = {"size": "cachesize.bind"}


class _NoStatisticsError(Exception):
    """The server answered, but with no number; the text says to what."""


class DnsmasqStatistics:
    """The figures of one dnsmasq; `failure` is why the last reading failed, None when it did not."""

    def __init__(self, server: ServerAddress, timeout: float) -> None:
        self.server = server
        self.cache = CacheTotals()
        self.errors = 0
        self.failure: str | None = None
        self._timeout = timeout
        self._told: bool | None = None

    async def read(self) -> None:
        """Read all five figures; a reading that fails is counted and leaves the figures alone."""
        names = [field.name for field in fields(CacheStatistics)]
        try:
            figures = await asyncio.gather(*map(self._figure, names))
        except (DNSExchangeError, _NoStatisticsError) as error:
            self.errors += 1
            self.failure = str(error)
        else:
            self.cache.update(CacheStatistics(*figures))
            self.failure = None
        self._tell()

    async def _figure(self, field: str) -> int:
        name = _NAMES.get(field, f"{field}.bind")
        question = dnslib.DNSRecord.question(name, "TXT", "CH")
        reply = await exchange(question, (self.server.host, self.server.port), self._timeout)
        texts = [b"".join(record.rdata.data) for record in reply.rr if isinstance(record.rdata, dnslib.TXT)]
        if len(texts) != 1 or not (texts[0].isdigit() and len(texts[0]) <= 20):
            raise _NoStatisticsError(f"{self.server}: no number in the answer to {name}; is it dnsmasq?")
        return int(texts[0])

    def _tell(self) -> None:
        works = self.failure is None
        if works == self._told:
            return
        if not works:
            _log.warning("dnsmasq's statistics can't be read: %s", self.failure)
        elif self._told is not None:
            _log.info("dnsmasq's statistics are read again from %s", self.server)
        self._told = works
