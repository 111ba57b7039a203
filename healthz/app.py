"""Builds every object, runs until a signal, ends with 0; the only module that knows all others."""

import asyncio
import logging
import signal
import socket
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from functools import partial

from prometheus_client import generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from healthz.children import Children
from healthz.counters import COMMAND_BOUNDS, PROBE_BOUNDS
from healthz.dnsmasqstats import DnsmasqStatistics
from healthz.dnsprobe import Probe, ask
from healthz.execprobe import CommandRunner
from healthz.findings import Watched
from healthz.metrics import HealthCollector, registry_of
from healthz.observer import INTERVAL as OBSERVED_EVERY
from healthz.observer import Observer
from healthz.options import PROBE_PATH, PROGRAM, Command, Options, from_argv, help_text
from healthz.page import Page
from healthz.programs import INTERVAL as PROGRAM_INTERVAL
from healthz.programs import Program
from healthz.readiness import INTERVAL as READINESS_INTERVAL
from healthz.readiness import Readiness
from healthz.recorder import Recorder
from healthz.results import Check
from healthz.schedule import Clock, periodically
from healthz.statusdoc import status_json
from healthz.traffic import History, OwnQuestions
from healthz.web import Answer, application, bytes_answer, check_answer, page_answer
from kubedns import __version__
from kubedns.shared.flags import UsageError
from kubedns.shared.histogram import Histogram
from kubedns.shared.log import program_line, setup_logging, warn_ignored_flags
from kubedns.shared.tasks import cancel, spawn
from kubedns.shared.web import serve

_log = logging.getLogger(__name__)
_MISSED_INTERVALS = 3
"""A DNS probe reports at every interval; after so many without a report its result is stale."""

Job = tuple[str, float, Callable[[], Awaitable[None]]]
"""Name, period in seconds, and what to run."""


def main() -> int:
    """Run exechealthz with the process's arguments; return its exit status: 0, 1, or 2 for usage."""
    try:
        options = from_argv(sys.argv[1:])
    except UsageError as error:
        sys.stderr.write(f"{PROGRAM}: {error}\nTry '{PROGRAM} --help'.\n")
        return 2
    if options.show_help or options.show_version:
        sys.stdout.write(help_text() if options.show_help else program_line(PROGRAM, __version__) + "\n")
        return 0
    setup_logging(options.verbosity)
    warn_ignored_flags(options.ignored)
    try:
        asyncio.run(Health(options).run())
    except OSError as error:
        _log.critical("%s can't serve: %s", PROGRAM, error)
        return 1
    return 0


