"""Addresses of DNS servers as people write them in flags and configuration.

In: `ip`, `ip:port`, `[v6]`, `[v6]:port`, a bare IPv6 address, and where it is allowed
`hostname` or `hostname:port`.  Out: a ServerAddress in canonical form, so that two spellings of
one server are equal.  Source: the values of `upstreamNameservers` and `stubDomains`.
"""

import re
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address
from typing import Final

from kubedns.dns.names import parse_name, quoted

DNS_PORT: Final = 53

_NUMBER = re.compile(r"[0-9]+|0[xX][0-9a-fA-F]*")
_USUAL_PORTS: Final = frozenset((DNS_PORT, 853, *range(1024, 10_000)))
"""Ports that four digits of an IPv6 address can be mistaken for."""


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """A DNS server: `host` is a canonical IP address, or a lower-case hostname without final dot."""

    host: str
    port: int = DNS_PORT

    @property
    def is_ip(self) -> bool:
        """Whether `host` is an address; a hostname must be resolved before it can be asked."""
        return ":" in self.host or self.host.rpartition(".")[2].isdigit()

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_server(text: str, *, hostnames: bool) -> ServerAddress:
    """Return the server that a text names; raises ValueError with a reason fit for a person.

    Addresses that no server can have (unspecified, multicast, with a zone id) are refused.
    """
    host, port = _split(text.strip())
    if ":" in host or ends_in_a_number(host):
        return ServerAddress(_canonical_address(host, text), port)
    if not hostnames:
        raise ValueError(f"{quoted(text)} is not an IP address")
    try:
        return ServerAddress(parse_name(host), port)
    except ValueError as error:
        raise ValueError(f"{quoted(text)} is neither an IP address nor a hostname: {error}") from error


def ends_in_a_number(name: str) -> bool:
    """Whether a name would be read as an IPv4 address by some readers (`127.1`, `0x7f000001`), or is one."""
    return _NUMBER.fullmatch(name.removesuffix(".").rpartition(".")[2]) is not None


def doubt_about_port(text: str) -> str:
    """Return a warning where what is meant as the port is the last group of an IPv6 address; else nothing."""
    host, _, last = text.strip().rpartition(":")
    if not last.isdecimal() or int(last) not in _USUAL_PORTS:
        return ""
    try:
        IPv6Address(host)
        IPv6Address(text.strip())
    except ValueError:
        return ""
    return f"{quoted(text)} is one IPv6 address, at port {DNS_PORT}; for port {last} write [{host}]:{last}"


def _split(text: str) -> tuple[str, int]:
    """Take host and port apart; brackets are only for IPv6, without them two colons are an IPv6 address."""
    if not text:
        raise ValueError("the server's address is empty")
    if "#" in text:
        raise ValueError(f"{quoted(text)} has its port after '#'; write it as ip:port or [v6]:port")
    if text.startswith("["):
        host, bracket, rest = text[1:].partition("]")
        if not bracket or ":" not in host or (rest and not rest.startswith(":")):
            raise ValueError(f"{quoted(text)} is not of the form [v6] or [v6]:port")
        return host, _port(rest[1:], text) if rest else DNS_PORT
    if text.count(":") == 1:
        host, _, port = text.partition(":")
        if not host:
            raise ValueError(f"{quoted(text)} has a port but no address")
        return host, _port(port, text)
    return text, DNS_PORT


def _port(digits: str, text: str) -> int:
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 5 and 1 <= int(digits) <= 65535):
        raise ValueError(f"{quoted(text)}: {quoted(digits)} is not a port from 1 to 65535")
    return int(digits)


def _canonical_address(host: str, text: str) -> str:
    if "%" in host:
        raise ValueError(f"{quoted(text)} has a zone id, which is not supported")
    try:
        address = ip_address(host)
    except ValueError:
        raise ValueError(f"{quoted(text)} is not an IP address") from None
    if address.is_unspecified or address.is_multicast or host == "255.255.255.255":
        raise ValueError(f"{quoted(text)} is not an address that a server can have")
    return str(address)
