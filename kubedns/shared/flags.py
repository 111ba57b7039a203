"""Command-line flags in Go's style, so that the original's manifests start unchanged.

`--name=value`, `--name value` and the same with one dash; a boolean flag takes a value
only after `=`.  Everything after `--` is handed on as it stands.  The flags of klog, the
original's logging library, are taken and reported back, to be ignored with one warning.
"""

import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from ipaddress import ip_address
from typing import Any

from kubedns.shared.durations import format_duration, parse_duration

KLOG_FLAGS: Mapping[str, bool] = {
    "add-dir-header": True,
    "alsologtostderr": True,
    "log-backtrace-at": False,
    "log-dir": False,
    "log-file": False,
    "log-file-max-size": False,
    "log-flush-frequency": False,
    "logtostderr": True,
    "one-output": True,
    "skip-headers": True,
    "skip-log-headers": True,
    "stderrthreshold": False,
    "vmodule": False,
}
"""The klog family: name with dashes -> whether it is boolean, that is, stands without a value."""


class UsageError(Exception):
    """The command line can't be used; the text names the flag and the reason."""


@dataclass(frozen=True, slots=True)
class Flag:
    """One flag of a program.

    `parse` turns the text into the value or raises ValueError; `shown` is the default as the
    help prints it (None: made from `default`); `repeated` collects every value in a tuple.
    """

    name: str
    parse: Callable[[str], Any]
    default: Any
    help: str
    placeholder: str = "TEXT"
    shown: str | None = None
    repeated: bool = False

    @property
    def boolean(self) -> bool:
        """Whether the flag stands without a value."""
        return self.parse is parse_bool


@dataclass(frozen=True, slots=True)
class Parsed:
    """A command line taken apart: values by flag name, the words after `--`, klog flags seen."""

    values: Mapping[str, Any]
    rest: tuple[str, ...]
    ignored: tuple[str, ...] = ()
    given: frozenset[str] = field(default_factory=frozenset)


def parse_bool(text: str) -> bool:
    """Return the truth value of what Go's strconv.ParseBool accepts, or raise ValueError."""
    if text in {"1", "t", "T", "true", "TRUE", "True"}:
        return True
    if text in {"0", "f", "F", "false", "FALSE", "False"}:
        return False
    raise ValueError(f"{text!r} is neither true nor false")


def integer(lowest: int, highest: int) -> Callable[[str], int]:
    """Return a parser of whole decimal numbers from lowest to highest."""

    def parse(text: str) -> int:
        sign_less = text.removeprefix("-").removeprefix("+")
        if not (sign_less.isascii() and sign_less.isdigit()):
            raise ValueError(f"{text!r} is not a whole number")
        value = int(text)
        if not lowest <= value <= highest:
            raise ValueError(f"{value} is not between {lowest} and {highest}")
        return value

    return parse


def flag_bool(name: str, default: bool, text: str) -> Flag:
    """Return a boolean flag."""
    return Flag(name, parse_bool, default, text, placeholder="", shown=str(default).lower())


def flag_port(name: str, default: int, text: str) -> Flag:
    """Return a flag that takes a port number, 0 to 65535."""
    return Flag(name, integer(0, 65535), default, text, placeholder="PORT")


def flag_http_address(name: str) -> Flag:
    """Return the flag for the IP address of a program's HTTP ports; its value is empty for all addresses."""
    text = "Address of the HTTP ports; kubelet and Prometheus reach only ports on all addresses."
    return Flag(name, _ip_or_all, "", text, "ADDRESS", shown="all addresses")


def _ip_or_all(text: str) -> str:
    return str(ip_address(text.removeprefix("[").removesuffix("]"))) if text else ""


def flag_duration(name: str, default: float, text: str) -> Flag:
    """Return a flag that takes a duration in Go's syntax; its value is in seconds."""
    return Flag(name, parse_duration, default, text, "DURATION", shown=format_duration(default))


