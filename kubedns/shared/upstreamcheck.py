"""Whether the name servers in force are alive: each is asked again and again for something cheap.

In: the servers, each with the domain that it is asked for.  Out: an UpstreamReport for each, one
log line per change.  The question is one that the server must answer: the NS records of the root,
or the SOA of its stub domain; any reply says that it is alive, REFUSED too.  Nothing depends on the
result but what is shown: questions of clients go where they would go anyhow.
"""

import asyncio
import logging
import secrets
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NoReturn

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from kubedns.dns.names import parse_domain, to_wire
from kubedns.shared.report import UpstreamReport
from kubedns.shared.servers import ServerAddress

Target = tuple[ServerAddress, str]
"""A server, and the stub domain that it serves or `.` for all other names."""

PERIOD: Final = 5.0
_WITHIN: Final = 2.0
_TRIES: Final = 2
"""Datagrams are lost; a server is down when it left so many in a row without a reply."""
_HEADER: Final = b"\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00"
_NS: Final = b"\x00\x02\x00\x01"
_SOA: Final = b"\x00\x06\x00\x01"
_QR: Final = 0x80
_log = logging.getLogger(__name__)


class UpstreamChecks:
    """Asks what `targets` returns, which is called again each time; `ask_all` and `run` do the work."""

    def __init__(self, targets: Callable[[], Iterable[Target]]) -> None:
        self._targets = targets
        self._reports: dict[Target, UpstreamReport] = {}
        self._failures: dict[Target, Counter[str]] = {}

    async def run(self) -> NoReturn:
        """Ask all of them every PERIOD, for ever."""
        while True:
            await self.ask_all()
            await asyncio.sleep(PERIOD)

    async def ask_all(self) -> None:
        """Ask each server once, all at the same time, and forget those that are not in force any more."""
        targets = list(dict.fromkeys(self._targets()))
        for gone in self._reports.keys() - set(targets):
            del self._reports[gone], self._failures[gone]
        for target in targets:
            self._failures.setdefault(target, Counter())
            self._reports.setdefault(target, UpstreamReport(str(target[0]), target[1], None))
        await asyncio.gather(*map(self._ask, targets))

    def reports(self) -> Sequence[UpstreamReport]:
        """Return how each server in force did when it was asked last."""
        return list(self._reports.values())

    async def _ask(self, target: Target) -> None:
        server, domain = target
        begun = asyncio.get_running_loop().time()
        reason = await _fault(server, domain)
        latency = asyncio.get_running_loop().time() - begun
        before, failures = self._reports[target], self._failures[target]
        if reason:
            failures[reason] += 1
            if before.up is not False:
                _log.warning("name server %s (%s) does not answer: %s", server, domain, reason)
        elif before.up is False:
            _log.info("name server %s (%s) answers again", server, domain)
        self._reports[target] = UpstreamReport(
            str(server), domain, not reason, before.latency if reason else latency, dict(failures), reason
        )


async def _fault(server: ServerAddress, domain: str) -> str:
    """Return why a server does not answer: timeout, refused or unreachable; empty when it does."""
    reason = ""
    for _ in range(_TRIES):
        try:
            async with asyncio.timeout(_WITHIN):
                await _exchange(server, domain)
        except TimeoutError:
            reason = "timeout"
        except ConnectionRefusedError:
            reason = "refused"
        except OSError:
            reason = "unreachable"
        else:
            return ""
    return reason


async def _exchange(server: ServerAddress, domain: str) -> None:
    """Send the question and wait for a reply to it; raises OSError."""
    loop = asyncio.get_running_loop()
    name = b"\x00" if domain == "." else to_wire(parse_domain(domain, underscores=True))
    query = secrets.token_bytes(2) + _HEADER + name + (_NS if domain == "." else _SOA)
    replied: asyncio.Future[None] = loop.create_future()
    transport, _ = await loop.create_datagram_endpoint(
        lambda: _Waiting(query[:2], replied), remote_addr=(server.host, server.port)
    )
    try:
        transport.sendto(query)
        await replied
    finally:
        transport.close()


class _Waiting(asyncio.DatagramProtocol):
    """Waits for a reply that bears an ID; the socket is connected, so it is the server's."""

    def __init__(self, message_id: bytes, replied: "asyncio.Future[None]") -> None:
        self._id = message_id
        self._replied = replied

    def datagram_received(self, data: bytes, _addr: object) -> None:
        if data[:2] == self._id and len(data) >= 12 and data[2] & _QR and not self._replied.done():
            self._replied.set_result(None)

    def error_received(self, error: Exception) -> None:
        if not self._replied.done():
            self._replied.set_exception(error)


def upstream_families(prefix: str, reports: Iterable[UpstreamReport]) -> list[Metric]:
    """Return the series of the checks; `prefix` begins their names."""
    labels = ["server", "domain"]
    up = GaugeMetricFamily(
        f"{prefix}_upstream_up", "1 while a name server answers the check, else 0.", labels=labels
    )
    latency = GaugeMetricFamily(
        f"{prefix}_upstream_check_latency_seconds", "Time to its last reply to the check.", labels=labels
    )
    failures = CounterMetricFamily(
        f"{prefix}_upstream_check_failures",
        "Checks of a name server without a reply, by reason: timeout, refused, unreachable.",
        labels=[*labels, "reason"],
    )
    for report in reports:
        names = [report.server, report.domain]
        if report.up is not None:
            up.add_metric(names, float(report.up))
        if report.latency is not None:
            latency.add_metric(names, report.latency)
        for reason, count in report.failures.items():
            failures.add_metric([*names, reason], count)
    return [up, latency, failures]
