"""From configuration to the arguments of dnsmasq.

In: the arguments given after `--`, a Config, the addresses of the servers that it names.
Out: the words after `dnsmasq`.  Pure; the same configuration makes the same words in the same
order, so that a change of the words is a change of effect.  Source: dnsmasq(8), and the order of
the original: what is given, then what the configuration adds.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from kubedns.shared.config import Config
from kubedns.shared.servers import ServerAddress, parse_server

Arguments = tuple[str, ...]
Addresses = Mapping[str, tuple[str, ...]]
"""Hostname -> its IP addresses in a stable order; one that did not resolve is not in it."""

_HOSTS_TTL: Final = 30
"""Seconds for which clients may keep an address of `hosts`; dnsmasq's own 0 has them ask each time."""

REVERSE_DOMAINS: Final = ("in-addr.arpa", "ip6.arpa")


def fixed_arguments(given: Sequence[str], *, root: bool, files: Arguments) -> Arguments:
    """Return the given arguments and those that the nanny needs.

    `root` says that the nanny runs as root; `files` are the arguments that name the nanny's files.
    """
    needed: list[str] = []
    if not _stands(given, "-k", "--keep-in-foreground", "-d", "--no-daemon"):
        needed.append("--keep-in-foreground")
    if not _stands(given, "-8", "--log-facility"):
        needed.append("--log-facility=-")
    if not _stands(given, "-x", "--pid-file"):
        needed.append("--pid-file=")
    if not _stands(given, "--local-ttl", "--local-ttl"):
        needed.append(f"--local-ttl={_HOSTS_TTL}")
    if root and not _stands(given, "-u", "--user"):
        needed.append("--user=root")
    if root and not _stands(given, "-g", "--group"):
        needed.append("--group=root")
    return (*given, *needed, *files)


def resolver_arguments(given: Sequence[str], kubedns: ServerAddress) -> Arguments:
    """Return the route of `resolver.arpa` to kube-dns, where the cluster domain is routed there.

    kube-dns answers NODATA: no upstream may designate resolvers for us (RFC 9462 6.1).
    """
    given_routes = {domain for routed, _ in given_servers(given) for domain in routed}
    if not cluster_domains(given, kubedns) or "resolver.arpa" in given_routes:
        return ()
    return (f"--server=/resolver.arpa/{_server_word(kubedns.host, kubedns.port)}",)


def names_servers_file(given: Sequence[str]) -> bool:
    """Whether a servers file is given: dnsmasq takes one only."""
    return any(word.partition("=")[0] == "--servers-file" for word in given)


def config_servers(config: Config, addresses: Addresses) -> tuple[str, ...]:
    """Return the values of `server` that a configuration adds; names without addresses are left out."""
    words: dict[str, None] = {}
    for domain, servers in sorted(config.stub_domains.items()):
        for server in servers:
            for address in (server.host,) if server.is_ip else addresses.get(server.host, ()):
                words[f"/{domain}/{_server_word(address, server.port)}"] = None
    for server in config.upstream_nameservers:
        words[_server_word(server.host, server.port)] = None
    return tuple(words)


def hosts_servers(config: Config) -> tuple[str, ...]:
    """Return the values of `server` that keep the names of `hosts` to their lines (seen with 2.90).

    `/NAME/` answers every other type of the name with NODATA; `/*.NAME/#` has the names below it
    asked as all others are.  A name at or below a stub domain is left to the servers of that, which
    `#` would pass over.
    """
    words: dict[str, None] = {}
    for line in config.hosts.splitlines():
        for name in line.split()[1:]:
            if not any(f".{name}".endswith(f".{domain}") for domain in config.stub_domains):
                words |= dict.fromkeys((f"/{name}/", f"/*.{name}/#"))
    return tuple(words)


def server_arguments(servers: Iterable[str]) -> Arguments:
    """Return the values of `server` as arguments."""
    return tuple(f"--server={server}" for server in servers)


def server_names(config: Config) -> Mapping[str, tuple[str, ...]]:
    """Return the hostnames of servers, each with the stub domains that it serves."""
    names: dict[str, tuple[str, ...]] = {}
    for domain, servers in sorted(config.stub_domains.items()):
        for server in servers:
            if not server.is_ip:
                names[server.host] = (*names.get(server.host, ()), domain)
    return names


def cluster_domains(given: Sequence[str], kubedns: ServerAddress) -> tuple[str, ...]:
    """Return the domains that the given arguments send to kube-dns, the reverse zones left out."""
    domains: dict[str, None] = {}
    for routed, server in given_servers(given):
        if server == kubedns:
            domains |= dict.fromkeys(routed)
    return tuple(domain for domain in domains if domain not in (*REVERSE_DOMAINS, "resolver.arpa"))


def conflicts(given: Sequence[str], config: Config) -> tuple[str, ...]:
    """Return warnings about given arguments that compete with the configuration's servers."""
    warnings: list[str] = []
    for routed, server in given_servers(given):
        if not routed and config.upstream_nameservers:
            warnings.append(
                f"upstreamNameservers share all names with the given argument --server={server}, which dnsmasq "
                "asks as well; route only the cluster domain there, with --server=/domain/ip#port"
            )
        warnings += [
            f"stubDomains: {domain} is also routed to {server} by a given argument; dnsmasq asks either"
            for domain in sorted(config.stub_domains.keys() & set(routed))
        ]
    return tuple(warnings)


def changed_user(given: Sequence[str]) -> str | None:
    """Return the user that dnsmasq, started by root, is told to become, None when it stays root."""
    words = iter(given)
    user = ""
    for word in words:
        if word in {"-u", "--user"}:
            user = next(words, "")
        elif word.startswith("--user="):
            user = word.removeprefix("--user=")
        elif word.startswith("-u"):
            user = word[2:]
    return user if user not in {"", "root"} else None


def _server_word(address: str, port: int) -> str:
    return f"{address}#{port}"


def _stands(given: Sequence[str], short: str, long: str, *others: str) -> bool:
    """Whether one of the options is among the words, with or without a value in the same word."""
    for word in given:
        name = word.partition("=")[0]
        if name in (short, long, *others) or (word.startswith(short) and not word.startswith("--")):
            return True
    return False


def given_servers(given: Sequence[str]) -> Iterator[tuple[tuple[str, ...], ServerAddress]]:
    """Yield the domains (none: all names) and the server of each `--server` or `--local`."""
    words = iter(given)
    for word in words:
        name, equals, value = word.partition("=")
        if word in {"--server", "--local", "-S"}:
            value = next(words, "")
        elif word.startswith("-S"):
            value = word[2:].removeprefix("=")
        elif name not in {"--server", "--local"} or not equals:
            continue
        *domains, target = value.removeprefix("/").split("/") if value.startswith("/") else [value]
        address, _, port = target.partition("@")[0].partition("#")
        try:
            server = parse_server(
                f"[{address}]:{port or 53}" if ":" in address else f"{address}:{port or 53}", hostnames=True
            )
        except ValueError:
            continue  # for dnsmasq to judge: `/domain/` alone is a local domain
        yield tuple(domain.lower().removesuffix(".") for domain in domains), server
