"""The record server's command line and environment as frozen Options.

In: the words after the program's name, and the environment.  Out: Options, or UsageError with the
flag and the reason.  Source: the original's flags; `--ttl`, `--negative-ttl`, `--wildcards`,
`--lame-duck` and `--check-config` are new.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kubedns.dns.names import Labels, pack_address, parse_domain
from kubedns.shared.flags import (
    HELP,
    VERSION,
    Flag,
    UsageError,
    flag_bool,
    flag_duration,
    flag_http_address,
    flag_port,
    flag_text,
    flag_verbosity,
    integer,
    parse_flags,
    usage,
)
from kubedns.shared.routekeys import parse_federations
from kubedns.shared.servers import ServerAddress, parse_server

PROGRAM: Final = "kube-dns"
METRICS_PORT: Final = 10055
_LONGEST_TTL: Final = 86400
_VARIABLE = re.compile(r"\$(?:(\w+)|\{(\w+)\})")
_METRIC_PREFIX = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")


@dataclass(frozen=True, slots=True)
class Metrics:
    """Where the metrics are served, and how their names begin; port None: nowhere."""

    port: int | None
    path: str
    namespace: str
    subsystem: str


@dataclass(frozen=True, slots=True)
class Options:
    """The checked command line.  Times are in seconds; an empty text means not given."""

    domain: Labels
    dns_bind_address: str
    dns_port: int
    healthz_port: int
    http_bind_address: str
    kubeconfig: str
    master_url: str
    config_dir: str
    config_period: float
    config_map: str
    config_map_namespace: str
    nameservers: tuple[ServerAddress, ...]
    federations: Mapping[str, str]
    cache_server: ServerAddress | None
    initial_sync_timeout: float
    ttl: int
    negative_ttl: int
    wildcards: bool
    wildcard_names: int
    lame_duck: float
    check_config: str
    verbosity: int
    metrics: Metrics
    ignored_flags: tuple[str, ...] = ()
    wants_help: bool = False
    wants_version: bool = False


def _domain(text: str) -> Labels:
    labels = parse_domain(text)
    if labels[-1] == b"arpa":
        raise ValueError(f"{text!r} is among the reverse names")
    return labels


def _bind_address(text: str) -> str:
    pack_address(text)
    return text


def _nameservers(text: str) -> tuple[ServerAddress, ...]:
    words = [word.strip() for word in text.split(",") if word.strip()]
    return tuple(dict.fromkeys(parse_server(word, hostnames=False) for word in words))


def _cache_server(text: str) -> ServerAddress | None:
    return parse_server(text, hostnames=False) if text else None


FLAGS: Final[tuple[Flag, ...]] = (
    Flag("domain", _domain, _domain("cluster.local"), "Cluster domain to serve.", "NAME", "cluster.local."),
    Flag(
        "dns-bind-address",
        _bind_address,
        "0.0.0.0",
        "Address to answer DNS at, over UDP and TCP; :: for all addresses of both families.",
        "ADDRESS",
    ),
    flag_port("dns-port", 53, "Port to answer DNS at; 0 takes a free one and logs it."),
    flag_port("healthz-port", 8081, "Port of /readiness, /status, /cache and /healthz (HTTP)."),
    flag_http_address("http-bind-address"),
    flag_text(
        "kubecfg-file",
        "",
        "Kubeconfig with the API server and credentials; without it and without a "
        "URL, the pod's service account.",
        "FILE",
    ),
    flag_text(
        "kube-master-url",
        "",
        "URL of the API server, plain http included; environment variables in "
        "it are expanded; overrides the kubeconfig's server.",
        "URL",
    ),
    flag_text(
        "config-dir",
        "",
        "Directory of configuration keys: stubDomains, upstreamNameservers, "
        "federations, hosts. Not together with --config-map.",
        "DIR",
    ),
    flag_duration("config-period", 10.0, "How often the configuration directory is read."),
    flag_text("config-map", "", "ConfigMap with the same keys, watched through the API.", "NAME"),
    flag_text("config-map-namespace", "kube-system", "Namespace of that ConfigMap.", "NAME"),
    Flag(
        "nameservers",
        _nameservers,
        (),
        "Upstream name servers, ip[:port] or [v6]:port, comma-separated, "
        "in order; the key upstreamNameservers overrides them; without either those of "
        "/etc/resolv.conf.",
        "LIST",
        "",
    ),
    Flag(
        "federations",
        parse_federations,
        {},
        "Federations, name=domain, comma-separated. Deprecated: use the "
        "key federations. Not together with --config-dir or --config-map.",
        "LIST",
        "",
    ),
    Flag(
        "cache-server",
        _cache_server,
        None,
        "Caching name server, ip[:port] or [v6]:port, such as the pod's dnsmasq, that is asked for names "
        "elsewhere; those of the configuration are asked while it is away.",
        "SERVER",
        "",
    ),
    flag_duration(
        "initial-sync-timeout",
        60.0,
        "How long the first complete listing of Services and "
        "EndpointSlices may take; past it the process says what failed and exits with status "
        "255. 0 waits for ever, not ready.",
    ),
    Flag("ttl", integer(0, _LONGEST_TTL), 30, "TTL of records, in seconds.", "SECONDS"),
    Flag(
        "negative-ttl",
        integer(0, _LONGEST_TTL),
        60,
        "TTL and minimum of negative answers, in seconds.",
        "SECONDS",
    ),
    flag_bool(
        "wildcards",
        True,
        "Answer wildcard questions such as *.svc.ns.svc and svc.*.svc, as the original does; false "
        "keeps them from listing the cluster, with NXDOMAIN.",
    ),
    Flag(
        "wildcard-names",
        integer(1, 1_000_000),
        1000,
        "Names that one wildcard question may look at; one that stands for more, or takes more than 5 ms, is "
        "REFUSED.",
        "COUNT",
    ),
    flag_duration("lame-duck", 15.0, "How long to go on answering after SIGTERM, with /readiness at 503."),
    flag_text(
        "check-config",
        "",
        "Check the configuration keys of a directory, or of a ConfigMap's manifest (YAML or JSON), say "
        "what is wrong, and exit with status 0 or 1. Unknown keys and stub domains without servers are "
        "errors.",
        "PATH",
    ),
    flag_bool("profiling", False, "Taken from old manifests and ignored."),
    flag_verbosity("Log verbosity: 2 and above also log decisions, 3 and above every query."),
    HELP,
    VERSION,
)
ENVIRONMENT: Final = f"""
Environment:
  PROMETHEUS_PORT
        Port of the metrics (default {METRICS_PORT}); 0 or empty turns them off.
  PROMETHEUS_PATH
        Path of the metrics (default /metrics).
  PROMETHEUS_NAMESPACE, PROMETHEUS_SUBSYSTEM
        First and second part of the names of the DNS metrics (both default to skydns).
