"""Packets that no honest client sends, each with what it must get: an rcode, or silence.

`EITHER` stands where a lenient and a strict server are both right; what matters is that the server
goes on.  Sources: the reports named in tests/README.md, RFC 1035 4.1, RFC 6891 6.1, RFC 9619.
"""

from collections.abc import Iterator
from struct import pack

SILENCE = "silence"
EITHER = "either"
QUESTION = b"\3web\7default\3svc\7cluster\5local\0\0\1\0\1"
OPT = b"\0\0\x29\x04\xd0\0\0\0\0\0\0"
WEB = b"\3web\7default\3svc\7cluster\5local\0"


def header(
    flags: int = 0x0100,
    questions: int = 1,
    answers: int = 0,
    authorities: int = 0,
    additionals: int = 0,
    message_id: int = 4711,
) -> bytes:
    """Return a message header."""
    return pack("!6H", message_id, flags, questions, answers, authorities, additionals)


def corpus() -> Iterator[tuple[str, bytes, str]]:
    """Yield name, octets and outcome of each packet."""
    yield from _short()
    yield from _flags()
    yield from _counts()
    yield from _names()
    yield from _types()
    yield from _options()
    yield from _records()


def _short() -> Iterator[tuple[str, bytes, str]]:
    yield "nothing at all", b"", SILENCE
    for octets in (1, 2, 3, 11):
        yield f"{octets} octets", header()[:octets], SILENCE
    yield "header alone", header(), "FORMERR"
    for cut in range(13, 12 + len(QUESTION), 5):
        yield f"question cut at octet {cut}", (header() + QUESTION)[:cut], "FORMERR"


def _flags() -> Iterator[tuple[str, bytes, str]]:
    yield "response", header(0x8180) + QUESTION, SILENCE
    yield "response with opcode NOTIFY", header(0xA000) + QUESTION, SILENCE
    for opcode, name in ((1, "IQUERY"), (2, "STATUS"), (4, "NOTIFY"), (5, "UPDATE"), (6, "DSO"), (15, "15")):
        yield f"opcode {name}", header(opcode << 11) + QUESTION, "NOTIMP"
    yield "opcode UPDATE without question", header(0x2800, 0), "NOTIMP"
    yield "every flag but QR and opcode", header(0x07FF) + QUESTION, "NOERROR"
    yield "rcode in a query", header(0x010F) + QUESTION, "NOERROR"


def _counts() -> Iterator[tuple[str, bytes, str]]:
    yield "no question", header(questions=0), "FORMERR"
    yield "no question but octets", header(questions=0) + QUESTION, "FORMERR"
    yield "two questions", header(questions=2) + QUESTION * 2, "FORMERR"
    yield "two questions, one there", header(questions=2) + QUESTION, "FORMERR"
    yield "65535 questions", header(questions=65535) + QUESTION, "FORMERR"
    for section in ("answers", "authorities", "additionals"):
        yield f"a lie about {section}", header(**{section: 1}) + QUESTION, "FORMERR"
        yield f"a great lie about {section}", header(**{section: 65535}) + QUESTION, "FORMERR"
    yield "all counts at most", header(0x0100, 1, 65535, 65535, 65535) + QUESTION + OPT, "FORMERR"
    yield "octets after the question", header() + QUESTION + b"junk", EITHER


def _names() -> Iterator[tuple[str, bytes, str]]:
    end = b"\0\1\0\1"
    yield "label of 64", header() + b"\x40" + b"a" * 64 + b"\0" + end, "FORMERR"
    yield "label type 0x80", header() + b"\x80" + b"a" * 8 + b"\0" + end, "FORMERR"
    yield "pointer to itself", header() + b"\xc0\x0c" + end, "FORMERR"
    yield "pointer forward", header() + b"\xc0\x0e" + end + b"\1a\0", "FORMERR"
    yield "two pointers in a ring", header() + b"\xc0\x0e\xc0\x0c" + end, "FORMERR"
    yield "pointer after a label", header() + b"\3web\xc0\x0c" + end, "FORMERR"
    yield "pointer at the end", header() + b"\xc0", "FORMERR"
    yield "label past the end", header() + b"\x3fabc", "FORMERR"
    yield "name without a root", header() + b"\3web", "FORMERR"
    yield "name of 255", header() + (b"\x3f" + b"a" * 63) * 3 + b"\x3d" + b"b" * 61 + b"\0" + end, EITHER
    yield "name of 256", header() + (b"\x3f" + b"a" * 63) * 3 + b"\x3e" + b"b" * 62 + b"\0" + end, "FORMERR"
    yield "name of 127 labels in the zone", header() + b"\1a" * 115 + WEB[-15:] + end, "NXDOMAIN"
    yield "name of 1,000 labels", header() + b"\1a" * 1000 + b"\0" + end, "FORMERR"
    yield "root", header() + b"\0" + end, EITHER
    for kind, label in (
        ("zero octets", b"\5a\0b\0c"),
        ("a dot", b"\7web.foo"),
        ("the suffix as one label", b"\x15svc\7cluster\5local\0pad"),
        ("octets above 127", b"\4\xff\xfe\x80\x81"),
        ("line ends", b"\4a\r\nb"),
        ("a quote and a backslash", b'\2"\\'),
        ("nothing but zero octets", b"\4\0\0\0\0"),
        ("capital length look-alikes", b"\6ABCDEF"),
    ):
        below = header() + label + WEB + end
        yield f"label of {kind} below a Service", below, "NXDOMAIN"
        yield (
            f"label of {kind} as a Service",
            header() + label + b"\7default\3svc\7cluster\5local\0" + end,
            "NXDOMAIN",
        )
        yield (
            f"label of {kind} as a pod",
            header() + label + b"\7default\3pod\7cluster\5local\0" + end,
            EITHER,
        )
        yield f"label of {kind} and EDNS", header(additionals=1) + label + WEB + end + OPT, "NXDOMAIN"
    dotted = b"\x0b10.244.1.20\4shop\3pod\7cluster\5local\0"
    yield "pod name with dots inside a label", header() + dotted + end, "NXDOMAIN"
    spaces = b"\1 " * 24 + b"\x018\x013\x011\x010\x01a\x010\x01a\x010" + b"\3ip6\4arpa\0"
    yield "reverse name with blanks for digits", header() + spaces + b"\0\x0c\0\1", EITHER


