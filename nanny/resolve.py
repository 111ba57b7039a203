"""Addresses of servers that are given by name.

In: hostnames.  Out: their addresses in a stable order, and for the rest why there are none.
Names at or below the cluster domain are asked of kube-dns, all others of the system's resolver.
A name that fails for the moment (no answer, SERVFAIL) keeps the addresses it had; one that has
none any more (NXDOMAIN, NODATA) loses them.

Differs: the original resolves once, at the start, and takes only a final `cluster.local` for the
cluster's, whatever the domain is.
"""

import asyncio
import socket
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final

from kubedns.dns import numbers
from kubedns.dns.client import DNSExchangeError, exchange
from kubedns.dns.names import address_text, parse_domain, to_wire
from kubedns.dns.records import Resolution as Answer
from kubedns.dns.records import resolution
from kubedns.shared.servers import ServerAddress

_TIMEOUT: Final = 2.0
_MOST_AT_ONCE: Final = 32
_HEADER = b"\0\0\1\0\0\1\0\0\0\0\0\0"
"""Of a query with RD set and one question."""
_NAME_HAS_NONE = {socket.EAI_NONAME, socket.EAI_NODATA}


@dataclass(frozen=True, slots=True)
class Resolution:
    """`addresses` by hostname, in a stable order; `failures`: hostname -> reason, for the others."""

    addresses: Mapping[str, tuple[str, ...]]
    failures: Mapping[str, str]


class _FailedError(Exception):
    """The name has no addresses now; `lasting` when its servers say so themselves."""

    def __init__(self, reason: str, *, lasting: bool) -> None:
        super().__init__(reason)
        self.lasting = lasting


class Resolver:
    """Owns the last known addresses of names, and the lookups that still hang."""

    def __init__(self, kubedns: ServerAddress, cluster_domains: Iterable[str]) -> None:
        self._kubedns = (kubedns.host, kubedns.port)
        self._suffixes = tuple(f".{domain}" for domain in cluster_domains)
        self._known: dict[str, tuple[str, ...]] = {}
        self._hanging: dict[str, asyncio.Future[tuple[str, ...]]] = {}

    async def resolve(self, names: Iterable[str]) -> Resolution:
        """Resolve names side by side, within a few seconds; addresses of other names are forgotten."""
        slots = asyncio.Semaphore(_MOST_AT_ONCE)
        wanted = tuple(names)
        answers = await asyncio.gather(*(self._addresses(name, slots) for name in wanted))
        failures: dict[str, str] = {}
        known: dict[str, tuple[str, ...]] = {}
        for name, answer in zip(wanted, answers, strict=True):
            if not isinstance(answer, _FailedError):
                known[name] = answer
            elif name in self._known and not answer.lasting:
                known[name] = self._known[name]
            else:
                failures[name] = str(answer)
        self._known = known
        return Resolution(known, failures)

    async def _addresses(self, name: str, slots: asyncio.Semaphore) -> tuple[str, ...] | _FailedError:
        ask = self._ask_kubedns if f".{name}".endswith(self._suffixes) else self._ask_system
        try:
            async with asyncio.timeout(_TIMEOUT), slots:
                found = await ask(name)
        except TimeoutError:
            return _FailedError(f"no answer within {_TIMEOUT:g} s", lasting=False)
        except _FailedError as error:
            return error
        return tuple(sorted(found, key=lambda text: (ip_address(text).version, ip_address(text).packed)))

    async def _ask_kubedns(self, name: str) -> set[str]:
        kinds = numbers.ADDRESS_OCTETS
        answers = await asyncio.gather(*(self._exchange(name, kind) for kind in kinds))
        found = {
            address_text(record.rdata)
            for answer, kind in zip(answers, kinds, strict=True)
            for record in answer.records
            if record.rtype == kind and len(record.rdata) == kinds[kind]
        }
        if not found:
            raise _FailedError(f"kube-dns says {_rcode(answers[0])}, without addresses", lasting=True)
        return found

    async def _exchange(self, name: str, kind: int) -> Answer:
        question = to_wire(parse_domain(name, underscores=True)) + kind.to_bytes(2) + numbers.IN.to_bytes(2)
        try:
            reply = await exchange(_HEADER + question, self._kubedns, _TIMEOUT)
        except DNSExchangeError as error:
            raise _FailedError(f"kube-dns {error}", lasting=False) from error
        answer = resolution(reply, numbers.HEADER_SIZE + len(question))
        if answer.rcode not in (numbers.NOERROR, numbers.NXDOMAIN):
            raise _FailedError(f"kube-dns says {_rcode(answer)}", lasting=False)
        return answer

    async def _ask_system(self, name: str) -> Sequence[str]:
        """Ask getaddrinfo(3) in a thread of its own; one that hangs is waited for again next time."""
        lookup = self._hanging.get(name)
        if lookup is None:
            lookup = self._hanging[name] = _lookup(name)
            lookup.add_done_callback(lambda _: self._hanging.pop(name, None))
        return await asyncio.shield(lookup)


def _rcode(answer: Answer) -> str:
    """Return the name of an answer's rcode, or its number where it has no name here."""
    return numbers.RCODE_NAMES.get(answer.rcode, f"rcode {answer.rcode}")


def _lookup(name: str) -> "asyncio.Future[tuple[str, ...]]":
    """Return the future addresses; a daemon thread, so that one that hangs does not delay the end."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[tuple[str, ...]] = loop.create_future()
    # Retrieved here already, so that a failure nobody waits for any more is not reported as lost.
    answer.add_done_callback(lambda done: done.cancelled() or done.exception())

    def deliver(found: tuple[str, ...], error: _FailedError | None) -> None:
        if answer.cancelled():
            return
        if error is not None:
            answer.set_exception(error)
        else:
            answer.set_result(found)

    def ask() -> None:
        found: tuple[str, ...] = ()
        failure = None
        try:
            infos = socket.getaddrinfo(name, None, type=socket.SOCK_DGRAM, flags=socket.AI_ADDRCONFIG)
            found = tuple({str(info[4][0]) for info in infos})
        except socket.gaierror as error:
            failure = _FailedError(str(error.strerror).lower(), lasting=error.errno in _NAME_HAS_NONE)
        except OSError as error:
            failure = _FailedError(str(error), lasting=False)
        try:
            loop.call_soon_threadsafe(deliver, found, failure)
        except RuntimeError:
            return  # the loop has ended

    threading.Thread(target=ask, name=f"resolve {name}", daemon=True).start()
    return answer
