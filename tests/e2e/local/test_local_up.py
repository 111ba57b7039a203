"""The whole add-on by one command: it comes up, answers, and goes down as a whole."""

import asyncio
import os
import re
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.ports import free_port
from tests.tools import tool

pytestmark = [pytest.mark.e2e, pytest.mark.integration, pytest.mark.timeout(120)]

PARTS = ("api", "dnsmasq", "kubedns", "readiness", "metrics", "healthz", "nanny-metrics")
READY_SECONDS = 60


def free_ports() -> list[str]:
    return [f"--{part}-port={free_port()}" for part in PARTS]


class Command:
    """A running `python -m kubedns.local`; its output is read as it comes."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.output = ""

    async def until(self, text: str) -> None:
        assert self.process.stdout is not None
        async with asyncio.timeout(READY_SECONDS):
            while text not in self.output:
                line = await self.process.stdout.readline()
                assert line, self.output
                self.output += line.decode()

    async def end(self) -> int:
        assert self.process.stdout is not None
        async with asyncio.timeout(READY_SECONDS):
            self.output += (await self.process.stdout.read()).decode()
            return await self.process.wait()

    def place(self, pattern: str) -> str:
        match = re.search(pattern, self.output)
        assert match, self.output
        return match[1]

    def child(self, words: str) -> int:
        """Return the process id of the child whose command line holds some words."""
        found = [pid for pid, command in children(self.process.pid) if words in command]
        assert len(found) == 1, found
        return found[0]


def children(parent: int) -> list[tuple[int, str]]:
    found = []
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            fields = (directory / "stat").read_text().rpartition(")")[2].split()
            command = (directory / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
        if int(fields[1]) == parent and fields[0] != "Z":
            found.append((int(directory.name), command))
    return found


def running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not holds():
            await asyncio.sleep(0.02)


@pytest.fixture
async def start() -> AsyncIterator[Any]:
    started: list[Command] = []

    async def start(*words: str) -> Command:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", "kubedns.local", *words),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            cwd=Path(__file__).parents[3],
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
        started.append(Command(process))
        return started[-1]

    yield start
    for command in started:
        if command.process.returncode is None:
            command.process.terminate()
            await command.end()


async def dig(port: str, *words: str) -> str:
    process = await asyncio.create_subprocess_exec(
        *(tool("dig:bind9-dnsutils"), "@127.0.0.1", "-p", port, "+time=2", "+tries=1", *words),
        stdout=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(10):
        return (await process.communicate())[0].decode()


async def test_the_demo_asks_and_every_answer_is_right(start):
    command = await start("demo", "--check", *free_ports())
    status = await command.end()
    assert "14 of 14 answers are right." in command.output
    assert "WRONG" not in command.output
    assert status == 0


async def test_a_new_service_is_answered_and_the_end_is_orderly(start):
    command = await start("up", *free_ports())
    await command.until("dig @127.0.0.1")
    api = command.place(r"Kubernetes API +(http\S+)")
    port = command.place(r"dnsmasq +127\.0\.0\.1 port (\d+)")
    health = command.place(r"exechealthz +(http\S+)/")
    config = command.place(r"configuration +(\S+),")
    service = {"metadata": {"name": "hello"}, "spec": {"clusterIP": "10.9.8.7", "ports": [{"port": 80}]}}
    async with aiohttp.ClientSession() as session:
        async with session.post(f"{api}/api/v1/namespaces/default/services", json=service) as response:
            assert response.status == 201
        async with session.get(f"{health}/healthcheck/dnsmasq") as response:
            assert response.status == 200
    async with asyncio.timeout(10):
        while await dig(port, "+short", "hello.default.svc.cluster.local") != "10.9.8.7\n":
            await asyncio.sleep(0.05)
    programs = [pid for pid, _ in children(command.process.pid)]
    assert len(programs) == 4
    command.process.send_signal(signal.SIGINT)
    assert await command.end() == 0
    assert not any(running(pid) for pid in programs)
    assert not Path(config).exists()
    assert "Traceback" not in command.output


async def test_when_one_program_dies_the_others_are_stopped_with_a_message(start):
    command = await start("up", *free_ports())
    await command.until("dig @127.0.0.1")
    programs = [pid for pid, _ in children(command.process.pid)]
    os.kill(command.child("-m healthz"), signal.SIGKILL)
    assert await command.end() == 1
    assert "healthz was killed by SIGKILL. The others are stopped." in command.output
    assert not any(running(pid) for pid in programs)


async def test_when_the_command_is_killed_its_children_die_too(start):
    command = await start("up", *free_ports())
    await command.until("dig @127.0.0.1")
    programs = [pid for pid, _ in children(command.process.pid)]
    programs += [pid for parent in programs for pid, _ in children(parent)]
    assert len(programs) == 5
    command.process.kill()
    await command.process.wait()
    await until(lambda: not any(running(pid) for pid in programs))


async def test_a_busy_port_is_named_with_the_flag_that_changes_it(start):
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        command = await start("up", *free_ports(), f"--healthz-port={port}")
        assert await command.end() == 1
    assert f"TCP port {port} is in use" in command.output
    assert "--healthz-port" in command.output


async def test_faults_before_the_start_are_one_line_each(start, tmp_path):
    manifest = tmp_path / "bad.yaml"
    manifest.write_text("apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {}\n", encoding="utf-8")
    for words, status, message in [
        (["up", "--dnsmasq=nosuch", *free_ports()], 1, "apt-get install dnsmasq-base"),
        (["up", f"--config-dir={tmp_path}/no", *free_ports()], 1, "no such directory; make it first"),
        (["up", "--domain=a..b"], 2, "--help"),
        (["api", "--port=0", str(manifest)], 1, "document 1: Service a: "),
        (["api", "--port=0", f"--tls-cert={manifest}", f"--tls-key={manifest}"], 1, "not a certificate"),
        (["api", "--tls-cert=/no/cert", f"--tls-key={manifest}"], 1, "--tls-cert=/no/cert: No such file"),
        (["api", f"--tls-cert={manifest}", "--tls-key=/no/key"], 1, "--tls-key=/no/key: No such file"),
        (["api", "--token-file=/no/tokens"], 1, "--token-file=/no/tokens: No such file"),
        (["api", "--port=0", "--bind=192.0.2.1"], 1, "can't listen on 192.0.2.1"),
    ]:
        command = await start(*words)
        assert await command.end() == status
        assert message in command.output
        assert "Traceback" not in command.output


async def test_the_api_alone_serves_manifests_until_it_is_told_to_stop(start):
    command = await start("api", "--port=0", "deploy/local", "--deny=watch:services")
    await command.until("serving 12 objects at")
    url = command.place(r"at (http\S+)")
    async with aiohttp.ClientSession() as session:
        async with session.get(f"{url}/api/v1/services") as response:
            assert len((await response.json())["items"]) == 7
        async with session.get(f"{url}/api/v1/services?watch=1") as response:
            assert response.status == 403
    command.process.terminate()
    assert await command.end() == 0


async def shell(command: str, home: Path) -> str:
    """Run a command in the checkout; return both its outputs."""
    process = await asyncio.create_subprocess_shell(
        command,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        cwd=Path(__file__).parents[3],
        env={**os.environ, "HOME": str(home), "KUBECONFIG": str(home / "none")},
    )
    async with asyncio.timeout(30):
        return (await process.communicate())[0].decode()


@pytest.mark.kubectl
async def test_kubectl_makes_the_service_that_the_demo_proposes(start, tmp_path):
    command = await start("demo", *free_ports())
    await command.until("Route a domain:")
    proposal = re.search(r"Make a Service: (.*?apply -f -)$", command.output, re.DOTALL | re.MULTILINE)
    assert proposal
    assert await shell(proposal[1], tmp_path) == "service/hello created\n"


@pytest.mark.kubectl
async def test_applying_the_manifests_of_the_demo_again_changes_nothing(start, tmp_path):
    command = await start("api", "--port=0", "deploy/local")
    await command.until("serving 12 objects at")
    server = command.place(r"at (http\S+)")
    lines = (await shell(f"kubectl --server={server} apply -f deploy/local", tmp_path)).splitlines()
    assert len(lines) == 12
    assert [line for line in lines if not line.endswith(" unchanged")] == []
