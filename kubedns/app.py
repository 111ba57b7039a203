"""The record server: builds every room, joins them, starts and stops them in order.

The only module that knows all rooms, reads the environment and ends the process.  Exit status: 0
after SIGTERM or SIGINT, 2 for a wrong command line, 255 (as the original) when the first sync
takes too long, 1 for anything else that keeps the server from starting.
"""

import asyncio
import logging
import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, suppress
from functools import partial
from typing import Final

from aiohttp import web
from prometheus_client import CollectorRegistry, ProcessCollector

from kubedns import __version__
from kubedns.applier import SettingsApplier
from kubedns.cluster.clusterwatch import ClusterWatch
from kubedns.cluster.configmap import ConfigData
from kubedns.cluster.credentials import load_credentials
from kubedns.cluster.files import CredentialsError
from kubedns.config.directory import DirectoryFollower
from kubedns.config.options import PROGRAM, Options, from_argv, help_text, is_service_link
from kubedns.config.resolvconf import ResolvConf
from kubedns.config.settings import Settings
from kubedns.dns.names import to_text
from kubedns.process.filelimit import allow_many_files
from kubedns.process.garbage import GarbageKeeper, defer_full_collections
from kubedns.shared.config import Config
from kubedns.shared.flags import UsageError
from kubedns.shared.hosts import hosts_table
from kubedns.shared.listeners import PortBusyError
from kubedns.shared.log import program_line, setup_logging, warn_ignored_flags
from kubedns.shared.reply import Observer
from kubedns.shared.tasks import cancel, spawn
from kubedns.shared.upstreamcheck import UpstreamChecks
from kubedns.shared.web import serve
from kubedns.skydns.answers import Policy, ZoneAnswers
from kubedns.skydns.querylog import QueryLog
from kubedns.skydns.server import Server
from kubedns.telemetry.collectors import ClusterCollector, ClusterView, ServerCollector
from kubedns.telemetry.counters import ServerCounters
from kubedns.telemetry.report import ReportView, report
from kubedns.telemetry.status import metrics_app, status_app
from kubedns.telemetry.summary import summary
from kubedns.telemetry.upstreams import UpstreamCollector
from kubedns.transport.listeners import listen
from kubedns.transport.tcp import TcpServer
from kubedns.transport.udp import UdpServer
from kubedns.upstream.forward import Forwarder
from kubedns.upstream.stubservers import StubServers
from kubedns.zone.clusterzone import ClusterZone

_log = logging.getLogger(__name__)
_SYNC_FAILED: Final = 255
_CLOCK_PERIOD: Final = 10.0
_LOGS_QUERIES: Final = 3
_HOW_TO_BIND: Final = (
    "; ports below 1024 need the capability NET_BIND_SERVICE or the sysctl "
    "net.ipv4.ip_unprivileged_port_start=53; or give another --dns-port"
)


class StartError(Exception):
    """The server cannot start; the text says why and what to do."""