class Health:
    """The running program: the checks, the tasks that write them, the listener that reads them."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._clock = time.monotonic
        self._children = Children()
        self._commands = [(command, _command_check(command, options)) for command in options.commands]
        self._probes = [(probe, _probe_check(probe)) for probe in options.probes]
        self._own = OwnQuestions()
        self._nanny = _program("dnsmasq-nanny", options.nanny_status_url, self._clock)
        self._kubedns = _program("kubedns", options.kubedns_status_url, self._clock)
        self._dnsmasq = self._statistics() if options.dnsmasq_interval else None
        self._readiness = Readiness(options.readiness_url, self._clock) if options.readiness_url else None
        self._watched = Watched(
            checks=[check for _, check in (*self._commands, *self._probes)],
            readiness=self._readiness.check if self._readiness else None,
            kubedns=self._kubedns,
            nanny=self._nanny,
            dnsmasq=self._dnsmasq,
            history=History(),
        )
        self._observer = Observer(self._watched, self._own, self._clock)

    def _statistics(self) -> DnsmasqStatistics:
        options = self._options
        return DnsmasqStatistics(
            options.dnsmasq,
            min(2.0, 0.8 * options.dnsmasq_interval),
            self._own,
            self._clock,
            self._nanny.dnsmasq_started if self._nanny else _unknown,
        )

    async def run(self) -> None:
        """Serve until SIGTERM or SIGINT, then kill the children; raises OSError without a port."""
        loop = asyncio.get_running_loop()
        stop = asyncio.Event()
        for signum in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(signum, stop.set)
        loop.add_signal_handler(
            signal.SIGHUP, _log.info, "SIGHUP: nothing to read again, all settings are flags"
        )
        loop.add_signal_handler(signal.SIGUSR1, self._log_statistics)
        loop.add_signal_handler(signal.SIGUSR2, lambda: None)
        loop.add_signal_handler(signal.SIGCHLD, self._children.reap_orphans)
        runner, port = await serve(
            application(self._answers()), self._options.port, PROGRAM, self._options.http_bind_address
        )
        _log.info("%s %s listens on port %d", PROGRAM, __version__, port)
        tasks = [
            spawn(periodically(period, run, self._clock), name=name) for name, period, run in self._jobs()
        ]
        await stop.wait()
        _log.info("ending")
        await cancel(*tasks)
        await runner.cleanup()

    def _log_statistics(self) -> None:
        now = self._clock()
        for check in (check for _, check in (*self._commands, *self._probes)):
            verdict = check.verdict(now)
            state = "healthy" if verdict.healthy else f"fails: {verdict.reason}"
            _log.info(
                "statistics: %s: %d good runs, %d failed; %s",
                check.path,
                check.successes,
                check.failures,
                state,
            )

    def _jobs(self) -> Iterator[Job]:
        recorded = Recorder(quiet=self._options.quiet).recorded
        commands = CommandRunner(self._children, self._options.latency, self._clock)
        for command, check in self._commands:
            yield check.path, self._options.period, recorded(partial(commands.run, command.text), check)
        for probe, check in self._probes:
            asked = partial(ask, probe, self._clock, self._options.dnsmasq, self._own)
            yield check.path, probe.interval, recorded(asked, check)
        if self._dnsmasq is not None:
            yield "dnsmasq statistics", self._options.dnsmasq_interval, self._dnsmasq.read
        if self._readiness is not None:
            yield "kubedns readiness", READINESS_INTERVAL, self._readiness.read
        for program in self._watched.programs:
            yield f"account of {program.name}", PROGRAM_INTERVAL, program.read
        yield "history", OBSERVED_EVERY, self._observer.observe

    def _answers(self) -> dict[str, Answer]:
        commands = [check for _, check in self._commands]
        probes = {probe.label: check for probe, check in self._probes}
        collector = HealthCollector(
            self._options.metrics_namespace, commands, probes, self._dnsmasq, self._clock
        )
        page = Page(socket.gethostname(), self._watched, self._options.metrics_path, clock=self._clock)
        document = status_json(self._watched, PROGRAM, self._clock)
        return {
            "/": page_answer(page.render),
            "/status.json": bytes_answer(document, "application/json"),
            self._options.metrics_path: bytes_answer(
                partial(generate_latest, registry_of(collector)), CONTENT_TYPE_PLAIN_0_0_4
            ),
            **{
                check.path: check_answer(check, self._clock, show_output=self._options.output)
                for check in commands
            },
            **{check.path: check_answer(check, self._clock) for check in probes.values()},
        }


def _program(name: str, url: str, clock: Clock) -> Program | None:
    return Program(name, url, clock) if url else None


async def _unknown() -> None:
    """Stand in for a nanny that is not read: nobody knows since when dnsmasq is up."""


def _command_check(command: Command, options: Options) -> Check:
    return Check(
        command.path,
        command.path,
        command.text,
        stale_after=options.latency,
        latency=Histogram(COMMAND_BOUNDS),
    )


def _probe_check(probe: Probe) -> Check:
    return Check(
        f"{PROBE_PATH}{probe.label}",
        probe.label,
        str(probe),
        stale_after=_MISSED_INTERVALS * probe.interval,
        latency=Histogram(PROBE_BOUNDS),
    )
