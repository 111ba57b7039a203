"""Class CH: who answers here (the convention of BIND, RFC 4892)."""

import socket

from kubedns import __version__
from kubedns.dns import numbers
from kubedns.dns.names import Labels
from kubedns.skydns.response import Answer
from kubedns.skydns.rrset import txt_rrset

_VERSION = f"kube-dns {__version__}".encode()


def chaos_text(name: Labels, qtype: int) -> Answer:
    """Answer a question of class CH; all but TXT at the four known names is refused."""
    if qtype == numbers.TXT:
        if name in ((b"version", b"bind"), (b"version", b"server")):
            return Answer(answer=[txt_rrset(name, 0, _VERSION)])
        if name in ((b"hostname", b"bind"), (b"id", b"server")):
            return Answer(answer=[txt_rrset(name, 0, socket.gethostname().encode("utf-8", "replace"))])
    return Answer(numbers.REFUSED, authoritative=False)
