"""One question to one DNS server -> an Outcome.

Healthy is NOERROR with at least one record in the answer, and nothing else.  The type CH asks
TXT in class CHAOS, which kubedns and dnsmasq answer by themselves.  Differs: the original asks
ANY by default, which servers may refuse (RFC 8482), and takes any reply for a good one.
"""

from dataclasses import dataclass
from typing import Final

import dnslib

from healthz.results import Outcome
from healthz.schedule import Clock
from healthz.traffic import OwnQuestions
from kubedns.dns.client import DNSExchangeError
from kubedns.dns.whole import exchange
from kubedns.shared.servers import ServerAddress

QTYPES: Final = ("A", "AAAA", "CNAME", "MX", "NS", "PTR", "SOA", "SRV", "TXT")
CHAOS: Final = "CH"

_SHOWN_RECORDS = 4
_READABLE = (
    dnslib.A,
    dnslib.AAAA,
    dnslib.CNAME,
    dnslib.MX,
    dnslib.NS,
    dnslib.PTR,
    dnslib.SOA,
    dnslib.SRV,
    dnslib.TXT,
)
"""Types that dnslib can always write as text; others it may have parsed and yet fail to write."""


@dataclass(frozen=True, slots=True)
class Probe:
    """What to ask: `qtype` is one of QTYPES or CHAOS, `interval` is in seconds."""

    label: str
    server: ServerAddress
    name: str
    interval: float
    qtype: str

    @property
    def timeout(self) -> float:
        """Seconds that the server has to answer; below the interval."""
        return min(0.8 * self.interval, 5.0)

    def __str__(self) -> str:
        return f"{self.name} {self.qtype} at {self.server}"


async def ask(probe: Probe, clock: Clock, dnsmasq: ServerAddress, own: OwnQuestions) -> Outcome:
    """Ask once, counted in `own`; the duration is the time to the reply, None when there was none.

    What dnsmasq passes on carries the AA bit of kubedns's answer, what it has in its cache does not.
    """
    qtype, qclass = ("TXT", "CH") if probe.qtype == CHAOS else (probe.qtype, "IN")
    question = dnslib.DNSRecord.question(probe.name, qtype, qclass)
    own.hits += probe.server == dnsmasq and probe.qtype == CHAOS
    own.kubedns += probe.server != dnsmasq
    begun = clock()
    try:
        reply = await exchange(question, (probe.server.host, probe.server.port), probe.timeout)
    except DNSExchangeError as error:
        return Outcome(clock(), None, str(error))
    finished = clock()
    if probe.server == dnsmasq and probe.qtype != CHAOS:
        own.hits += not reply.header.aa
        own.misses += reply.header.aa
        own.kubedns += reply.header.aa
    return Outcome(finished, finished - begun, _failure(probe, reply), _answer(reply))


def _failure(probe: Probe, reply: dnslib.DNSRecord) -> str | None:
    rcode = dnslib.RCODE.forward.get(reply.header.rcode, f"RCODE {reply.header.rcode}")
    if reply.header.rcode != 0:
        return f"{rcode} for {probe}"
    return None if reply.rr else f"NOERROR without an answer for {probe}"


def _answer(reply: dnslib.DNSRecord) -> bytes:
    shown = [_text(record) for record in reply.rr[:_SHOWN_RECORDS]]
    more = len(reply.rr) - len(shown)
    return (", ".join(shown) + (f" and {more} more" if more else "")).encode()


def _text(record: dnslib.RR) -> str:
    return str(record.rdata) if isinstance(record.rdata, _READABLE) else str(dnslib.QTYPE[record.rtype])
