"""The nanny's command line as frozen Options.

In: the words after the program's name.  Out: Options, or UsageError with the flag and the reason.
Source: the original's flags; `-lameDuck`, `-metricsPort` and `-hostsDir` are new.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kubedns.shared.flags import (
    HELP,
    VERBOSITY,
    VERSION,
    Flag,
    UsageError,
    flag_bool,
    flag_duration,
    flag_http_address,
    flag_port,
    flag_text,
    parse_flags,
    usage,
)
from kubedns.shared.servers import ServerAddress, parse_server

PROGRAM: Final = "dnsmasq-nanny"


@dataclass(frozen=True, slots=True)
class Options:
    """The checked command line; times in seconds, `metrics_port` 0 and `log_interval` 0 mean off.

    `given` are the arguments for dnsmasq; `hosts_directory` None means a temporary one.
    """

    dnsmasq: str
    restart: bool
    config_directory: Path
    sync_interval: float
    kubedns_server: ServerAddress
    log_interval: float
    lame_duck: float
    metrics_port: int
    http_bind_address: str
    hosts_directory: Path | None
    verbosity: int
    given: tuple[str, ...]
    ignored_flags: tuple[str, ...] = ()
    wants_help: bool = False
    wants_version: bool = False


def _address(text: str) -> ServerAddress:
    return parse_server(text, hostnames=False)


FLAGS: Final[tuple[Flag, ...]] = (
    flag_text("dnsmasqExec", "/usr/sbin/dnsmasq", "The dnsmasq to run.", "PATH"),
    flag_bool(
        "restartDnsmasq",
        False,
        "Bring changes of the configured servers into effect, by a restart where dnsmasq needs one; "
        "without it such a change is only logged. The hosts key needs no restart and is followed either way.",
    ),
    flag_text(
        "configDir",
        "/etc/k8s/dns/dnsmasq-nanny",
        "Directory of the configuration keys stubDomains, upstreamNameservers and hosts, as a mounted "
        "ConfigMap has them; it may be missing.",
        "DIR",
    ),
    flag_duration(
        "syncInterval",
        10.0,
        "How often the configuration directory is read even without an event of the file system, and how "
        "often servers given by name are resolved again.",
    ),
    Flag(
        "kubednsServer",
        _address,
        ServerAddress("127.0.0.1", 10053),
        "Address of kube-dns. Names of servers below the domains that a --server=/domain/ argument of "
        "dnsmasq sends there are resolved there, all others by the system's resolver.",
        "IP:PORT",
    ),
    flag_duration(
        "logInterval", 0.0, "How often dnsmasq is made to log its statistics, by SIGUSR1; 0s: never."
    ),
    flag_duration(
        "lameDuck",
        15.0,
        "How long dnsmasq goes on answering after the first SIGTERM. A second one, and SIGINT, end it at once.",
    ),
    flag_port("metricsPort", 10056, "TCP port of /metrics and /status; 0: off."),
    flag_http_address("httpBindAddress"),
    Flag(
        "hostsDir",
        Path,
        None,
        "Writable directory for the file with the lines of the hosts key, for this process alone. Without it a directory "
        "is made in $TMPDIR, /tmp, /var/tmp or /dev/shm, and removed at the end.",
        "DIR",
        shown="a temporary directory",
    ),
    VERBOSITY,
    HELP,
    VERSION,
)

_TAIL = """
Everything after -- goes to dnsmasq as it stands, followed by --no-resolv as the
configuration has it, by --addn-hosts and --servers-file, and by these where they are not given: --keep-in-foreground,
--log-facility=-, --pid-file= (none), --local-ttl=30, and when root --user=root --group=root: a dnsmasq that changes
its user would survive a nanny that is killed.

Exit status: 0 after SIGTERM or SIGINT; 1 when dnsmasq does not come up, keeps dying (6 times in a row
within 2 s of being up) or refuses the given arguments, or the metrics port is taken; 2 for a wrong
command line, a missing -hostsDir included; 126 when dnsmasq cannot be executed; 127 when it does
not exist.
"""


def help_text() -> str:
    """Return what `--help` prints."""
    summary = (
        "Runs dnsmasq as a child, adds stub domains, upstream nameservers and hosts from a configuration "
        "directory, and restarts it when they change."
    )
    return usage(PROGRAM, summary, FLAGS, " -- [dnsmasq arguments]") + _TAIL


def from_argv(argv: Sequence[str]) -> Options:
    """Return the options of a command line without its program; raises UsageError."""
    parsed = parse_flags(FLAGS, argv)
    values = parsed.values
    for name in ("dnsmasqExec", "configDir"):
        if not values[name]:
            raise UsageError(f"invalid value for --{name}: it is empty")
    if values["syncInterval"] <= 0:
        raise UsageError("invalid value for --syncInterval: it must be more than zero")
    return Options(
        dnsmasq=values["dnsmasqExec"],
        restart=values["restartDnsmasq"],
        config_directory=Path(values["configDir"]),
        sync_interval=values["syncInterval"],
        kubedns_server=values["kubednsServer"],
        log_interval=values["logInterval"],
        lame_duck=values["lameDuck"],
        metrics_port=values["metricsPort"],
        http_bind_address=values["httpBindAddress"],
        hosts_directory=values["hostsDir"],
        verbosity=values["v"],
        given=parsed.rest,
        ignored_flags=parsed.ignored,
        wants_help=values["help"],
        wants_version=values["version"],
    )
