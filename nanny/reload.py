"""From the configuration directory to arguments that dnsmasq takes.

In: snapshots of the directory, and time, because names of servers are resolved again each
period.  Out: events for the keeper, lines for the hosts file.  Invariant: only arguments that
`dnsmasq --test` took are handed on, and only when they differ from the last; an update that is
wrong anywhere changes nothing.  At the start a wrong configuration means the given arguments.
"""

import asyncio
import errno
import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, Protocol

from kubedns.shared.config import Config, InvalidConfigError, parse_config
from kubedns.shared.configdir import ConfigDirError, DirectoryWatch, Snapshot, read_directory
from kubedns.shared.report import Configuration, Refusal, UpstreamReport
from kubedns.shared.tasks import cancel, spawn
from nanny.arguments import Arguments, cluster_domains, config_arguments, conflicts, server_names
from nanny.hosts import HostsFile
from nanny.metrics import Metrics
from nanny.options import Options
from nanny.resolve import Resolver
from nanny.supervisor import Event, HostsChanged, Wanted

_log = logging.getLogger(__name__)

EXIT_FAILED: Final = 1
EXIT_NOT_EXECUTABLE: Final = 126
EXIT_NOT_FOUND: Final = 127
_MOST_NAMES_LOGGED = 10


@dataclass(frozen=True, slots=True)
class StartFailure:
    """dnsmasq cannot be started at all; `status` is the exit status of the nanny."""

    message: str
    status: int


class ChildSlot(Protocol):
    """Where the child is kept, as the reloader sees it: the Keeper."""

    fallen_back: bool
    """Whether the child runs with older arguments than those wanted, with which it failed."""

    async def refusal(self, arguments: Arguments) -> str | None:
        """Return why dnsmasq refuses the arguments, None when it takes them; may raise OSError."""

    def feed(self, event: Event) -> None:
        """Take in what is wanted of the child."""


