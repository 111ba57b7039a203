"""Is a reply the one that a case wants?

A case is a JSON object: `name`, `type`, perhaps `class`, and `want`: rcode, answer, authority,
additional and flags.  Records are text and compared as sets; of an SRV record `*` stands for any
weight; `any` for at least one answer, or for anything in the other sections; null or absent
sections do not matter.  A missing flag is a difference, one too many is not.
"""

from collections import Counter
from typing import Any

from tests.protocol.reading import Record, Reply

SERIAL_AT = 2


def differences(want: dict[str, Any], reply: Reply) -> list[str]:
    """Return what is wrong, in words; nothing when the case holds."""
    found = []
    if reply.rcode != want["rcode"]:
        found.append(f"rcode {reply.rcode}, not {want['rcode']}")
    if missing := set(want.get("flags", ())) - reply.flags:
        found.append(f"without {', '.join(sorted(missing))}")
    for section in ("answer", "authority", "additional"):
        wanted, records = want.get(section), getattr(reply, section)
        if wanted == "any":
            if section == "answer" and not records:
                found.append("no answer")
        elif wanted is not None and not _equal(wanted, records):
            found.append(f"{section} {sorted(map(_text, records))}, not {sorted(wanted)}")
    return found


def _equal(wanted: list[str], records: tuple[Record, ...]) -> bool:
    left = Counter(tuple(_text(record).split()) for record in records)
    exact = [tuple(text.split()) for text in wanted if " * " not in text]
    loose = [tuple(text.split()) for text in wanted if " * " in text]
    left.subtract(exact)
    for fields in loose:
        match = next((other for other in left if left[other] > 0 and _like(fields, other)), None)
        if match is None:
            return False
        left[match] -= 1
    return not any(left.values())


def _like(pattern: tuple[str, ...], fields: tuple[str, ...]) -> bool:
    return len(pattern) == len(fields) and all(
        want in {"*", got} for want, got in zip(pattern, fields, strict=True)
    )


def _text(record: Record) -> str:
    rdata = record.rdata
    if record.rdtype == "SOA":
        fields = rdata.split()
        fields[SERIAL_AT] = "<serial>"
        rdata = " ".join(fields)
    return f"{record.owner} {record.ttl} IN {record.rdtype} {rdata}"
