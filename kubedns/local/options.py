"""The command lines of `python -m kubedns.local`: `api`, `up` and `demo`.

In: the words after the program's name.  Out: frozen options, or UsageError.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kubedns.dns.names import parse_domain, to_text
from kubedns.local.api.access import parse_denial
from kubedns.shared.flags import (
    HELP,
    VERBOSITY,
    VERSION,
    Flag,
    Parsed,
    UsageError,
    flag_bool,
    flag_port,
    flag_text,
    parse_flags,
    usage,
)

PROGRAM: Final = "python -m kubedns.local"
CLASSIC: Final = "classic"
KUBEDNS_FIRST: Final = "kubedns-first"
DEFAULT_DOMAIN: Final = "cluster.local"
"""The domain of the demo too, because its manifests name it."""


@dataclass(frozen=True, slots=True)
class ApiOptions:
    """What `api` was told; `tls` is certificate and key."""

    files: tuple[Path, ...]
    port: int
    bind: str
    tls: tuple[Path, Path] | None
    token_file: Path | None
    anonymous: bool
    denied: frozenset[tuple[str, str]]
    verbosity: int


@dataclass(frozen=True, slots=True)
class Ports:
    """Where each part of the add-on listens on 127.0.0.1; 0 picks a free port."""

    api: int
    dnsmasq: int
    kubedns: int
    readiness: int
    metrics: int
    healthz: int
    nanny_metrics: int


@dataclass(frozen=True, slots=True)
class UpOptions:
    """What `up` or `demo` was told; `config_dir` None makes a temporary one; `domain` is a name.

    `wiring` says whom clients ask: dnsmasq (CLASSIC), or kubedns, which asks dnsmasq for names elsewhere
    (KUBEDNS_FIRST). `demo` asks questions when all is ready, `check` stops after them.
    """

    files: tuple[Path, ...]
    ports: Ports
    config_dir: Path | None
    domain: str
    wiring: str
    dnsmasq: str
    demo: bool
    check: bool
    verbosity: int


@dataclass(frozen=True, slots=True)
class Wish:
    """The command line asks for a text (help or version) rather than for work."""

    text: str
    version: bool = False


def _parse_wiring(text: str) -> str:
    if text not in {CLASSIC, KUBEDNS_FIRST}:
        raise ValueError(f"is neither {CLASSIC} nor {KUBEDNS_FIRST}")
    return text


Options = ApiOptions | UpOptions | Wish

_API_FLAGS: Final = (
    flag_port("port", 8001, "TCP port to listen on; 0 picks a free one and prints it."),
    flag_text("bind", "127.0.0.1", "Address to listen on.", "IP"),
    flag_text("tls-cert", "", "File of the serving certificate (PEM); with --tls-key: HTTPS.", "FILE"),
    flag_text("tls-key", "", "File of the certificate's private key (PEM).", "FILE"),
    flag_text(
        "token-file",
        "",
        "File of the bearer tokens that are let in, one a line, read again for every request; anything "
        "else gets 401. Without it everybody is let in.",
        "FILE",
    ),
    flag_bool(
        "anonymous-auth",
        False,
        "With --token-file: a request without any token is system:anonymous and gets 403 instead of 401.",
    ),
    Flag(
        "deny",
        parse_denial,
        (),
        "Answer 403 to a verb on a resource, * for any, such as *:endpointslices or create:services; may be "
        "repeated. list:endpointslices alone does not stop kube-dns or another client that lists by "
        "watching: that takes watch:endpointslices too.",
        "VERB:RESOURCE",
        repeated=True,
    ),
    VERBOSITY,
    HELP,
    VERSION,
)
_UP_FLAGS: Final = (
    flag_port("api-port", 8001, "TCP port of the Kubernetes API."),
    flag_port("dnsmasq-port", 1053, "UDP and TCP port of dnsmasq, where clients ask."),
    flag_port("kubedns-port", 10053, "UDP and TCP port of kube-dns."),
    flag_port("readiness-port", 8081, "TCP port of kube-dns's /readiness and /cache."),
    flag_port("metrics-port", 10055, "TCP port of kube-dns's /metrics."),
    flag_port("healthz-port", 8080, "TCP port of exechealthz: liveness URLs, page, metrics."),
    flag_port("nanny-metrics-port", 10056, "TCP port of dnsmasq-nanny's /metrics."),
    flag_text(
        "config-dir",
        "",
        "Directory of the configuration keys that kube-dns and dnsmasq-nanny follow.",
        "DIR",
    ),
    flag_text("domain", DEFAULT_DOMAIN, "The cluster's domain.", "DOMAIN"),
    Flag(
        "wiring",
        _parse_wiring,
        CLASSIC,
        "Whom clients ask: classic is dnsmasq, kubedns-first is kube-dns, which asks dnsmasq for names elsewhere.",
        "WIRING",
    ),
    flag_text("dnsmasq", "dnsmasq", "The dnsmasq program: a name to be found, or a path.", "PROGRAM"),
    VERBOSITY,
    HELP,
    VERSION,
)
_CHECK: Final = flag_bool(
    "check", False, "Stop after the questions; the exit status says whether all were right."
)

_COMMANDS: Final = {
    "api": (
        _API_FLAGS,
        "Serves an in-memory Kubernetes API with the objects of manifests: YAML or JSON files, or "
        "directories of them. kubectl --server=http://127.0.0.1:8001 works on it.",
    ),
    "up": (
        _UP_FLAGS,
        "Runs the whole add-on on one machine: Kubernetes API, kube-dns, dnsmasq-nanny with dnsmasq, and "
        "exechealthz, on loopback ports (0 picks a free one), with the objects of manifests. Without FILE "
        "the cluster is empty. Without --config-dir a temporary directory is made. Ctrl-C ends all.",
    ),
    "demo": (
        (_CHECK, *(flag for flag in _UP_FLAGS if flag.name != "domain")),
        "Runs the add-on as `up` does on the manifests of deploy/local, asks telling questions through "
        "dnsmasq, checks the answers, and stays until Ctrl-C. The manifests may be given as FILE instead.",
    ),
}


def help_text(command: str = "") -> str:
    """Return what `--help` prints, of the program or of one command."""
    if command:
        flags, summary = _COMMANDS[command]
        return usage(f"{PROGRAM} {command}", summary, flags, " [FILE...]")
    lines = [f"Usage: {PROGRAM} COMMAND [flags] [FILE...]", "", "Commands:"]
    for name, (_, summary) in _COMMANDS.items():
        lines.append(f"  {name:6}{summary.partition(': ')[0].partition('. ')[0].rstrip('.')}.")
    return "\n".join([*lines, "", f"`{PROGRAM} COMMAND --help` explains the flags.", ""])


def from_argv(argv: Sequence[str]) -> Options:
    """Return the options of a command line without the program's name; raises UsageError."""
    command, *words = argv or [""]
    if command in {"--help", "-help", "-h", "help"}:
        return Wish(help_text())
    if command in {"--version", "-version"}:
        return Wish("", version=True)
    if command not in _COMMANDS:
        problem = f"unknown command {command!r}" if command else "no command given"
        raise UsageError(f"{problem}; the commands are {', '.join(_COMMANDS)}")
    flags, _ = _COMMANDS[command]
    flag_words, files = _files_apart(flags, words)
    parsed = parse_flags(flags, flag_words)
    if parsed.values["help"]:
        return Wish(help_text(command))
    if parsed.values["version"]:
        return Wish("", version=True)
    if parsed.ignored:
        raise UsageError(f"unknown flag: {parsed.ignored[0]}")
    return _api(parsed, files) if command == "api" else _up(parsed, files, demo=command == "demo")


