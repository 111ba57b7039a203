"""The command line -> Options.

Source: the flags of the original exechealthz and of the later sidecar; one dash or two.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

from healthz.dnsprobe import CHAOS, QTYPES, Probe
from kubedns.dns.names import parse_name
from kubedns.shared.flags import (
    HELP,
    VERBOSITY,
    VERSION,
    Flag,
    Parsed,
    UsageError,
    flag_bool,
    flag_duration,
    flag_http_address,
    flag_port,
    integer,
    parse_flags,
    usage,
)
from kubedns.shared.servers import ServerAddress, parse_server

PROGRAM: Final = "exechealthz"
PROBE_PATH: Final = "/healthcheck/"
_SHORTEST_PERIOD = 0.01
_LONGEST_INTERVAL = 86400.0
_METRIC_WORD = re.compile(r"[a-zA-Z0-9_]{1,63}")
_NAMESPACE = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_BRACKETED_IPV4 = re.compile(r"\[([0-9.]+)\](:.*)?")
_URL = re.compile(r"/[^\s?#%]*")


@dataclass(frozen=True, slots=True)
class Command:
    """A shell command and the url that answers for it."""

    text: str
    path: str


@dataclass(frozen=True, slots=True)
class Options:
    """What the program was told; all times in seconds.  A URL may be empty: don't ask."""

    commands: tuple[Command, ...]
    probes: tuple[Probe, ...]
    http_bind_address: str
    port: int
    period: float
    latency: float
    quiet: bool
    output: bool
    dnsmasq: ServerAddress
    dnsmasq_interval: float
    readiness_url: str
    kubedns_status_url: str
    nanny_status_url: str
    metrics_namespace: str
    metrics_path: str
    verbosity: int
    show_help: bool
    show_version: bool
    ignored: tuple[str, ...]


def parse_probe(text: str) -> Probe:
    """Return the probe of `label,server[:port],name[,interval_s][,type]`; raises ValueError."""
    parts = [part.strip() for part in text.split(",")]
    if not 3 <= len(parts) <= 5:
        raise ValueError(f"{text!r} is not label,server[:port],name[,interval_s][,type]")
    label, server, name, *rest = parts
    if not _METRIC_WORD.fullmatch(label):
        raise ValueError(f"label {label!r} stands in metric names: 1 to 63 letters, digits and _ only")
    interval, qtype = 5.0, "A"
    if rest and (len(rest) == 2 or rest[0][:1].isdigit()):
        interval = _interval(rest.pop(0))
    if rest:
        qtype = _qtype(rest[0])
    return Probe(
        label, parse_server(_unbracketed(server), hostnames=False), parse_name(name), interval, qtype
    )


def _unbracketed(server: str) -> str:
    """Return a server without the brackets around an IPv4 address: `[$(IP)]:53` serves both families."""
    found = _BRACKETED_IPV4.fullmatch(server)
    return f"{found[1]}{found[2] or ''}" if found else server


def _interval(text: str) -> float:
    if not re.fullmatch(r"\d{1,5}(\.\d{1,3})?", text):
        raise ValueError(f"interval {text!r} is not a number of seconds")
    if not _SHORTEST_PERIOD <= float(text) <= _LONGEST_INTERVAL:
        raise ValueError(
            f"interval {text} s is not between {_SHORTEST_PERIOD:g} s and {_LONGEST_INTERVAL:g} s"
        )
    return float(text)


def _qtype(text: str) -> str:
    qtype = text.upper()
    if qtype == "ANY":
        raise ValueError("type ANY is refused by kubedns and other servers (RFC 8482); ask A, AAAA or SRV")
    if qtype not in (*QTYPES, CHAOS):
        raise ValueError(f"type {text!r} is none of {', '.join((*QTYPES, CHAOS))}")
    return qtype


def _path(text: str) -> str:
    if not _URL.fullmatch(text):
        raise ValueError(f"{text!r} is not a path such as /healthz: no spaces, ?, # or %")
    return text


def _namespace(text: str) -> str:
    if not _NAMESPACE.fullmatch(text):
        raise ValueError(f"{text!r} can't begin a metric's name: letters, digits, _ and : only")
    return text


def _address(text: str) -> str:
    return str(ip_address(text.removeprefix("[").removesuffix("]")))


def _http_url(text: str) -> str:
    if text and (urlsplit(text).scheme not in {"http", "https"} or not urlsplit(text).hostname):
        raise ValueError(f"{text!r} is not an http:// or https:// URL")
    return text