"""


def help_text() -> str:
    """Return what `--help` prints."""
    summary = (
        "Answers cluster DNS: lists and watches the Services and EndpointSlices of a Kubernetes API server, "
        "serves their names, and forwards all others."
    )
    return usage(PROGRAM, summary, FLAGS) + ENVIRONMENT


def from_argv(argv: Sequence[str], environ: Mapping[str, str]) -> Options:
    """Return the Options that a command line and an environment make; raises UsageError."""
    parsed = parse_flags(FLAGS, argv)
    values = parsed.values
    if parsed.rest:
        raise UsageError(f"unexpected argument: {parsed.rest[0]!r}")
    _check_together(values)
    ignored = parsed.ignored + (("--profiling",) if "profiling" in parsed.given else ())
    return Options(
        domain=values["domain"],
        dns_bind_address=values["dns-bind-address"],
        dns_port=values["dns-port"],
        healthz_port=values["healthz-port"],
        http_bind_address=values["http-bind-address"],
        kubeconfig=values["kubecfg-file"],
        master_url=_expanded(values["kube-master-url"], environ),
        config_dir=values["config-dir"],
        config_period=values["config-period"],
        config_map=values["config-map"],
        config_map_namespace=values["config-map-namespace"],
        nameservers=values["nameservers"],
        federations=values["federations"],
        cache_server=values["cache-server"],
        initial_sync_timeout=values["initial-sync-timeout"],
        ttl=values["ttl"],
        negative_ttl=values["negative-ttl"],
        wildcards=values["wildcards"],
        wildcard_names=values["wildcard-names"],
        lame_duck=values["lame-duck"],
        check_config=values["check-config"],
        verbosity=values["v"],
        metrics=_metrics(environ),
        ignored_flags=ignored,
        wants_help=values["help"],
        wants_version=values["version"],
    )


def _check_together(values: Mapping[str, Any]) -> None:
    if values["config-dir"] and values["config-map"]:
        raise UsageError("--config-dir and --config-map cannot be used together")
    if values["federations"] and (values["config-dir"] or values["config-map"]):
        raise UsageError(
            "--federations cannot be used with --config-dir or --config-map: use their key federations"
        )
    if not values["config-period"]:
        raise UsageError("invalid value for --config-period: must be longer than 0")


def _expanded(text: str, environ: Mapping[str, str]) -> str:
    """Replace $NAME and ${NAME}; raises UsageError for a variable that is not set.

    Differs: in the original it is empty, and the error is about a URL that nobody wrote.
    """
    for found in _VARIABLE.finditer(text):
        if (name := found[1] or found[2]) not in environ:
            raise UsageError(
                f"invalid value for --kube-master-url: {text!r}: environment variable {name} is not set"
            )
    return _VARIABLE.sub(lambda found: environ[found[1] or found[2]], text)


def is_service_link(value: str) -> bool:
    """Whether kubelet set a variable NAME_PORT for a Service of that name: `tcp://10.96.0.9:9090`."""
    return value.startswith(("tcp://", "udp://", "sctp://"))


def _metrics(environ: Mapping[str, str]) -> Metrics:
    text = environ.get("PROMETHEUS_PORT", str(METRICS_PORT)).strip()
    if is_service_link(text):
        text = str(METRICS_PORT)
    try:
        port = integer(0, 65535)(text or "0")
    except ValueError as error:
        raise UsageError(f"environment variable PROMETHEUS_PORT: {error}") from error
    path = environ.get("PROMETHEUS_PATH", "") or "/metrics"
    prefixes = [environ.get(f"PROMETHEUS_{part}", "skydns") for part in ("NAMESPACE", "SUBSYSTEM")]
    for prefix in prefixes:
        if prefix and not _METRIC_PREFIX.fullmatch(prefix):
            raise UsageError(f"environment: {prefix!r} cannot begin the name of a metric")
    return Metrics(port or None, path if path.startswith("/") else f"/{path}", *prefixes)
