"""What is wrong at a moment, each fault once and in words: the page's banner is green only without any.

Pure.  In: everything that is looked at.  Out: findings, the worst first.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import groupby
from typing import Final

from healthz.account import Account
from healthz.dnsmasqstats import DnsmasqStatistics
from healthz.programs import Program
from healthz.results import Check, State
from healthz.traffic import History, share
from kubedns.shared.durations import format_duration
from kubedns.shared.report import UpstreamReport

SILENT_SECONDS: Final = 300.0
"""Since the last sign of life of a watch, which should come about every minute; as the alert has it."""
RESTART_SHOWN: Final = 900.0
"""Seconds for which a restart that nobody asked for is held against a program."""
SERVFAIL_SHARE: Final = 0.05
_FEWEST_QUESTIONS: Final = 20
ALL_NAMES: Final = "."


class Level(IntEnum):
    """How bad things are; `waiting` is not known yet."""

    HEALTHY = 0
    WAITING = 1
    WARNING = 2
    FAILED = 3

    @property
    def word(self) -> str:
        """The level in lower case, as in the page's classes and in JSON."""
        return self.name.lower()


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault: what it is about, and what is wrong with it."""

    level: Level
    about: str
    text: str


@dataclass(frozen=True, slots=True)
class Watched:
    """Everything that is looked at; None is what is not."""

    checks: Sequence[Check]
    readiness: Check | None
    kubedns: Program | None
    nanny: Program | None
    dnsmasq: DnsmasqStatistics | None
    history: History

    @property
    def programs(self) -> list[Program]:
        """The programs that are read."""
        return [program for program in (self.kubedns, self.nanny) if program is not None]


def findings(watched: Watched, now: float) -> list[Finding]:
    """Return what is wrong at `now`, the worst first."""
    return sorted(_all(watched, now), key=lambda finding: -finding.level)


def worst(found: Sequence[Finding]) -> Level:
    """Return the level of all that was found."""
    return max((finding.level for finding in found), default=Level.HEALTHY)


def summary(found: Sequence[Finding]) -> str:
    """Return the banner's text."""
    level = worst(found)
    if level <= Level.WAITING:
        return "All is well" if level is Level.HEALTHY else "Waiting for the first results"
    bad = [finding for finding in found if finding.level >= Level.WARNING]
    about = ", ".join(dict.fromkeys(finding.about for finding in bad))
    return f"{len(bad)} {'thing is' if len(bad) == 1 else 'things are'} wrong: {about}"


def _all(watched: Watched, now: float) -> Iterator[Finding]:
    for check in watched.checks:
        yield from _of_check(check, f"check {check.title}", now)
    if watched.readiness is not None:
        yield from _of_check(watched.readiness, "readiness", now)
    for program in watched.programs:
        yield from _of_program(program, now)
    if watched.dnsmasq is not None and watched.dnsmasq.failure is not None:
        yield Finding(Level.WARNING, "dnsmasq's statistics", watched.dnsmasq.failure)
    recent = watched.history.recent()
    failed = share(recent.servfail, recent.questions)
    if failed is not None and recent.questions >= _FEWEST_QUESTIONS and failed > SERVFAIL_SHARE:
        yield Finding(Level.WARNING, "answers", f"{failed:.0%} of kubedns's latest answers are SERVFAIL")


def _of_check(check: Check, about: str, now: float) -> Iterator[Finding]:
    verdict = check.verdict(now)
    if verdict.state is State.WAITING:
        yield Finding(Level.WAITING, about, verdict.reason)
    elif not verdict.healthy:
        said = check.last.output.decode(errors="replace").strip() if check.last else ""
        first_line = said.partition("\n")[0]
        yield Finding(Level.FAILED, about, f"{verdict.reason}{f': {first_line}' if first_line else ''}")


def _of_program(program: Program, now: float) -> Iterator[Finding]:
    if program.failure:
        yield Finding(Level.FAILED, program.name, f"can't be read: {program.failure}")
    elif program.account is None:
        yield Finding(Level.WAITING, program.name, "not read yet")
    else:
        yield from _of_account(program.name, program.account)
    if program.restarts and now - program.restarts[-1] <= RESTART_SHOWN:
        ago = format_duration(round(now - program.restarts[-1]))
        times = program.restarts_within(RESTART_SHOWN, now)
        often = f", {times} times in the last {format_duration(RESTART_SHOWN)}" if times > 1 else ""
        yield Finding(Level.WARNING, program.name, f"restarted {ago} ago{often}")


def _of_account(name: str, account: Account) -> Iterator[Finding]:
    if account.configuration is not None:
        for refusal in account.configuration.refused:
            key = f"{refusal.key}: " if refusal.key else ""
            yield Finding(Level.WARNING, f"configuration of {name}", f"refused: {key}{refusal.reason}")
    yield from _of_upstreams(name, account.upstreams)
    if account.cluster is not None:
        for watch in account.cluster.watches:
            if watch.error:
                yield Finding(Level.FAILED, f"watch of {watch.name}", watch.error)
            elif watch.age is not None and watch.age > SILENT_SECONDS:
                silence = format_duration(round(watch.age))
                yield Finding(Level.FAILED, f"watch of {watch.name}", f"nothing heard for {silence}")
    if account.dnsmasq is not None and account.dnsmasq.started is None:
        yield Finding(Level.FAILED, name, "no dnsmasq is up")


def _of_upstreams(name: str, upstreams: Sequence[UpstreamReport]) -> Iterator[Finding]:
    """Yield one finding for each domain some of whose servers are down, and one where there is no server."""
    if not any(upstream.domain == ALL_NAMES for upstream in upstreams):
        yield Finding(
            Level.WARNING, f"name servers of {name}", "there is none for names outside the cluster: they fail"
        )
    in_order = sorted(upstreams, key=lambda upstream: upstream.domain)
    for domain, group in groupby(in_order, key=lambda upstream: upstream.domain):
        servers = list(group)
        down = [upstream for upstream in servers if upstream.up is False]
        if not down:
            continue
        what = "all other names" if domain == ALL_NAMES else domain
        reasons = ", ".join(
            f"{upstream.server}{f' ({upstream.reason})' if upstream.reason else ''}" for upstream in down
        )
        if len(down) == len(servers):
            text, level = f"no server for {what} answers: {reasons}", Level.FAILED
        else:
            text, level = f"{len(down)} of {len(servers)} for {what} don't answer: {reasons}", Level.WARNING
        yield Finding(level, f"name servers of {name}", text)