def _files_apart(flags: Sequence[Flag], words: Sequence[str]) -> tuple[list[str], tuple[Path, ...]]:
    """Tell flags and their values from files, which may stand anywhere and after `--`."""
    with_value = {flag.name for flag in flags if not flag.boolean}
    flag_words: list[str] = []
    files: list[str] = []
    rest = iter(words)
    for word in rest:
        if word == "--":
            files += rest
        elif not word.startswith("-"):
            files.append(word)
        else:
            flag_words.append(word)
            if word.lstrip("-") in with_value:
                flag_words += [value for value in [next(rest, None)] if value is not None]
    return flag_words, tuple(Path(file) for file in files)


def _api(parsed: Parsed, files: tuple[Path, ...]) -> ApiOptions:
    values = parsed.values
    certificate, key = values["tls-cert"], values["tls-key"]
    if bool(certificate) != bool(key):
        raise UsageError("--tls-cert and --tls-key go together: one is missing")
    if values["anonymous-auth"] and not values["token-file"]:
        raise UsageError("--anonymous-auth has no effect without --token-file")
    return ApiOptions(
        files,
        values["port"],
        values["bind"],
        (Path(certificate), Path(key)) if certificate else None,
        Path(values["token-file"]) if values["token-file"] else None,
        values["anonymous-auth"],
        frozenset(values["deny"]),
        values["v"],
    )


def _up(parsed: Parsed, files: tuple[Path, ...], *, demo: bool) -> UpOptions:
    values = parsed.values
    try:
        domain = to_text(parse_domain(values.get("domain", DEFAULT_DOMAIN))).rstrip(".")
    except ValueError as error:
        raise UsageError(f"invalid value for --domain: {error}") from error
    ports = Ports(
        api=values["api-port"],
        dnsmasq=values["dnsmasq-port"],
        kubedns=values["kubedns-port"],
        readiness=values["readiness-port"],
        metrics=values["metrics-port"],
        healthz=values["healthz-port"],
        nanny_metrics=values["nanny-metrics-port"],
    )
    return UpOptions(
        files,
        ports,
        Path(values["config-dir"]) if values["config-dir"] else None,
        domain,
        values["wiring"],
        values["dnsmasq"],
        demo,
        values.get("check", False),
        values["v"],
    )
