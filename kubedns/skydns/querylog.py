"""A line for every query, at log verbosity 3 and above only: what was asked, what came of it."""

import logging

from kubedns.dns import numbers
from kubedns.dns.names import to_text
from kubedns.dns.query import Query, parse_query
from kubedns.shared.reply import Answered

_log = logging.getLogger(__name__)


def log_query(answered: Answered) -> None:
    """Log one message and its reply."""
    query, reply = parse_query(answered.message), answered.reply
    asked = (
        f"{to_text(query.labels)} class {query.qclass} type {query.qtype}"
        if isinstance(query, Query)
        else "no question"
    )
    said = f"rcode {reply[3] & 0xF}, {len(reply)} octets" if reply is not None else "nothing"
    cut = ", truncated" if reply is not None and reply[2] << 8 & numbers.TC else ""
    over = "TCP" if answered.tcp else "UDP"
    _log.debug("%s over %s: %s%s in %.3f ms", asked, over, said, cut, answered.seconds * 1000)
