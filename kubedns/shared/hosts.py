"""Lines of hosts(5): an address, then its names; `#` begins a comment.

In: the text of the `hosts` key.  Out: the same in canonical form, one line per address as
written, comments and blank lines left out.  The order stays: the first line that names an
address gives its reverse name.
"""

from ipaddress import ip_address

from kubedns.dns.names import parse_name, quoted
from kubedns.shared.servers import ends_in_a_number


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
