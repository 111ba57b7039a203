"""From the configuration directory to arguments that dnsmasq takes.

In: snapshots of the directory, and time, because names of servers are resolved again each
period.  Out: events for the keeper, lines for the files that dnsmasq reads again.  Invariant: only
arguments and servers that `dnsmasq --test` took are handed on, and only when they differ from the
last; an update that is wrong anywhere changes nothing.  At the start a wrong configuration means the given arguments.
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
from nanny.arguments import (
    Arguments,
    cluster_domains,
    config_servers,
    conflicts,
    hosts_servers,
    server_arguments,
    server_names,
)
from nanny.files import Files, LinesFile
from nanny.metrics import Metrics
from nanny.options import Options
from nanny.resolve import Resolver
from nanny.supervisor import Event, FilesChanged, Wanted

_log = logging.getLogger(__name__)

EXIT_FAILED: Final = 1
EXIT_NOT_EXECUTABLE: Final = 126
EXIT_NOT_FOUND: Final = 127
_MOST_NAMES_LOGGED = 10
_LONGEST_SHOWN = 2000
_SERVER_KEYS = "stubDomains, upstreamNameservers"


@dataclass(frozen=True, slots=True)
class Setup:
    """What dnsmasq shall run with: arguments, and the values of `server` in its servers file."""

    arguments: Arguments
    servers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StartFailure:
    """dnsmasq cannot be started at all; `status` is the exit status of the nanny."""

    message: str
    status: int


class ChildSlot(Protocol):
    """Where the child is kept, as the reloader sees it: the Keeper."""

    fallen_back: bool
    """Whether the child runs with older arguments than those wanted, with which it failed."""

    async def refusal(self, arguments: Arguments, servers: Arguments = ()) -> str | None:
        """Return why dnsmasq refuses them together, None when it takes them; may raise OSError."""

    def feed(self, event: Event) -> None:
        """Take in what is wanted of the child."""


class Reloader:
    """Owns the configuration in effect and the arguments that were handed on last."""

    def __init__(
        self,
        options: Options,
        fixed: Arguments,
        files: Files | None,
        child: ChildSlot,
        metrics: Metrics,
    ) -> None:
        """`fixed` are the arguments without configuration; `files` None: there is no place for them."""
        self._options = options
        self._fixed = fixed
        self._files = files
        self._child = child
        self._metrics = metrics
        domains = cluster_domains(options.given, options.kubedns_server)
        self._domain = domains[0] if domains else ""
        self._resolver = Resolver(options.kubedns_server, domains)
        self._failures: Mapping[str, str] = {}
        self._unwritten: set[str] = set()
        self._snapshot: Snapshot = {}
        self._news = asyncio.Event()
        self._config = Config()
        self._wanted: Setup | None = None
        self._passed_over: Setup | None = None
        self.configuration = Configuration(f"configuration directory {options.config_directory}")
        """What is in force, and why the latest update is not."""

    @property
    def wanted(self) -> Arguments:
        """The arguments that were handed on last, the fixed ones before, with all servers among them."""
        wanted = self._wanted or Setup(self._fixed)
        return (*wanted.arguments, *server_arguments(wanted.servers))

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
        config = await self._parse()
        if config is not None:
            await self._apply(config)
        if self._wanted is None:
            _log.error("starting dnsmasq on its given arguments alone: the configuration is NOT in effect")
            self._want(Setup(self._fixed), files_changed=False)
        return None

    async def follow(self) -> None:
        """Follow the directory and the addresses of names, for ever."""
        news = self._news
        watching = spawn(self._watch(news), name="watch the configuration directory")
        try:
            while True:
                try:
                    async with asyncio.timeout(self._options.sync_interval):
                        await news.wait()
                except TimeoutError:
                    if server_names(self._config) or self._unwritten:
                        await self._apply(self._config)
                    continue
                news.clear()
                config = await self._parse()
                if config is not None and (outcome := await self._apply(config)):
                    self._metrics.reloaded(outcome)
        finally:
            await cancel(watching)

    async def _watch(self, news: asyncio.Event) -> None:
        async for snapshot in DirectoryWatch(self._options.config_directory, self._options.sync_interval):
            if snapshot != self._snapshot:
                if not snapshot and not self._options.config_directory.is_dir():
                    _log.warning(
                        "configuration directory %s is gone; its keys are absent until it is back",
                        self._options.config_directory,
                    )
                self._snapshot = snapshot
                news.set()

    async def reread(self) -> None:
        """Read the directory now, as at a change, and have dnsmasq forget what it cached and read its files."""
        try:
            self._snapshot = await asyncio.to_thread(read_directory, self._options.config_directory)
        except ConfigDirError as error:
            self._snapshot = error
        self._news.set()
        self._child.feed(FilesChanged())

    async def _parse(self) -> Config | None:
        """Return the configuration of the snapshot, None when it is refused.

        Read in a thread: a value of 1 MiB takes up to a second, and dnsmasq's log and its end wait on this loop.
        """
        try:
            if isinstance(self._snapshot, ConfigDirError):
                raise self._snapshot
            config, warnings = await asyncio.to_thread(parse_config, self._snapshot, self._domain)
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
        setup = self._setup(config, await self._resolve(config))
        outcome = "unchanged"
        if setup != self._wanted:
            if setup == self._passed_over and config == self._config:
                return None
            if self._wanted is not None and not self._options.restart:
                self._passed_over = setup
                _log.warning("the configuration changed: not restarting dnsmasq (-restartDnsmasq=false)")
                outcome = "not_restarted"
            elif refusal := await self._refusal(setup):
                self._passed_over = setup
                fault = Refusal(_SERVER_KEYS, f"dnsmasq does not take what they make: {refusal}")
                self._refused(f"{fault.key}: {fault.reason}", fault)
                return None
            else:
                outcome = "applied"
        changed = self._write_files(config, setup if outcome == "applied" else self._wanted or setup)
        self._config = config
        if outcome == "applied":
            self._want(setup, files_changed=changed)
        elif changed:
            self._child.feed(FilesChanged())
        behind = outcome == "not_restarted" or (outcome == "unchanged" and self._child.fallen_back)
        complete = not self._unwritten and not self._failures and not behind
        self._metrics.in_effect(complete=complete, unresolved=len(self._failures))
        self._tell_effect(behind=behind)
        return outcome

    def _setup(self, config: Config, addresses: Mapping[str, tuple[str, ...]]) -> Setup:
        """Return what dnsmasq shall run with; without a place for a file servers are arguments."""
        servers = config_servers(config, addresses)
        arguments = self._fixed
        if self._files is None or self._files.servers is None:
            arguments, servers = (*arguments, *server_arguments(servers)), ()
        if config.upstream_nameservers:
            arguments = (*arguments, "--no-resolv")
        return Setup(arguments, servers)

    def _tell_effect(self, *, behind: bool) -> None:
        faults = []
        if behind:
            faults.append(Refusal("", "dnsmasq runs with older arguments: see the nanny's log"))
        faults += [Refusal(key, "the file for dnsmasq cannot be written") for key in sorted(self._unwritten)]
        taken = self.configuration.last_success if faults else time.time()
        if self.configuration.refused and not faults:
            _log.info("the configuration is good again, and in force")
        self.configuration = replace(
            self.configuration, in_force=self._config.as_keys(), refused=faults, last_success=taken
        )

    def _want(self, setup: Setup, *, files_changed: bool) -> None:
        self._wanted, self._passed_over = setup, None
        self._child.feed(Wanted(setup.arguments, files_changed))

    async def _refusal(self, setup: Setup) -> str | None:
        if setup == Setup(self._fixed):
            return None  # they passed at the start
        try:
            return await self._child.refusal(setup.arguments, server_arguments(setup.servers))
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

    def _write_files(self, config: Config, setup: Setup) -> bool:
        """Return whether the files changed; what cannot be written is tried again."""
        if self._files is None:
            if config.hosts:
                if config.hosts != self._config.hosts:
                    _log.error(
                        "hosts: no effect: no temporary directory can be written; give -hostsDir or $TMPDIR"
                    )
                self._unwritten.add("hosts")
            else:
                self._unwritten.discard("hosts")
            return False
        lines = "".join(f"server={server}\n" for server in (*setup.servers, *hosts_servers(config)))
        file = self._files.servers
        servers_changed = file is not None and self._write(_SERVER_KEYS, file, lines)
        if servers_changed and setup.servers != (self._wanted.servers if self._wanted else ()):
            _log.info("dnsmasq reads its servers: %s", ", ".join(setup.servers)[:_LONGEST_SHOWN] or "none")
        return self._write("hosts", self._files.hosts, config.hosts) or servers_changed

    def _write(self, key: str, file: LinesFile, lines: str) -> bool:
        """Return whether the file changed."""
        try:
            changed = file.write(lines)
        except OSError as error:
            if key not in self._unwritten:
                _log.error("%s: cannot write %s: %s; trying again", key, file.path, error.strerror)
            self._unwritten.add(key)
            return False
        if key in self._unwritten:
            _log.info("%s: %s is written", key, file.path)
        self._unwritten.discard(key)
        return changed


def _cannot_execute(dnsmasq: str, error: OSError) -> StartFailure:
    status = EXIT_NOT_FOUND if error.errno == errno.ENOENT else EXIT_NOT_EXECUTABLE
    name = dnsmasq + " (-dnsmasqExec)" if error.filename in {None, dnsmasq} else error.filename
    return StartFailure(f"cannot execute {name}: {error.strerror}", status)
