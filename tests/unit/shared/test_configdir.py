"""The configuration directory as kubelet and people write it, read and watched."""

import asyncio
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from kubedns.shared.config import LARGEST_VALUE
from kubedns.shared.configdir import ConfigDirError, DirectoryWatch, Snapshot, read_directory


def publish(directory: Path, version: int, **values: str) -> None:
    """Write keys as kubelet does: a new hidden directory, and the link `..data` swapped."""
    new = directory / f"..{version}"
    new.mkdir(parents=True)
    for name, value in values.items():
        (new / name).write_text(value)
        if not (directory / name).is_symlink():
            (directory / name).symlink_to(f"..data/{name}")
    (directory / "..data_tmp").symlink_to(new.name)
    (directory / "..data_tmp").rename(directory / "..data")


def test_a_missing_directory_is_empty(tmp_path):
    assert read_directory(tmp_path / "missing") == {}


def test_files_are_keys_and_hidden_files_and_directories_are_not(tmp_path):
    (tmp_path / "a").write_bytes(b"\xff1")
    (tmp_path / ".b").write_text("2")
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "d").write_text("3")
    assert read_directory(tmp_path) == {"a": b"\xff1"}


def test_a_kubelet_volume_is_read_through_its_link(tmp_path):
    publish(tmp_path, 1, a="1", b="2")
    publish(tmp_path, 2, a="3")
    assert read_directory(tmp_path) == {"a": b"3"}


def test_a_link_that_leads_nowhere_is_an_error_not_an_empty_directory(tmp_path):
    publish(tmp_path, 1, a="1")
    shutil.rmtree(tmp_path / "..1")
    with pytest.raises(ConfigDirError, match=r"\.\.data: it leads nowhere"):
        read_directory(tmp_path)


def test_a_file_in_the_directorys_place_is_an_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigDirError, match=r"cannot read .*file: Not a directory"):
        read_directory(tmp_path / "file")


def test_a_fifo_is_an_error_and_nobody_waits_for_its_writer(tmp_path):
    os.mkfifo(tmp_path / "stubDomains")
    with pytest.raises(ConfigDirError, match="stubDomains: it is not a regular file"):
        read_directory(tmp_path)


def test_a_socket_is_an_error(tmp_path):
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "s"))
        with pytest.raises(ConfigDirError, match="not a regular file"):
            read_directory(tmp_path)


def test_a_broken_link_is_an_error_that_names_it(tmp_path):
    (tmp_path / "key").symlink_to("nowhere")
    with pytest.raises(ConfigDirError, match=r"cannot read .*/key: No such file"):
        read_directory(tmp_path)


def test_a_large_file_is_read_only_as_far_as_needed(tmp_path):
    with (tmp_path / "large").open("wb") as file:
        file.truncate(1 << 40)
    assert len(read_directory(tmp_path)["large"]) == LARGEST_VALUE + 1


def test_many_large_files_are_an_error(tmp_path):
    for number in range(9):
        with (tmp_path / str(number)).open("wb") as file:
            file.truncate(LARGEST_VALUE)
    with pytest.raises(ConfigDirError, match="holds more than 8 MiB"):
        read_directory(tmp_path)


PERIOD = 30.0
"""Longer than any test: what is seen sooner was seen by an event."""


@asynccontextmanager
async def watching(directory: Path, period: float) -> AsyncIterator["asyncio.Queue[Snapshot]"]:
    seen: asyncio.Queue[Snapshot] = asyncio.Queue()

    async def watch() -> None:
        async for snapshot in DirectoryWatch(directory, period):
            seen.put_nowait(snapshot)

    task = asyncio.get_running_loop().create_task(watch())
    try:
        yield seen
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def until(seen: "asyncio.Queue[Snapshot]", wanted: Snapshot) -> None:
    async with asyncio.timeout(10):
        while await seen.get() != wanted:
            pass


@pytest.fixture
def directory(tmp_path):
    return tmp_path / "volumes" / "config"


async def test_swaps_of_a_kubelet_volume_are_seen_by_events(directory):
    publish(directory, 1, a="1")
    async with watching(directory, PERIOD) as seen:
        await until(seen, {"a": b"1"})
        for version in range(2, 6):
            publish(directory, version, a=str(version))
            await until(seen, {"a": str(version).encode()})


async def test_a_directory_made_later_is_seen(directory):
    async with watching(directory, 0.5) as seen:
        await until(seen, {})
        directory.mkdir(parents=True)
        (directory / "a").write_text("1")
        await until(seen, {"a": b"1"})


async def test_a_directory_emptied_deleted_and_made_again_is_seen(directory):
    publish(directory, 1, a="1")
    async with watching(directory, 0.5) as seen:
        await until(seen, {"a": b"1"})
        publish(directory, 2)
        (directory / "a").unlink()
        await until(seen, {})
        publish(directory, 3, a="3")
        await until(seen, {"a": b"3"})
        shutil.rmtree(directory)
        await until(seen, {})
        publish(directory, 4, a="4")
        await until(seen, {"a": b"4"})


async def test_a_directory_that_is_a_link_is_followed_when_it_is_swapped(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a").write_text(name)
    link = tmp_path / "config"
    link.symlink_to("one")
    async with watching(link, 0.5) as seen:
        await until(seen, {"a": b"one"})
        (tmp_path / "new").symlink_to("two")
        (tmp_path / "new").rename(link)
        await until(seen, {"a": b"two"})


async def test_what_cannot_be_read_comes_once_and_recovers(directory):
    publish(directory, 1, a="1")
    async with watching(directory, 0.05) as seen:
        await until(seen, {"a": b"1"})
        shutil.rmtree(directory / "..1")
        await until(seen, ConfigDirError(f"cannot read {directory}/..data: it leads nowhere"))
        publish(directory, 2, a="2")
        assert await seen.get() == {"a": b"2"}


WITHOUT_WATCHFILES = """
import asyncio, pathlib, sys
sys.modules["watchfiles"] = None
from kubedns.shared.configdir import DirectoryWatch

async def main(directory):
    async for snapshot in DirectoryWatch(directory, 0.02):
        if snapshot:
            return print(snapshot)
        (directory / "a").write_text("1")

asyncio.run(main(pathlib.Path(sys.argv[1])))
"""


def test_where_watchfiles_is_not_installed_the_period_is_enough(tmp_path):
    script = [sys.executable, "-c", WITHOUT_WATCHFILES, str(tmp_path)]
    assert (
        subprocess.run(script, capture_output=True, text=True, timeout=30, check=True).stdout
        == "{'a': b'1'}\n"
    )
