"""The one walker of labels: what it reads, where it stops, and what it refuses."""

import pytest

from kubedns.dns.labels import MalformedMessage, NameReader, name_end, read_labels

LABEL = b"\x3f" + b"x" * 63


def test_labels_end_at_the_root_or_at_a_pointer():
    assert read_labels(b"\3web\4shop\0rest", 0) == ([b"web", b"shop"], 9)
    assert read_labels(b"\3web\xc0\0", 0) == ([b"web"], 4)
    assert (name_end(b"\3web\0", 0), name_end(b"\3web\xc0\0", 0)) == (5, 6)


def test_name_of_255_octets_is_the_longest():
    assert read_labels(LABEL * 3 + b"\x3d" + b"x" * 61 + b"\0", 0)[1] == 254
    with pytest.raises(MalformedMessage, match="longer than 255 octets"):
        read_labels(LABEL * 3 + b"\x3e" + b"x" * 62 + b"\0", 0)


@pytest.mark.parametrize(
    ("octets", "reason"),
    [(b"", "ends within"), (b"\3we", "ends within"), (b"\3web", "ends within"), (b"\x40", "unknown kind")],
)
def test_what_is_no_row_of_labels_is_malformed(octets, reason):
    with pytest.raises(MalformedMessage, match=reason):
        read_labels(octets, 0)


def test_pointers_lead_back_only_and_are_remembered():
    message = b"\3net\0\3web\xc0\0\4mail\xc0\5"
    names = NameReader(message)
    assert names.read(5) == ((b"web", b"net"), 11)
    assert names.read(11) == ((b"mail", b"web", b"net"), 18)
    with pytest.raises(MalformedMessage, match="does not lead back"):
        NameReader(b"\xc0\0").read(0)
    with pytest.raises(MalformedMessage, match="ends within"):
        NameReader(b"\0\xc0").read(1)


def test_name_that_pointers_make_too_long_is_malformed():
    message = LABEL * 3 + b"\0" + LABEL + b"\xc0\0"
    with pytest.raises(MalformedMessage, match="longer than 255 octets"):
        NameReader(message).read(193)