FLAGS: Final = (
    Flag(
        "cmd",
        str,
        (),
        "A command, run by sh -c every --period; exit status 0 is healthy. May be given again, "
        "with a --url each, matched in order. Without any --cmd and --probe: echo healthz.",
        "COMMAND",
        repeated=True,
    ),
    Flag(
        "url",
        _path,
        (),
        "The path that answers for the command of the same place: 200, or 503 with the reason. "
        "Without any --cmd and --probe: /healthz.",
        "PATH",
        repeated=True,
    ),
    Flag(
        "probe",
        parse_probe,
        (),
        "A DNS probe, label,server[:port],name[,interval_s=5][,type=A], answered for at "
        "/healthcheck/label: 200 only for NOERROR with an answer. The server is an IP address, IPv6 in "
        f"brackets when a port follows; type is one of {', '.join(QTYPES)}, or {CHAOS}: TXT in class "
        "CHAOS, such as version.bind. May be given again.",
        "PROBE",
        repeated=True,
    ),
    flag_http_address("http-bind-address"),
    flag_port("port", 8080, "The port for all HTTP; 0 picks a free one and logs it."),
    flag_duration("period", 2.0, "Time from the beginning of a command's run to the next."),
    flag_duration(
        "latency",
        30.0,
        "The longest that a command may run before it is killed with all its processes, and the age at "
        "which its last result no longer counts.",
    ),
    flag_bool("quiet", False, "Log failures only, not recoveries."),
    flag_bool("output", False, "Answer a healthy command's url with the command's output instead of ok."),
    Flag(
        "dnsmasq-addr",
        _address,
        "127.0.0.1",
        "The IP address of the dnsmasq whose cache statistics become metrics.",
        "IP",
    ),
    Flag("dnsmasq-port", integer(1, 65535), 53, "The port of that dnsmasq.", "PORT"),
    Flag(
        "dnsmasq-poll-interval-ms",
        integer(0, 86_400_000),
        5000,
        "Milliseconds between readings of dnsmasq's statistics; 0 reads none.",
        "MS",
    ),
    Flag(
        "kubedns-readiness",
        _http_url,
        "http://127.0.0.1:8081/readiness",
        "The URL whose answer the page at / shows as kubedns's readiness; empty shows none.",
        "URL",
    ),
    Flag(
        "kubedns-status",
        _http_url,
        "http://127.0.0.1:8081/status",
        "The URL of kubedns's account of itself, which the page at / shows; empty shows none.",
        "URL",
    ),
    Flag(
        "nanny-status",
        _http_url,
        "http://127.0.0.1:10056/status",
        "The URL of dnsmasq-nanny's account of itself, which the page at / shows; empty shows none.",
        "URL",
    ),
    Flag(
        "prometheus-namespace",
        _namespace,
        "kubedns",
        "The first word of the metrics' names.",
        placeholder="NAME",
    ),
    Flag("prometheus-path", _path, "/metrics", "The path of the metrics.", "PATH"),
    VERBOSITY,
    VERSION,
    HELP,
)


def help_text() -> str:
    """Return what `--help` prints."""
    return usage(
        PROGRAM,
        "Runs commands and DNS probes on a period and answers liveness probes from their last result. "
        "One HTTP port serves the urls, metrics, and a page for people at /. Durations are such as "
        "10s, 1m30s or 500ms. The flags of klog are taken and ignored.",
        FLAGS,
    )


def from_argv(argv: Sequence[str]) -> Options:
    """Return the options of a command line without the program's name; raises UsageError."""
    parsed = parse_flags(FLAGS, argv)
    values = parsed.values
    if parsed.rest:
        raise UsageError(f"unexpected argument after --: {parsed.rest[0]!r}")
    options = Options(
        commands=_commands(parsed),
        probes=values["probe"],
        http_bind_address=values["http-bind-address"],
        port=values["port"],
        period=values["period"],
        latency=values["latency"],
        quiet=values["quiet"],
        output=values["output"],
        dnsmasq=ServerAddress(values["dnsmasq-addr"], values["dnsmasq-port"]),
        dnsmasq_interval=values["dnsmasq-poll-interval-ms"] / 1000,
        readiness_url=values["kubedns-readiness"],
        kubedns_status_url=values["kubedns-status"],
        nanny_status_url=values["nanny-status"],
        metrics_namespace=values["prometheus-namespace"],
        metrics_path=values["prometheus-path"],
        verbosity=values["v"],
        show_help=values["help"],
        show_version=values["version"],
        ignored=parsed.ignored,
    )
    _check_times(options)
    _check_paths(options)
    return options


def _commands(parsed: Parsed) -> tuple[Command, ...]:
    texts, paths = parsed.values["cmd"], parsed.values["url"]
    both = min(len(texts), len(paths))
    if texts[both:]:
        raise UsageError(
            f"--cmd={texts[both]!r} has no --url: give one --url for each --cmd, in the same order"
        )
    if paths[both:]:
        raise UsageError(
            f"--url={paths[both]} has no --cmd: give one --cmd for each --url, in the same order"
        )
    if not texts and not parsed.values["probe"]:
        return (Command("echo healthz", "/healthz"),)
    return tuple(Command(text, path) for text, path in zip(texts, paths, strict=True))


def _check_times(options: Options) -> None:
    if options.period < _SHORTEST_PERIOD:
        raise UsageError(f"--period is {options.period:g} s; it must be at least {_SHORTEST_PERIOD:g} s")
    if options.latency < options.period:
        raise UsageError(
            f"--latency ({options.latency:g} s) is below --period ({options.period:g} s): "
            "every result would be too old before the next one is there"
        )


def _check_paths(options: Options) -> None:
    taken = {options.metrics_path: "--prometheus-path"}
    for path, flag in (
        *((f"{PROBE_PATH}{probe.label}", f"--probe={probe.label},...") for probe in options.probes),
        *((command.path, f"--url={command.path}") for command in options.commands),
    ):
        if path in taken:
            raise UsageError(f"{path} is taken twice: by {taken[path]} and by {flag}")
        taken[path] = flag
