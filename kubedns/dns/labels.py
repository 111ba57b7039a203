"""Labels as octets: the one place that walks them.

In: a message, or a name in wire form.  Out: labels in the case they came in, and where they end.
A walk never leaves the message, never goes beyond the limits of RFC 1035 2.3.4, and follows
pointers back only, so that its cost is bounded.  Source: RFC 1035 3.1 and 4.1.4.
"""

from kubedns.dns.numbers import LONGEST_LABEL, LONGEST_NAME, POINTER


class MalformedMessage(Exception):  # noqa: N818 - the name of what it is, a FORMERR
    """The octets are no DNS message; the text says where they cease to be one."""


def read_labels(octets: bytes, start: int) -> tuple[list[bytes], int]:
    """Return the labels in a row from an offset, and the offset of what ends them.

    That is the zero octet of the root, or a pointer: `octets[end]` tells.  Raises MalformedMessage.
    """
    labels: list[bytes] = []
    position, size = start, len(octets)
    while position < size:
        length = octets[position]
        if length == 0 or length >= POINTER:
            return labels, position
        if length > LONGEST_LABEL:
            raise MalformedMessage(f"label of unknown kind at octet {position}")
        after = position + 1 + length
        if after - start >= LONGEST_NAME:
            raise MalformedMessage(f"name longer than {LONGEST_NAME} octets at octet {start}")
        labels.append(octets[position + 1 : after])
        position = after
    raise MalformedMessage(f"ends within the name at octet {start}")


def name_end(octets: bytes, start: int) -> int:
    """Return the offset after a name that may end in a pointer, which is not followed; raises MalformedMessage."""
    _, end = read_labels(octets, start)
    return end + 2 if octets[end] else end + 1


class NameReader:
    """Reads the names of one message; those that pointers lead to are remembered."""

    def __init__(self, message: bytes) -> None:
        self._message = message
        self._known: dict[int, tuple[bytes, ...]] = {}

    def read(self, start: int) -> tuple[tuple[bytes, ...], int]:
        """Return the name at an offset, pointers followed, and the offset after it; raises MalformedMessage."""
        message = self._message
        labels, end = read_labels(message, start)
        after, lowest = end + 1, start
        jumps: list[tuple[int, int]] = []
        while message[end]:
            if end + 1 >= len(message):
                raise MalformedMessage(f"ends within the name at octet {start}")
            target = (message[end] & ~POINTER) << 8 | message[end + 1]
            if target >= lowest:
                raise MalformedMessage(f"compression pointer to octet {target} does not lead back")
            after = after if jumps else end + 2
            lowest = target
            jumps.append((target, len(labels)))
            if (suffix := self._known.get(target)) is not None:
                labels += suffix
                break
            row, end = read_labels(message, target)
            labels += row
        if 1 + sum(map(len, labels)) + len(labels) > LONGEST_NAME:
            raise MalformedMessage(f"name longer than {LONGEST_NAME} octets at octet {start}")
        name = tuple(labels)
        self._known.update((target, name[index:]) for target, index in jumps)
        return name, after
