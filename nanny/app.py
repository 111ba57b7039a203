"""Builds the nanny's parts, orders their start and stop, turns signals into events.

In: the command line, signals.  Out: the exit status, see `--help`.  The first SIGTERM lets
dnsmasq answer on for the lame-duck time; a second one, and SIGINT, end it at once.  SIGHUP reads
the configuration again, SIGUSR1 has dnsmasq log its statistics, SIGUSR2 does nothing.
"""

import asyncio
import logging
import os
import signal
import sys

import kubedns
from kubedns.shared.flags import UsageError
from kubedns.shared.log import program_line, setup_logging, warn_ignored_flags
from kubedns.shared.tasks import cancel, spawn
from kubedns.shared.upstreamcheck import Target, UpstreamChecks
from kubedns.shared.web import serve
from nanny.arguments import changed_user, fixed_arguments, names_servers_file, resolver_arguments
from nanny.files import Files, open_files
from nanny.keeper import Keeper
from nanny.metrics import Metrics
from nanny.options import PROGRAM, Options, from_argv, help_text
from nanny.reaper import Reaper
from nanny.reload import EXIT_FAILED, Reloader, StartFailure
from nanny.status import Status
from nanny.supervisor import StatisticsDue, Stop
from nanny.upstreams import upstream_servers

_log = logging.getLogger(__name__)


def main() -> int:
    """Run the nanny; return its exit status."""
    try:
        options = from_argv(sys.argv[1:])
    except UsageError as error:
        return _wrong_usage(str(error))
    if options.wants_help or options.wants_version:
        sys.stdout.write(
            help_text() if options.wants_help else program_line(PROGRAM, kubedns.__version__) + "\n"
        )
        return 0
    setup_logging(options.verbosity)
    warn_ignored_flags(options.ignored_flags)
    try:
        files = open_files(options.hosts_directory, servers=not names_servers_file(options.given))
    except (FileNotFoundError, NotADirectoryError) as error:
        return _wrong_usage(f"--hostsDir={options.hosts_directory}: {error.strerror}; make it first")
    except OSError as error:
        _log.critical("cannot write %s (-hostsDir): %s", options.hosts_directory, error.strerror)
        return EXIT_FAILED
    try:
        return asyncio.run(_run(options, files))
    finally:
        if files is not None:
            files.close()


def _wrong_usage(problem: str) -> int:
    sys.stderr.write(f"{PROGRAM}: {problem}\nTry '{PROGRAM} --help'.\n")
    return 2


async def _run(options: Options, files: Files | None) -> int:
    return await Nanny(options, files).run()


class Nanny:
    """Owns start and stop of one dnsmasq and of all about it; must be made on the running loop."""

    def __init__(self, options: Options, files: Files | None) -> None:
        self._options = options
        self._metrics = Metrics()
        self._reaper = Reaper(adopt=True)
        self._keeper = Keeper(options.dnsmasq, self._reaper, self._metrics)
        root = os.geteuid() == 0
        if root and (user := changed_user(options.given)):
            _log.warning(
                "dnsmasq changes to user %s: it will survive a nanny that is killed by SIGKILL", user
            )
        fixed = fixed_arguments(options.given, root=root, files=files.arguments if files else ())
        fixed = (*fixed, *resolver_arguments(options.given, options.kubedns_server))
        self._reloader = Reloader(options, fixed, files, self._keeper, self._metrics)
        self._upstreams = UpstreamChecks(self._targets)
        self._metrics.show_upstreams(self._upstreams.reports)
        self._following: asyncio.Task[None] | None = None
        self._failure: StartFailure | None = None
        self._stopping = False

    async def run(self) -> int:
        """Return the exit status once dnsmasq is gone for good."""
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGCHLD, self._reaper.collect)
        loop.add_signal_handler(signal.SIGTERM, self._terminate)
        loop.add_signal_handler(signal.SIGINT, self._interrupt)
        loop.add_signal_handler(signal.SIGHUP, self._reread)
        loop.add_signal_handler(signal.SIGUSR1, self._keeper.feed, StatisticsDue())
        loop.add_signal_handler(signal.SIGUSR2, lambda: None)
        runner = None
        status = Status(self._reloader, self._upstreams, self._metrics)
        if self._options.metrics_port:
            try:
                runner, port = await serve(
                    self._metrics.application(status.text),
                    self._options.metrics_port,
                    "metrics (-metricsPort)",
                    self._options.http_bind_address,
                )
            except OSError as error:
                _log.critical("%s", error)
                return EXIT_FAILED
            _log.info("metrics on port %d, at /metrics", port)
        self._following = spawn(self._follow(), name="follow the configuration")
        self._following.add_done_callback(self._following_ended)
        statistics = spawn(self._log_statistics(), name="log statistics")
        checks = spawn(self._upstreams.run(), name="checks of name servers")
        ended = await self._keeper.over
        await cancel(self._following, statistics, checks)
        if runner is not None:
            await runner.cleanup()
        return self._status(ended)

    def _status(self, ended: str | None) -> int:
        if self._failure is not None:
            _log.critical("%s", self._failure.message)
            return self._failure.status
        if ended is not None:
            _log.critical("%s", ended)
            return EXIT_FAILED
        _log.info("dnsmasq has ended as asked")
        return 0

    def _targets(self) -> list[Target]:
        """Return the name servers that dnsmasq asks; kubedns, which it asks for the cluster, is none."""
        return upstream_servers(self._reloader.wanted, self._options.kubedns_server)

    async def _follow(self) -> None:
        self._failure = await self._reloader.start()
        if self._failure is not None:
            self._keeper.feed(Stop())
        else:
            await self._reloader.follow()

    def _following_ended(self, task: "asyncio.Task[None]") -> None:
        """After a fault of our own: DNS goes on with what it has, if it has anything."""
        if task.cancelled() or task.exception() is None:
            return
        self._metrics.not_in_effect()
        if self._keeper.alive:
            _log.error("changes of the configuration are not followed any more")
        else:
            self._failure = StartFailure("dnsmasq was not started", EXIT_FAILED)
            self._keeper.feed(Stop())

    async def _log_statistics(self) -> None:
        while self._options.log_interval:
            await asyncio.sleep(self._options.log_interval)
            self._keeper.feed(StatisticsDue())

    def _terminate(self) -> None:
        if self._stopping or not self._keeper.alive or not self._options.lame_duck:
            self._interrupt()
            return
        self._stopping = True
        _log.info("SIGTERM: dnsmasq goes on answering for %g s", self._options.lame_duck)
        if self._following is not None:
            self._following.cancel()
        asyncio.get_running_loop().call_later(self._options.lame_duck, self._keeper.feed, Stop())

    def _reread(self) -> None:
        """As dnsmasq's users know SIGHUP: read everything again, with an empty cache."""
        _log.info("SIGHUP: reading the configuration again, and dnsmasq its files")
        _ = spawn(self._reloader.reread(), name="read the configuration again")

    def _interrupt(self) -> None:
        self._stopping = True
        self._keeper.feed(Stop())