class Reloader:
    """Owns the configuration in effect and the arguments that were handed on last."""

    def __init__(
        self,
        options: Options,
        fixed: Arguments,
        hosts: HostsFile | None,
        child: ChildSlot,
        metrics: Metrics,
    ) -> None:
        """`fixed` are the arguments without configuration; `hosts` None: there is no place for hosts."""
        self._options = options
        self._fixed = fixed
        self._hosts = hosts
        self._child = child
        self._metrics = metrics
        domains = cluster_domains(options.given, options.kubedns_server)
        self._domain = domains[0] if domains else ""
        self._resolver = Resolver(options.kubedns_server, domains)
        self._failures: Mapping[str, str] = {}
        self._hosts_failed = False
        self._snapshot: Snapshot = {}
        self._config = Config()
        self._wanted: Arguments | None = None
        self._passed_over: Arguments | None = None
        self.configuration = Configuration(f"configuration directory {options.config_directory}")
        """What is in force, and why the latest update is not."""

    @property
    def wanted(self) -> Arguments:
        """The arguments that were handed on last; the fixed ones before."""
        return self._wanted if self._wanted is not None else self._fixed

    def unresolved(self) -> list[UpstreamReport]:
        """Return the servers that are left out because their name does not resolve."""
        return [
            UpstreamReport(str(server), domain, up=False, reason=self._failures[server.host])
            for domain, servers in self._config.stub_domains.items()
            for server in servers
            if server.host in self._failures
        ]

    async def start(self) -> StartFailure | None:
        """Hand on the arguments of the first child, or return why there can be none."""
        try:
            refusal = await self._child.refusal(self._fixed)
        except OSError as error:
            return _cannot_execute(self._options.dnsmasq, error)
        if refusal is not None:
            return StartFailure(f"dnsmasq refuses the given arguments: {refusal}", EXIT_FAILED)
        try:
            self._snapshot = await asyncio.to_thread(read_directory, self._options.config_directory)
        except ConfigDirError as error:
            self._snapshot = error
        config = self._parse()
        if config is not None:
            await self._apply(config)
        if self._wanted is None:
            _log.error("starting dnsmasq on its given arguments alone: the configuration is NOT in effect")
            self._want(self._fixed)
        return None

    async def follow(self) -> None:
        """Follow the directory and the addresses of names, for ever."""
        news = asyncio.Event()
        watching = spawn(self._watch(news), name="watch the configuration directory")
        try:
            while True:
                try:
                    async with asyncio.timeout(self._options.sync_interval):
                        await news.wait()
                except TimeoutError:
                    if server_names(self._config) or self._hosts_failed:
                        await self._apply(self._config)
                    continue
                news.clear()
                config = self._parse()
                if config is not None and (outcome := await self._apply(config)):
                    self._metrics.reloaded(outcome)
        finally:
            await cancel(watching)

    async def _watch(self, news: asyncio.Event) -> None:
        async for snapshot in DirectoryWatch(self._options.config_directory, self._options.sync_interval):
            if snapshot != self._snapshot:
                self._snapshot = snapshot
                news.set()

    def _parse(self) -> Config | None:
        """Return the configuration of the snapshot, None when it is refused."""
        try:
            if isinstance(self._snapshot, ConfigDirError):
                raise self._snapshot
            config, warnings = parse_config(self._snapshot, self._domain)
        except ConfigDirError as error:
            self._refused(str(error), Refusal("", str(error)))
            return None
        except InvalidConfigError as error:
            self._refused(str(error), *(Refusal(fault.key, fault.reason) for fault in error.errors))
            return None
        for warning in (*warnings, *conflicts(self._options.given, config)):
            _log.warning("%s", warning)
        return config

    def _refused(self, reason: str, *faults: Refusal) -> None:
        _log.error("configuration refused as a whole: %s", reason)
        self.configuration = replace(self.configuration, refused=faults)
        self._metrics.reloaded("refused")
        self._metrics.not_in_effect()

    async def _apply(self, config: Config) -> str | None:
        """Bring a configuration into effect; return the outcome, None when it was refused or seen before."""
        arguments = (*self._fixed, *config_arguments(config, await self._resolve(config)))
        outcome = "unchanged"
        if arguments != self._wanted:
            if arguments == self._passed_over and config == self._config:
                return None
            if self._wanted is not None and not self._options.restart:
                self._passed_over = arguments
                _log.warning("the configuration changed: not restarting dnsmasq (-restartDnsmasq=false)")
                outcome = "not_restarted"
            elif refusal := await self._refusal(arguments):
                self._passed_over = arguments
                fault = Refusal(
                    "stubDomains, upstreamNameservers", f"dnsmasq does not take what they make: {refusal}"
                )
                self._refused(f"{fault.key}: {fault.reason}", fault)
                return None
            else:
                outcome = "applied"
        hosts_written = self._write_hosts(config)
        self._config = config
        if outcome == "applied":
            self._want(arguments)
        behind = outcome == "not_restarted" or (outcome == "unchanged" and self._child.fallen_back)
        complete = hosts_written and not self._failures and not behind
        self._metrics.in_effect(complete=complete, unresolved=len(self._failures))
        self._tell_effect(behind=behind, hosts_written=hosts_written)
        return outcome

    def _tell_effect(self, *, behind: bool, hosts_written: bool) -> None:
        faults = []
        if behind:
            faults.append(Refusal("", "dnsmasq runs with older arguments: see the nanny's log"))
        if not hosts_written:
            faults.append(Refusal("hosts", "the file for dnsmasq cannot be written"))
        taken = self.configuration.last_success if faults else time.time()
        self.configuration = replace(
            self.configuration, in_force=self._config.as_keys(), refused=faults, last_success=taken
        )

    def _want(self, arguments: Arguments) -> None:
        self._wanted, self._passed_over = arguments, None
        self._child.feed(Wanted(arguments))

    async def _refusal(self, arguments: Arguments) -> str | None:
        if arguments == self._fixed:
            return None  # they passed at the start
        try:
            return await self._child.refusal(arguments)
        except OSError as error:
            return _cannot_execute(self._options.dnsmasq, error).message

    async def _resolve(self, config: Config) -> Mapping[str, tuple[str, ...]]:
        """Return the addresses of the servers given by name; say once which have none."""
        names = server_names(config)
        resolution = await self._resolver.resolve(names)
        new = [name for name in resolution.failures if name not in self._failures]
        for name in new[:_MOST_NAMES_LOGGED]:
            domains, reason = ", ".join(names[name]), resolution.failures[name]
            _log.error(
                "stubDomains: server %s of %s is left out, it does not resolve: %s", name, domains, reason
            )
        if len(new) > _MOST_NAMES_LOGGED:
            _log.error("stubDomains: %d more servers do not resolve", len(new) - _MOST_NAMES_LOGGED)
        for name in self._failures.keys() & resolution.addresses.keys():
            _log.info("stubDomains: server %s resolves now: %s", name, ", ".join(resolution.addresses[name]))
        self._failures = resolution.failures
        return resolution.addresses

    def _write_hosts(self, config: Config) -> bool:
        """Return whether the hosts of the configuration are served."""
        if self._hosts is None:
            if config.hosts and config.hosts != self._config.hosts:
                _log.error(
                    "hosts: no effect: no temporary directory can be written; give -hostsDir or $TMPDIR"
                )
            return not config.hosts
        try:
            if self._hosts.write(config.hosts):
                self._child.feed(HostsChanged())
        except OSError as error:
            if not self._hosts_failed:
                _log.error("hosts: cannot write %s: %s; trying again", self._hosts.path, error.strerror)
            self._hosts_failed = True
            return False
        if self._hosts_failed:
            _log.info("hosts: %s is written", self._hosts.path)
        self._hosts_failed = False
        return True


def _cannot_execute(dnsmasq: str, error: OSError) -> StartFailure:
    status = EXIT_NOT_FOUND if error.errno == errno.ENOENT else EXIT_NOT_EXECUTABLE
    name = dnsmasq + " (-dnsmasqExec)" if error.filename in {None, dnsmasq} else error.filename
    return StartFailure(f"cannot execute {name}: {error.strerror}", status)