def _types() -> Iterator[tuple[str, bytes, str]]:
    for rdtype, name in ((255, "ANY"), (252, "AXFR"), (251, "IXFR")):
        yield name, header() + WEB + pack("!HH", rdtype, 1), "REFUSED"
    for rdclass, name in ((255, "ANY"), (254, "NONE"), (4, "HS"), (0, "0"), (0x8001, "mDNS unicast")):
        yield f"class {name}", header() + WEB + pack("!HH", 1, rdclass), "REFUSED"
    yield "class CH at our name", header() + WEB + pack("!HH", 1, 3), "REFUSED"
    yield "class CH, type ANY", header() + b"\7version\4bind\0" + pack("!HH", 255, 3), "REFUSED"
    for rdtype in (0, 41, 249, 250, 253, 254, 0x4101, 65280, 65535):
        yield f"type {rdtype}", header() + WEB + pack("!HH", rdtype, 1), "NOERROR"


def _options() -> Iterator[tuple[str, bytes, str]]:
    query = header(additionals=1) + QUESTION
    yield "EDNS version 1", query + b"\0\0\x29\x04\xd0\0\1\0\0\0\0", "BADVERS"
    yield "EDNS version 255", query + b"\0\0\x29\x04\xd0\0\xff\0\0\0\0", "BADVERS"
    yield "two OPT records", header(additionals=2) + QUESTION + OPT * 2, "FORMERR"
    yield "OPT that is not the root's", query + b"\1a" + OPT, "FORMERR"
    yield "OPT by way of a pointer", query + b"\xc0\x0c" + OPT[1:], "FORMERR"
    yield "OPT among the answers", header(answers=1) + QUESTION + OPT, EITHER
    yield "OPT among the authorities", header(authorities=1) + QUESTION + OPT, EITHER
    yield "OPT cut", query + OPT[:-1], "FORMERR"
    yield "OPT with a huge length", query + OPT[:-2] + b"\xff\xff", "FORMERR"
    yield "option longer than its OPT", query + OPT[:-2] + b"\0\4\0\x0a\0\x09", "FORMERR"
    yield "half an option", query + OPT[:-2] + b"\0\3\0\x0a\0", "FORMERR"
    yield "unknown option", query + OPT[:-2] + b"\0\x08\xff\xfe\0\4abcd", "NOERROR"
    yield "a hundred options", query + OPT[:-2] + pack("!H", 400) + b"\xff\xfe\0\0" * 100, "NOERROR"
    yield "payload 0", query + b"\0\0\x29\0\0\0\0\0\0\0\0", "NOERROR"
    yield "payload 65535", query + b"\0\0\x29\xff\xff\0\0\0\0\0\0", "NOERROR"
    yield "every EDNS flag", query + b"\0\0\x29\x04\xd0\0\0\xff\xff\0\0", "NOERROR"


def _records() -> Iterator[tuple[str, bytes, str]]:
    record = b"\xc0\x0c\0\1\0\1\0\0\0\0\0\4\1\2\3\4"
    yield "a query with an answer", header(answers=1) + QUESTION + record, "NOERROR"
    yield "an answer with a huge length", header(answers=1) + QUESTION + record[:10] + b"\xff\xff", "FORMERR"
    yield "TSIG", header(additionals=1) + QUESTION + b"\0\0\xfa\0\xff" + b"\0" * 6, EITHER
    yield "a name that points out", header(answers=1) + QUESTION + b"\xff\xff" + record[2:], EITHER
    yield "records of a name without end", header(answers=1) + QUESTION + b"\x3f" * 40, "FORMERR"
    yield "300 empty records", header(answers=300) + QUESTION + (b"\0\0\1\0\1" + b"\0" * 6) * 300, "NOERROR"


def frames() -> Iterator[tuple[str, bytes]]:
    """Yield name and octets of what may come over one TCP connection, to be followed by its end."""
    plain = header() + QUESTION
    yield "no octet", b""
    yield "half a length", b"\0"
    yield "length 0", b"\0\0"
    yield "a thousand lengths of 0", b"\0\0" * 1000
    yield "length 65535 and nothing", b"\xff\xff"
    yield "length 65535 and zeros", b"\xff\xff" + bytes(65535)
    yield "length one too long", (len(plain) + 1).to_bytes(2) + plain
    yield "length one too short", (len(plain) - 1).to_bytes(2) + plain
    yield "a web request", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
    yield "a TLS greeting", bytes.fromhex("1603010200010001fc0303") + bytes(200)
    yield "many records", _framed(header(answers=5900) + QUESTION + (b"\0\0\1\0\1" + b"\0" * 6) * 5900)
    for name, packet, _ in corpus():
        yield f"frame: {name}", _framed(packet)


def _framed(packet: bytes) -> bytes:
    return len(packet).to_bytes(2) + packet