class KubeDns:
    """One running record server."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._counters = ServerCounters()
        self._zone = ClusterZone(options.domain, options.ttl)
        self._own = [(options.dns_bind_address, options.dns_port)]
        self._forwarder = Forwarder(self._counters.systems, domain=options.domain, own=self._own)
        policy = Policy(options.ttl, options.negative_ttl, options.wildcards, options.wildcard_names)
        self._answers = ZoneAnswers(self._zone, policy)
        self._server = Server(self._zone, self._answers, self._forwarder, self._counters)
        self._udp = UdpServer(self._server.respond, self._counters.note_batch)
        self._tcp = TcpServer(self._server.respond_tcp)
        always = options.verbosity >= _LOGS_QUERIES
        self._query_log = QueryLog(self._observe, self._server.took_full_path, always=always)
        self._upstream_checks = UpstreamChecks(self._forwarder.targets)
        self._resolv_conf = ResolvConf()
        credentials = load_credentials(options.kubeconfig, options.master_url, os.environ)
        self._api_server = credentials.server
        self._cluster = ClusterWatch(credentials, self._zone.services, self._zone.slices)
        self._stub_servers = StubServers(self._zone, self._forwarder.resolve)
        self._applier = SettingsApplier(
            self._zone,
            self._forwarder,
            self._stub_servers,
            self._cluster.api,
            options.config_period,
        )
        flags = Config(upstream_nameservers=options.nameservers, federations=options.federations)
        self._settings = Settings(options.domain, flags, self._resolv_conf.read, self._apply)
        self._directory: DirectoryFollower | None = None
        self._web_servers: list[web.AppRunner] = []
        self._started = time.time()
        self._draining = False
        if options.config_dir and not os.path.isdir(options.config_dir):
            _log.warning("--config-dir=%s is no directory yet; its keys are absent", options.config_dir)

    async def run(self) -> int:
        """Serve until told to stop; return the exit status.  Raises StartError."""
        loop = asyncio.get_running_loop()
        stopping: asyncio.Queue[signal.Signals] = asyncio.Queue()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stopping.put_nowait, number)
        loop.add_signal_handler(signal.SIGHUP, self._reread)
        loop.add_signal_handler(signal.SIGUSR1, self._log_statistics)
        loop.add_signal_handler(signal.SIGUSR2, lambda: None)
        async with AsyncExitStack() as stack:
            await self._start(stack)
            sync = spawn(self._sync(), name="first sync")
            stack.push_async_callback(cancel, sync)
            waiting = spawn(stopping.get(), name="signals")
            await asyncio.wait((sync, waiting), return_when=asyncio.FIRST_COMPLETED)
            if not waiting.done() and not sync.result():
                await cancel(waiting)
                return _SYNC_FAILED
            if await waiting == signal.SIGTERM and self._options.lame_duck > 0:
                await self._drain(stopping)
            _log.info("stopping")
        return 0

    async def _start(self, stack: AsyncExitStack) -> None:
        options = self._options
        self._server.set_clock(time.time())
        await self._follow_settings(stack)
        try:
            await self._listen(stack)
            await self._serve(stack, self._status(), options.healthz_port, "health checks (--healthz-port)")
            if options.metrics.port is not None:
                port = options.metrics.port
                await self._serve(
                    stack, self._metrics(), port, "metrics (environment variable PROMETHEUS_PORT)"
                )
        except PortBusyError as error:
            raise StartError(str(error)) from error
        except OSError as error:
            at = options.http_bind_address or "all addresses"
            raise StartError(f"cannot serve HTTP at {at}: {error.strerror or error}") from error
        stack.push_async_callback(cancel, spawn(self._keep_time(), name="clock"))
        stack.push_async_callback(cancel, spawn(self._upstream_checks.run(), name="checks of name servers"))
        keeper = GarbageKeeper(self._open_connections, lambda: not self._zone.has_synced(), self._zone.forget)
        stack.push_async_callback(cancel, spawn(keeper.run(), name="garbage"))
        stack.push_async_callback(self._applier.stop)
        stack.callback(self._query_log.stop)
        self._cluster.start()
        stack.push_async_callback(self._cluster.stop)
        _log.info("%s %s serves %s from %s", PROGRAM, __version__, to_text(options.domain), self._api_server)

    async def _listen(self, stack: AsyncExitStack) -> None:
        options = self._options
        host = options.dns_bind_address
        try:
            port = await listen(self._udp, self._tcp, host, options.dns_port, self._know_own)
        except PortBusyError as error:
            raise StartError(f"{error}; end that one, or give another --dns-port") from error
        except OSError as error:
            where = f"--dns-bind-address={host} --dns-port={options.dns_port}"
            advice = _HOW_TO_BIND if isinstance(error, PermissionError) else ""
            raise StartError(f"cannot answer DNS at {where}: {error.strerror or error}{advice}") from error
        stack.callback(self._udp.stop)
        stack.push_async_callback(self._tcp.stop)
        stack.push_async_callback(self._forwarder.close)
        _log.info("answering DNS at %s, port %d, over UDP and TCP", host, port)

    def _know_own(self, port: int) -> None:
        """Let the forwarder know which upstream would be this server itself."""
        self._own[:] = [(self._options.dns_bind_address, port)]
        if self._options.cache_server is not None:
            try:
                self._forwarder.use_cache(self._options.cache_server)
            except ValueError as error:
                raise StartError(f"--cache-server: {error}") from error
        self._settings.start()

    async def _serve(self, stack: AsyncExitStack, app: web.Application, port: int, purpose: str) -> None:
        runner, bound = await serve(app, port, purpose, self._options.http_bind_address)
        stack.push_async_callback(runner.cleanup)
        self._web_servers.append(runner)
        _log.info("serving %s at port %d", purpose, bound)

    def _open_connections(self) -> Iterator[asyncio.BaseProtocol]:
        yield from self._tcp.connections
        for runner in self._web_servers:
            if runner.server is not None:
                yield from runner.server.connections

    async def _sync(self) -> bool:
        """Wait for the first complete state; return False if it came too late."""
        limit = self._options.initial_sync_timeout or None
        begun = time.monotonic()
        try:
            async with asyncio.timeout(limit):
                await self._cluster.synced.wait()
        except TimeoutError:
            _log.critical(
                "no complete list of the cluster after %gs (--initial-sync-timeout): %s",
                limit,
                self._cluster.why_not_synced(),
            )
            return False
        self._zone.mark_synced()
        held = ", ".join(f"{count} {kind}s" for kind, count in self._zone.counts().items())
        _log.info("synced after %.3fs: %s", time.monotonic() - begun, held)
        return True

    async def _drain(self, stopping: "asyncio.Queue[signal.Signals]") -> None:
        """Go on answering while clients and load balancers learn that we leave."""
        self._draining = True
        _log.info("SIGTERM: answering for another %gs (--lame-duck)", self._options.lame_duck)
        with suppress(TimeoutError):
            await asyncio.wait_for(stopping.get(), self._options.lame_duck)

    # Settings.

    def _apply(self, effective: Config) -> None:
        """Put settings into force: the names of `hosts` at once, then who answers for the others."""
        self._answers.hosts = self._stub_servers.hosts = hosts_table(effective.hosts)
        self._forwarder.revises_all = bool(effective.hosts)
        self._applier.apply(effective)
        self._query_log.configure(effective.log_queries)

    def _observe(self, observer: Observer | None) -> None:
        self._udp.observer = self._tcp.observer = observer

    async def _follow_settings(self, stack: AsyncExitStack) -> None:
        """Take over the configuration directory as it is now, then follow it; a ConfigMap comes later."""
        options = self._options
        if options.config_dir:
            self._directory = DirectoryFollower(options.config_dir, options.config_period, self._settings)
            await self._directory.start()
            stack.push_async_callback(self._directory.stop)
        elif options.config_map:
            states: asyncio.Queue[ConfigData | None] = asyncio.Queue()
            watch = self._cluster.watch_config_map(
                options.config_map_namespace, options.config_map, states.put_nowait
            )
            watch.start()
            stack.push_async_callback(watch.stop)
            stack.push_async_callback(cancel, spawn(self._follow_config_map(states), name="ConfigMap"))

    def _reread(self) -> None:
        """Read the configuration directory and resolv.conf again; a ConfigMap is watched, there is no need."""
        _log.info("SIGHUP: reading the configuration again")
        if self._directory is not None:
            self._directory.reread()
        self._settings.refresh()

    async def _follow_config_map(self, states: "asyncio.Queue[ConfigData | None]") -> None:
        name = f"{self._options.config_map_namespace}/{self._options.config_map}"
        while True:
            state = await states.get()
            if state is None:
                _log.warning("ConfigMap %s does not exist; its keys are absent until it does", name)
            await self._settings.update(state or {}, f"ConfigMap {name}")

    async def _keep_time(self) -> None:
        """Move the SOA's serial on, and look whether resolv.conf has changed."""
        while True:
            await asyncio.sleep(_CLOCK_PERIOD)
            self._server.set_clock(time.time())
            if self._resolv_conf.has_changed():
                self._settings.refresh()

    # What is shown.

    def _why_not_ready(self) -> str:
        if self._draining:
            return "stopping"
        if not self._zone.has_synced():
            return f"waiting for the first sync: {self._cluster.why_not_synced()}"
        return ""

    def _dump(self) -> Iterator[str]:
        yield from self._zone.dump()
        yield "\n"

    def _status(self) -> web.Application:
        return status_app(self._why_not_ready, self._dump, partial(report, self._report_view()))

    def _metrics(self) -> web.Application:
        names = self._options.metrics
        registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        registry.register(ServerCollector(self._counters, names.namespace, names.subsystem))
        registry.register(ClusterCollector(self._view()))
        registry.register(UpstreamCollector(self._forwarder.traffic))
        return metrics_app(registry, names.path)

    def _report_view(self) -> ReportView:
        return ReportView(
            program=PROGRAM,
            started=self._started,
            configuration=lambda: self._settings.configuration,
            upstreams=lambda: [*self._upstream_checks.reports(), *self._applier.unresolved()],
            why_not_ready=self._why_not_ready,
            synced=self._zone.has_synced,
            objects=self._zone.counts,
            records=self._zone.count_records,
            watches=lambda: self._cluster.statistics,
            failures=self._cluster.failures,
            counters=self._counters,
            now=time.monotonic,
        )

    def _log_statistics(self) -> None:
        for line in summary(self._report_view()):
            _log.info("statistics: %s", line)

    def _view(self) -> ClusterView:
        return ClusterView(
            objects=self._zone.counts,
            records=self._zone.count_records,
            synced=self._zone.has_synced,
            watches=lambda: self._cluster.statistics,
            settings=lambda: self._settings.reloads,
            configuration=lambda: self._settings.configuration,
            upstreams=self._upstream_checks.reports,
            drops=lambda: {
                "socket": self._udp.dropped,
                "overload": self._forwarder.overloads + self._server.overloads,
            },
            now=time.monotonic,
        )