def flag_text(name: str, default: str, text: str, placeholder: str = "TEXT") -> Flag:
    """Return a flag that takes any text."""
    return Flag(name, str, default, text, placeholder)


def flag_verbosity(text: str) -> Flag:
    """Return the flag of the log's verbosity."""
    return Flag("v", integer(-10, 100), 0, text, placeholder="LEVEL")


VERBOSITY = flag_verbosity("Log verbosity: 2 and above also log decisions.")
HELP = flag_bool("help", False, "Print this help and exit.")
VERSION = flag_bool("version", False, "Print the version and exit.")


def parse_flags(flags: Iterable[Flag], argv: Sequence[str]) -> Parsed:
    """Take a command line apart.

    The last value of a flag given twice wins, unless it is a repeated flag.  Raises UsageError
    for an unknown flag, a missing or wrong value, and a word that is no flag.
    """
    known = {flag.name: flag for flag in flags}
    values: dict[str, Any] = {name: flag.default for name, flag in known.items()}
    given: set[str] = set()
    ignored: list[str] = []
    words = list(argv)
    alone: Flag | None = None
    while words:
        word = words.pop(0)
        if word == "--":
            break
        name, text = _split(word, alone)
        if (klog := name.replace("_", "-")) in KLOG_FLAGS and name not in known:
            if text is None and not KLOG_FLAGS[klog] and words:
                words.pop(0)
            ignored.append(f"--{name}")
            continue
        if name == "h" and name not in known:
            name = "help"
        flag = known.get(name)
        if flag is None:
            raise UsageError(f"unknown flag: --{name}{_did_you_mean(name, known)}")
        alone = flag if flag.boolean and text is None else None
        if text is None:
            text = _value_of(flag, words)
        try:
            value = flag.parse(text)
        except ValueError as error:
            raise UsageError(f"invalid value for --{name}: {error}") from error
        if flag.repeated:
            value = (*values[name], value) if name in given else (value,)
        values[name] = value
        given.add(name)
    return Parsed(values, tuple(words), tuple(ignored), frozenset(given))


def _split(word: str, alone: Flag | None) -> tuple[str, str | None]:
    """Take name and value of a word apart; `alone` is a boolean flag that stands before it without a value."""
    name = word.removeprefix("-").removeprefix("-")
    if name == word or not name or name[0] in "-=":
        advice = "every option begins with --"
        if alone is not None and word.lower() in {"true", "false"}:
            advice = f"write --{alone.name}={word.lower()}"
        raise UsageError(f"unexpected argument: {word!r}; {advice}")
    name, equals, text = name.partition("=")
    return name, text if equals else None


def _did_you_mean(name: str, known: Iterable[str]) -> str:
    by_lower = {other.lower(): other for other in known}
    close = get_close_matches(name.lower().replace("_", "-"), by_lower, n=1, cutoff=0.75)
    return f"; did you mean --{by_lower[close[0]]}?" if close else ""


def _value_of(flag: Flag, words: list[str]) -> str:
    if flag.boolean:
        return "true"
    if not words:
        raise UsageError(f"flag needs a value: --{flag.name}")
    return words.pop(0)


def usage(program: str, summary: str, flags: Iterable[Flag], tail: str = "") -> str:
    """Return the text of `--help`: a line of use, then every flag with its default."""
    lines = [f"Usage: {program} [flags]{tail}", "", *textwrap.wrap(summary, 96), "", "Flags:"]
    for flag in flags:
        placeholder = f"={flag.placeholder}" if flag.placeholder else ""
        shown = flag.shown if flag.shown is not None else str(flag.default)
        default = f" (default {shown})" if shown not in {"", "()", "None"} else ""
        lines.append(f"  --{flag.name}{placeholder}")
        lines += textwrap.wrap(flag.help + default, 96, initial_indent=" " * 8, subsequent_indent=" " * 8)
    return "\n".join(lines) + "\n"
