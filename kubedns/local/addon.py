"""The whole add-on on one machine, from its start to its end.

In: options.  Out: five processes, where they listen, their log lines with the program's name
in front.  The first that ends by itself ends them all.
"""

import asyncio
import sys
import tempfile
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import aiohttp

from kubedns.local.failure import StartError
from kubedns.local.layout import (
    HOST,
    api_program,
    claim_ports,
    door,
    find_dnsmasq,
    health_program,
    server_programs,
)
from kubedns.local.options import Ports, UpOptions
from kubedns.local.processes import Process, Program, ending

READY_SECONDS: Final = 60.0
_POLL_SECONDS: Final = 0.1
_COLOURS: Final = {"api": 36, "kubedns": 32, "dnsmasq": 33, "healthz": 35}


class Addon:
    """The running add-on; leaving its context stops it.

    `ports`, `door` (the port that clients ask) and `config_dir` say where things are once the context is
    entered.
    """

    def __init__(self, options: UpOptions) -> None:
        self._options = options
        self._dnsmasq = find_dnsmasq(options.dnsmasq)
        self.ports: Ports = claim_ports(options.ports)
        self.door = door(options, self.ports)
        self._stack = AsyncExitStack()
        self._processes: list[Process] = []
        self.config_dir = options.config_dir or Path()

    async def __aenter__(self) -> Self:
        """Start the API and the servers; raises StartError when one does not come up."""
        if self._options.config_dir is None:
            made = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="kube-dns-config-"))
            self.config_dir = Path(made)
        elif not self.config_dir.is_dir():
            raise StartError(f"--config-dir={self.config_dir}: no such directory; make it first")
        try:
            await self._start(api_program(self._options, self.ports))
            await self._reached({f"http://{HOST}:{self.ports.api}/readyz"})
            for program in server_programs(self._options, self.ports, self.config_dir, self._dnsmasq):
                await self._start(program)
        except BaseException:
            await self._stack.aclose()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Stop everything, the last started first."""
        await self._stack.aclose()

    async def ready(self) -> None:
        """Wait until every part says that it works; raises StartError past the deadline.

        The health checks start when there is something to check.
        """
        await self._reached(
            {
                f"http://{HOST}:{self.ports.readiness}/readiness",
                f"http://{HOST}:{self.ports.nanny_metrics}/metrics",
            }
        )
        await self._start(health_program(self._options, self.ports))
        health = f"http://{HOST}:{self.ports.healthz}/healthcheck"
        await self._reached({f"{health}/kubedns", f"{health}/dnsmasq"})

    async def failed(self) -> StartError:
        """Wait until a program ends by itself, and return what there is to say about it."""
        await asyncio.wait([one.ended for one in self._processes], return_when=asyncio.FIRST_COMPLETED)
        return self._failure()

    def _failure(self) -> StartError:
        gone = [one for one in self._processes if one.ended.done()]
        parts = "; ".join(_end_of(one.name, one.ended.result()) for one in gone)
        return StartError(f"{parts}. The others are stopped.")

    async def _start(self, program: Program) -> None:
        process = await Process.start(program, _print_line)
        self._processes.append(process)
        self._stack.push_async_callback(process.stop)

    async def _reached(self, urls: set[str]) -> None:
        """Wait until each URL answers 200; raises StartError past the deadline or when a program ends."""
        waiting = dict.fromkeys(sorted(urls), "no answer")
        timeout = aiohttp.ClientTimeout(total=2)
        try:
            async with asyncio.timeout(READY_SECONDS), aiohttp.ClientSession(timeout=timeout) as session:
                while waiting:
                    if any(one.ended.done() for one in self._processes):
                        raise self._failure()
                    for url in list(waiting):
                        waiting[url] = await _state(session, url)
                        if not waiting[url]:
                            del waiting[url]
                    if waiting:
                        await asyncio.sleep(_POLL_SECONDS)
        except TimeoutError as error:
            states = "; ".join(f"{url}: {state}" for url, state in waiting.items())
            raise StartError(f"not ready within {READY_SECONDS:g} s: {states}") from error


def _end_of(name: str, code: int) -> str:
    """Return how a program ended; one that gave up by itself has said why."""
    who = "dnsmasq-nanny, and dnsmasq with it," if name == "dnsmasq" else name
    return f"{who} {ending(code)}{', its last lines above say why' if code > 0 else ''}"


async def _state(session: aiohttp.ClientSession, url: str) -> str:
    """Return why a URL is not well, or the empty string."""
    try:
        async with session.get(url) as response:
            if response.status == 200:
                return ""
            return f"HTTP {response.status} {(await response.text()).strip()[:200]}"
    except (aiohttp.ClientError, TimeoutError) as error:
        return str(error) or type(error).__name__


def _print_line(name: str, line: str) -> None:
    """Write a program's line; when standard error is closed, or its terminal gone, it is lost."""
    colour = _COLOURS.get(name) if sys.stderr.isatty() else None
    prefix = f"{name:8}|" if colour is None else f"\x1b[{colour}m{name:8}|\x1b[0m"
    with suppress(OSError):
        sys.stderr.write(f"{prefix} {line}\n")


def places(addon: Addon) -> str:
    """Return where everything listens, for a person."""
    ports, http = addon.ports, f"http://{HOST}"
    here = {ports.dnsmasq: "", ports.kubedns: "", addon.door: ": clients ask here"}
    rows = [
        ("Kubernetes API", f"{http}:{ports.api}"),
        ("dnsmasq", f"{HOST} port {ports.dnsmasq}, UDP and TCP{here[ports.dnsmasq]}"),
        ("kube-dns", f"{HOST} port {ports.kubedns}, UDP and TCP{here[ports.kubedns]}"),
        ("  readiness", f"{http}:{ports.readiness}/readiness, records at /cache"),
        ("  metrics", f"{http}:{ports.metrics}/metrics"),
        ("dnsmasq-nanny", f"{http}:{ports.nanny_metrics}/metrics"),
        ("exechealthz", f"{http}:{ports.healthz}/ for people, /healthcheck/kubedns, /healthcheck/dnsmasq"),
        ("configuration", f"{addon.config_dir}, followed by kube-dns and dnsmasq"),
    ]
    return "".join(f"  {name:15} {where}\n" for name, where in rows)


async def run_up(options: UpOptions) -> int:
    """Run the add-on until it fails (StartError) or is cancelled."""
    async with Addon(options) as addon:
        say(f"The add-on is starting; Ctrl-C stops all of it.\n\n{places(addon)}\n")
        await addon.ready()
        kubectl = f"kubectl --server=http://{HOST}:{addon.ports.api}"
        dig = f"dig @{HOST} -p {addon.door} NAME.NAMESPACE.svc.{options.domain}"
        say(f"Ready. Try:\n  {kubectl} get services -A\n  {kubectl} apply -f FILE\n  {dig}\n")
        raise await addon.failed()


def say(text: str) -> None:
    """Write to standard output at once."""
    sys.stdout.write(text)
    sys.stdout.flush()