def main(argv: Sequence[str] | None = None) -> int:
    """Run the record server with a command line, `sys.argv` if None; return the exit status."""
    try:
        options = from_argv(sys.argv[1:] if argv is None else argv, os.environ)
    except UsageError as error:
        print(f"{PROGRAM}: {error}\nTry '{PROGRAM} --help'.", file=sys.stderr)  # noqa: T201
        return 2
    if options.wants_help:
        print(help_text(), end="")  # noqa: T201
        return 0
    if options.wants_version:
        print(program_line(PROGRAM, __version__))  # noqa: T201
        return 0
    setup_logging(options.verbosity)
    warn_ignored_flags(options.ignored_flags)
    if is_service_link(link := os.environ.get("PROMETHEUS_PORT", "")):
        _log.warning(
            "PROMETHEUS_PORT=%s is kubelet's link to a Service named prometheus, no port: the default is used; "
            "enableServiceLinks: false in the pod keeps such variables away",
            link,
        )
    if options.check_config:
        from kubedns.config.check import check_config

        return check_config(options.check_config, to_text(options.domain))
    defer_full_collections()
    allow_many_files()
    try:
        return asyncio.run(_run(options))
    except (StartError, CredentialsError) as error:
        _log.critical("cannot start: %s", error)
        return 1


async def _run(options: Options) -> int:
    return await KubeDns(options).run()
