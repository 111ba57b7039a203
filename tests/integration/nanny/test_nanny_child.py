"""Children, prepared and plain, and their reaping, with small real programs."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from nanny import launch
from nanny.child import Child, ExitStatus, PreparedChild
from nanny.reaper import Reaper
from nanny.trial import refusal
from tests.integration.nanny.conftest import DNSMASQ

pytestmark = pytest.mark.integration


@pytest.fixture
async def reaper() -> AsyncIterator[Reaper]:
    """Collect the children of this test, and only them, as they end."""
    reaper = Reaper(adopt=False)
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGCHLD, reaper.collect)
    yield reaper
    loop.remove_signal_handler(signal.SIGCHLD)


async def ended(child: Child) -> str:
    async with asyncio.timeout(15):
        return str(await child.ended)


async def test_a_child_is_heard_to_the_end_and_its_status_reported(reaper):
    lines: list[str] = []
    child = Child(["/bin/sh", "-c", "echo one; echo two >&2; exit 3"], reaper, lines.append)
    assert await ended(child) == "exited with status 3"
    assert lines == ["one", "two"]


async def test_what_a_child_leaves_behind_in_its_group_is_killed(reaper):
    lines: list[str] = []
    child = Child(["/bin/sh", "-c", "sleep 1000 & echo $!; kill -9 $$"], reaper, lines.append)
    assert await ended(child) == "was killed by SIGKILL"
    async with asyncio.timeout(15):
        while Path(f"/proc/{lines[0]}/cmdline").exists() and Path(f"/proc/{lines[0]}/cmdline").read_bytes():
            await asyncio.sleep(0.01)


async def test_many_children_that_end_at_once_are_all_reported(reaper):
    children = [Child(["/bin/sh", "-c", f"exit {code}"], reaper, print) for code in range(20)]
    assert [await ended(child) for child in children] == [f"exited with status {code}" for code in range(20)]


async def test_a_command_that_does_not_exist_is_an_error_and_no_child(reaper):
    with pytest.raises(FileNotFoundError):
        Child(["/no/such/command"], reaper, print)


async def test_a_prepared_child_executes_only_when_released(reaper, tmp_path):
    mark = tmp_path / "mark"
    child = PreparedChild(["/usr/bin/touch", str(mark)], reaper, print)
    async with asyncio.timeout(15):
        await child.ready
    assert not mark.exists()
    child.release()
    assert await ended(child) == "exited with status 0"
    assert mark.exists()


async def test_a_prepared_child_may_be_released_before_it_is_ready(reaper, tmp_path):
    children = [
        PreparedChild(["/usr/bin/touch", str(tmp_path / str(number))], reaper, print) for number in range(5)
    ]
    for child in children:
        child.release()
    for child in children:
        await ended(child)
    assert len(list(tmp_path.iterdir())) == 5


@pytest.mark.parametrize("ready", [True, False])
async def test_a_discarded_child_ends_without_executing(reaper, tmp_path, ready):
    child = PreparedChild(["/usr/bin/touch", str(tmp_path / "mark")], reaper, print)
    if ready:
        async with asyncio.timeout(15):
            await child.ready
    child.discard()
    assert await ended(child) == "exited with status 0"
    assert not list(tmp_path.iterdir())


async def test_releasing_a_child_that_is_gone_reports_its_end(reaper):
    child = PreparedChild(["/bin/true"], reaper, print)
    child.signal_group(signal.SIGKILL)
    assert await ended(child) == "was killed by SIGKILL"
    child.release()


async def test_the_command_gets_default_signals_no_input_and_the_death_signal(reaper):
    lines: list[str] = []
    show = (
        "import ctypes, os, signal\n"
        "wanted = ctypes.c_int()\n"
        "ctypes.CDLL(None).prctl(2, ctypes.byref(wanted))\n"
        "print(wanted.value, os.readlink('/proc/self/fd/0'), os.getpgrp() == os.getpid())"
    )
    child = PreparedChild([sys.executable, "-c", show], reaper, lines.append)
    child.release()
    await ended(child)
    assert lines == [f"{int(signal.SIGTERM)} /dev/null True"]
    child = PreparedChild(["/bin/sh", "-c", "grep SigIgn /proc/self/status"], reaper, lines.append)
    child.release()
    await ended(child)
    # Signals 32 and 33 are the C library's own, which no program can set.
    assert int(lines[1].split()[1], 16) & ~0x1_8000_0000 == 0


async def test_a_child_whose_parent_is_gone_already_executes_nothing(reaper, tmp_path):
    words = [
        sys.executable,
        str(Path(launch.__file__)),
        str(os.getpid() + 1),
        "/usr/bin/touch",
        str(tmp_path / "x"),
    ]
    assert await ended(Child(words, reaper, print)) == "exited with status 0"
    assert not list(tmp_path.iterdir())


async def test_dnsmasq_says_why_it_refuses_arguments(reaper):
    assert await refusal(DNSMASQ, ("--conf-file=/dev/null",), reaper) is None
    assert "bad port" in str(await refusal(DNSMASQ, ("--server=192.0.2.1#0x",), reaper))


def test_an_exit_status_says_what_happened():
    assert str(ExitStatus(0)) == "exited with status 0"
    assert str(ExitStatus(-11)) == "was killed by SIGSEGV"
    assert str(ExitStatus(-40)) == "was killed by signal 40"
