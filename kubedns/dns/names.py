"""Domain names: labels, reverse names, names of pods.

`labels` run left to right: a tuple of lower-case bytes without the root.  A name's wire form is RFC 1035 3.1, without compression, root included.
"""

import re
import reprlib
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final

from kubedns.dns.numbers import LONGEST_LABEL, LONGEST_WRITTEN_NAME

Labels = tuple[bytes, ...]

_DNS_1123_LABEL = re.compile("[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_DNS_NAME_LABEL = re.compile("[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")
_repr = reprlib.Repr()
_repr.maxstring = 80
quoted: Final = _repr.repr
"""The repr of a value for an error message, cut short where it is long."""
_HEXADECIMAL = re.compile(rb"[0-9a-f]*")
_LENGTHS = tuple(bytes((length,)) for length in range(LONGEST_LABEL + 1))
"""The length octet of a label, by its length."""
IN_ADDR_ARPA: Final[Labels] = (b"in-addr", b"arpa")
IP6_ARPA: Final[Labels] = (b"ip6", b"arpa")


def parse_name(text: str, *, underscores: bool = True) -> str:
    """Return a domain name written by a person, in lower case without its final dot.

    Each label is a DNS-1123 label, with `underscores` also `_`.  Raises ValueError with the
    reason; the root alone is no name.
    """
    name = text.lower().removesuffix(".")
    if not name.isascii():
        raise ValueError(f"{quoted(text)} is not ASCII; write an international name in its xn-- form")
    if len(name) > LONGEST_WRITTEN_NAME:
        raise ValueError(f"{quoted(text)} is longer than {LONGEST_WRITTEN_NAME} characters")
    for label in name.split("."):
        if not label:
            raise ValueError(f"{quoted(text)} has an empty label")
        if not is_dns_1123_label(label) and not (underscores and _DNS_NAME_LABEL.fullmatch(label)):
            raise ValueError(f"{quoted(text)}: {quoted(label)} is not a DNS label")
    return name


def parse_domain(text: str, *, underscores: bool = False) -> Labels:
    """Return the labels of a domain name written by a person, lower-cased; otherwise as `parse_name`."""
    return tuple(parse_name(text, underscores=underscores).encode().split(b"."))


def is_dns_1123_label(text: str) -> bool:
    """Whether a text is what Kubernetes calls a DNS-1123 label (RFC 1123 2.1): no capitals."""
    return _DNS_1123_LABEL.fullmatch(text) is not None


def to_wire(labels: Labels) -> bytes:
    """Return the uncompressed wire form; each label must have 1 to 63 octets."""
    return b"".join([_LENGTHS[len(label)] + label for label in labels]) + b"\0"


def to_text(labels: Labels) -> str:
    """Return the name fully qualified, with its final dot; octets outside ASCII escaped (RFC 4343 2.1)."""
    return "".join(_escape(label) + "." for label in labels) or "."


def _escape(label: bytes) -> str:
    if label.replace(b"-", b"").replace(b"_", b"").isalnum():
        return label.decode("ascii")
    return "".join(
        f"\\{octet:03d}" if not 0x21 <= octet <= 0x7E else f"\\{octet:c}" if octet in b'.\\"' else chr(octet)
        for octet in label
    )


def pack_address(text: str) -> bytes:
    """Return an IPv4 or IPv6 address packed; raises ValueError for anything else, zone ids included."""
    address = ip_address(text)
    if isinstance(address, IPv6Address) and address.scope_id is not None:
        raise ValueError(f"{text!r} has a zone id")
    return address.packed


def address_text(packed: bytes) -> str:
    """Return the canonical text of a packed address (RFC 5952 for IPv6)."""
    return (
        f"{packed[0]}.{packed[1]}.{packed[2]}.{packed[3]}" if len(packed) == 4 else str(IPv6Address(packed))
    )


def address_of_reverse(labels: Labels) -> bytes | None:
    """Return the packed address that a reverse name stands for, or None when it is no full one."""
    if labels[-2:] == IN_ADDR_ARPA and len(labels) == 6:
        try:
            return IPv4Address(b".".join(labels[3::-1]).decode()).packed
        except ValueError:
            return None
    if labels[-2:] == IP6_ARPA and len(labels) == 34 and all(len(label) == 1 for label in labels[:32]):
        digits = b"".join(labels[31::-1])
        return bytes.fromhex(digits.decode()) if _HEXADECIMAL.fullmatch(digits) else None
    return None


def pod_address(label: bytes) -> bytes | None:
    """Return the packed address that the first label of a pod name spells, or None.

    `10-244-1-20` and, with dashes for colons, `fd00-244-3--30` (DNS spec 2.3.1).
    """
    text = label.decode("latin-1")
    if "." in text or ":" in text:
        return None
    for separator in ".:":
        try:
            return pack_address(text.replace("-", separator))
        except ValueError:
            continue
    return None
