"""Rules for names, numbers and addresses that several kinds share, in the server's words.

In: the name of a field and its text.  Out: the causes of a refusal, none when it can stand.

Source: apimachinery pkg/util/validation.
"""

import re
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from kubedns.local.api.errors import Cause, invalid_value


@dataclass(frozen=True, slots=True)
class NameRule:
    """A form of name: its pattern, what the server says about it, its greatest length."""

    pattern: re.Pattern[str]
    text: str
    longest: int


LABEL_1123: Final = NameRule(
    re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"),
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and "
    "end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
    63,
)
LABEL_1035: Final = NameRule(
    re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?"),
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic "
    "character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for "
    "validation is '[a-z]([-a-z0-9]*[a-z0-9])?')",
    63,
)
SUBDOMAIN: Final = NameRule(
    re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"),
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must "
    "start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
    253,
)
PATH_SEGMENT: Final = NameRule(re.compile(r"(?!\.\.?$)[^/%]+"), "may not contain '/' or '%'", 253)
CONFIG_KEY: Final = NameRule(
    re.compile(r"[-._a-zA-Z0-9]+"),
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or "
    "'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')",
    253,
)
LABEL_VALUE: Final = NameRule(
    re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?"),
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must "
    "start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used "
    "for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
    63,
)
PROTOCOLS: Final = ("SCTP", "TCP", "UDP")


def name_causes(field: str, text: str, rule: NameRule) -> Iterator[Cause]:
    """Yield what is wrong with a name."""
    if not rule.pattern.fullmatch(text):
        yield invalid_value(field, text, rule.text)
    if len(text) > rule.longest:
        yield invalid_value(field, text, f"must be no more than {rule.longest} bytes")


def port_causes(field: str, number: int) -> Iterator[Cause]:
    """Yield what is wrong with a port number."""
    if not 1 <= number <= 65535:
        yield invalid_value(field, number, "must be between 1 and 65535, inclusive")


def address_causes(field: str, text: str, version: int | None = None) -> Iterator[Cause]:
    """Yield what is wrong with an address; `version` is 4, 6, or None for either."""
    found = address_version(text)
    if found is None:
        detail = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
        yield invalid_value(field, text, detail)
    elif version is not None and found != version:
        yield invalid_value(field, text, f"must be an IPv{version} address")


def address_version(text: str) -> int | None:
    """Return 4 or 6, or None for what is no address; zone ids are not taken."""
    for version, family in ((4, socket.AF_INET), (6, socket.AF_INET6)):
        try:
            socket.inet_pton(family, text)
        except (OSError, ValueError):
            continue
        return version
    return None
