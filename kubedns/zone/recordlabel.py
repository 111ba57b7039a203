"""The label that names an address without a hostname, as the original makes it.

In: a packed address.  Out: the label, or the 32 bits that it spells.  The original hashes (FNV-1a) the
printed form of its record, which includes its TTL of 30 whatever the flags say; the same text is
hashed here so that names survive a migration.

All these texts end alike.  An octet changes only the lowest byte of the state before it is
multiplied, so the end of the text takes one multiplication and a look into a table of 256.
"""

from collections.abc import Iterable
from typing import Final

from kubedns.dns.names import address_text

_OFFSET: Final = 0x811C9DC5
_PRIME: Final = 0x01000193
_MASK: Final = 0xFFFFFFFF
_END: Final = b" 0 10 10  false 30 0  }"
_DIGITS: Final = tuple(b"%d" % octet for octet in range(256))
_IPV4_OCTETS: Final = 4
_LABEL_OCTETS: Final = frozenset(range(2, 17, 2))


def _hashed(state: int, text: bytes) -> int:
    for octet in text:
        state = (state ^ octet) * _PRIME & _MASK
    return state


_FACTOR: Final = pow(_PRIME, len(_END), 1 << 32)
_REST: Final = tuple((_hashed(low, _END) - low * _FACTOR) & _MASK for low in range(256))


def address_hashes(addresses: Iterable[bytes]) -> list[int]:
    """Return the 32 bits that the label of each address spells: 0.3 us each, as one loop without calls."""
    networks: dict[bytes, int] = {}
    hashes = []
    for address in addresses:
        if len(address) == _IPV4_OCTETS:
            network = address[:3]
            state = networks.get(network, -1)
            if state < 0:
                state = networks[network] = _hashed(_OFFSET, b"&{%d.%d.%d." % tuple(network))
            for octet in _DIGITS[address[3]]:
                state = (state ^ octet) * _PRIME & _MASK
        else:
            state = _hashed(_OFFSET, b"&{" + address_text(address).encode())
        hashes.append((state * _FACTOR + _REST[state & 0xFF]) & _MASK)
    return hashes


def address_hash(address: bytes) -> int:
    """Return the 32 bits that the label of one address spells."""
    (spelt,) = address_hashes((address,))
    return spelt


def record_label(address: bytes) -> bytes:
    """Return the label: the hash in hexadecimal, and the octets of that in hexadecimal again."""
    return (b"%x" % address_hash(address)).hex().encode()


def hash_of_label(label: bytes) -> int | None:
    """Return the 32 bits that a label spells, None where it is not the label of any address.

    The hexadecimal of hexadecimal digits is of decimal digits only, which most labels are not.
    """
    if not label.isdigit() or len(label) not in _LABEL_OCTETS:
        return None
    try:
        spelt = int(bytes.fromhex(label.decode()), 16)
    except ValueError:
        return None
    return spelt if (b"%x" % spelt).hex().encode() == label else None
