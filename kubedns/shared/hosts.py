"""Lines of hosts(5): an address, then its names; `#` begins a comment.

In: the text of the `hosts` key.  Out: the same in canonical form, one line per address as
written, comments and blank lines left out.  The order stays: the first line that names an
address gives its reverse name.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address

from kubedns.dns.names import Labels, pack_address, parse_domain, parse_name, quoted
from kubedns.shared.servers import ends_in_a_number


@dataclass(frozen=True)
class Hosts:
    """The lines as a table: packed addresses by name, in order, and the name of each address.

    An address that several lines name has the first name of the first.
    """

    addresses: Mapping[Labels, tuple[bytes, ...]] = field(default_factory=dict)
    names: Mapping[bytes, Labels] = field(default_factory=dict)


def hosts_table(lines: str) -> Hosts:
    """Return the table of lines in canonical form."""
    addresses: dict[Labels, dict[bytes, None]] = {}
    names: dict[bytes, Labels] = {}
    for line in lines.splitlines():
        address, *words = line.split()
        packed = pack_address(address)
        for word in words:
            name = parse_domain(word, underscores=True)
            addresses.setdefault(name, {})[packed] = None
            names.setdefault(packed, name)
    return Hosts({name: tuple(found) for name, found in addresses.items()}, names)


def parse_hosts(text: str, apex: str, faults: list[str]) -> str:
    """Return the canonical lines, each `address name...` and a newline.

    `apex` is the cluster domain in lower case without final dot, or the empty string; names at
    and below it are faults: kube-dns alone answers there.  Faults are added to the list, each
    with its line number.
    """
    lines: dict[str, None] = {}
    for number, line in enumerate(text.split("\n"), 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        try:
            address = _address(words[0])
            names = " ".join(dict.fromkeys(_name(word, apex) for word in words[1:]))
            if not names:
                raise ValueError(f"{quoted(words[0])} has no name")
        except ValueError as error:
            faults.append(f"line {number}: {error}")
        else:
            lines[f"{address} {names}\n"] = None
    return "".join(lines)


def _address(word: str) -> str:
    try:
        address = ip_address(word)
    except ValueError:
        raise ValueError(f"{quoted(word)} is not an IP address") from None
    if "%" in word:
        raise ValueError(f"{quoted(word)} has a zone id, which is not supported")
    return str(address)


def _name(word: str, apex: str) -> str:
    name = parse_name(word)
    if ends_in_a_number(name):
        raise ValueError(f"{quoted(word)} is not a name")
    if apex and f".{name}".endswith(f".{apex}"):
        raise ValueError(f"{quoted(word)} is inside the cluster domain {apex}, where only kube-dns answers")
    return name
