"""A line for every query: who asked what, what came of it, how long it took, who answered.

In: each message with its reply, as the transport tells it.  Out: log lines, at most
MOST_LINES_PER_SECOND; a line says how many were left out.  A name is written with every octet
escaped that is no visible ASCII (RFC 4343 2.1), so that no client writes lines of its own.
"""

import asyncio
import logging
from collections.abc import Callable
from time import monotonic
from typing import Final

from kubedns.dns import numbers
from kubedns.dns.names import Labels, parse_domain, to_text
from kubedns.dns.query import Query, Rejected, parse_query
from kubedns.shared.durations import format_duration
from kubedns.shared.querylogging import QueryLogging
from kubedns.shared.reply import Answered, Observer

_log = logging.getLogger(__name__)
MOST_LINES_PER_SECOND: Final = 200
_FLAGS: Final = (
    (numbers.QR, "qr"),
    (numbers.AA, "aa"),
    (numbers.TC, "tc"),
    (numbers.RD, "rd"),
    (numbers.RA, "ra"),
    (0x20, "ad"),
    (0x10, "cd"),
)
_CLASSES: Final = {numbers.IN: "", numbers.CH: "CH ", 4: "HS ", 255: "ANY "}


class QueryLog:
    """Logs what the key `logQueries` asks for, as long as it does; with `always` every query, for ever.

    `observe` sets who is told of each message, None for nobody: nothing is told while nothing is
    logged.  `took_full_path` says of the message told of, and forgets, whether it was not answered
    from what was packed before.
    """

    def __init__(
        self, observe: Callable[[Observer | None], None], took_full_path: Callable[[], bool], *, always: bool
    ) -> None:
        self._observe = observe
        self._took_full_path = took_full_path
        self._always = always
        self._wanted: QueryLogging | None = None
        self._domains: tuple[Labels, ...] = ()
        self._end: asyncio.TimerHandle | None = None
        self._second = 0
        self._lines = 0
        self._left_out = 0
        if always:
            observe(self._note)

    def configure(self, wanted: QueryLogging | None) -> None:
        """Log from now on what is wanted; the time does not begin again while the same is wanted."""
        if wanted == self._wanted:
            return
        self._wanted = wanted
        if self._always:
            return
        if wanted is None:
            self._stop("logQueries is gone: no more queries are logged")
            return
        if self._end is not None:
            self._end.cancel()
        seconds = format_duration(wanted.seconds)
        self._domains = tuple(parse_domain(domain, underscores=True) for domain in wanted.domains)
        self._end = asyncio.get_running_loop().call_later(
            wanted.seconds, self._stop, f"no more queries are logged: the {seconds} of logQueries are over"
        )
        where = f"below {', '.join(wanted.domains)}" if wanted.domains else "of every name"
        _log.info("logQueries: queries %s are logged for %s", where, seconds)
        self._observe(self._note)

    def stop(self) -> None:
        """Log no more, at the end of the program."""
        if self._end is not None:
            self._end.cancel()

    def _stop(self, why: str) -> None:
        if self._end is not None:
            self._end.cancel()
            self._end = None
            self._observe(None)
            self._tell_left_out()
            _log.info("%s", why)

    def _note(self, answered: Answered) -> None:
        full_path = self._took_full_path()
        second = int(monotonic())
        if second != self._second:
            self._tell_left_out()
            self._second, self._lines = second, 0
        full = self._lines >= MOST_LINES_PER_SECOND
        if not full or self._domains:
            query = parse_query(answered.message)
            if self._domains and not (isinstance(query, Query) and self._is_wanted(query.labels)):
                return
            if not full:
                self._lines += 1
                _log.info("%s", line_of(answered, query, full_path=full_path))
                return
        self._left_out += 1

    def _is_wanted(self, labels: Labels) -> bool:
        return any(labels[len(labels) - len(domain) :] == domain for domain in self._domains)

    def _tell_left_out(self) -> None:
        if self._left_out:
            _log.info(
                "%d more queries are left out: at most %d a second", self._left_out, MOST_LINES_PER_SECOND
            )
            self._left_out = 0


def line_of(answered: Answered, query: Query | Rejected | None, *, full_path: bool) -> str:
    """Return the line of a message whose question is `query`.

    The last word says who answered: `zone` with an answer made for it, `fast` from what was packed before, the
    address of a server (`upstream` where that is not known), or `nobody` where none did.
    """
    host, port = answered.client
    client = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    asked = "no question"
    if isinstance(query, Query):
        qclass = _CLASSES.get(query.qclass, f"CLASS{query.qclass} ")
        asked = f"{qclass}{numbers.type_name(query.qtype)} {to_text(query.labels)}"
    head = f"query {client} {'tcp' if answered.tcp else 'udp'} {asked}"
    microseconds = answered.seconds * 1e6
    if answered.reply is None:
        return f"{head} no reply, {microseconds:.0f} us"
    flags = int.from_bytes(answered.reply[2:4])
    rcode = query.rcode if isinstance(query, Rejected) else flags & 0xF
    names = ",".join(name for bit, name in _FLAGS if flags & bit)
    own = (
        "zone"
        if full_path
        else "fast"
        if flags & numbers.AA
        else "nobody"
        if rcode == numbers.SERVFAIL
        else "upstream"
    )
    return (
        f"{head} {numbers.rcode_name(rcode)} {names} {len(answered.reply)} octets, {microseconds:.0f} us, "
        f"{answered.by or own}"
    )
