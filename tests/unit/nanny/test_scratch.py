"""Temporary directories, and those that killed runs left behind."""

import subprocess
import sys
from pathlib import Path

from nanny.scratch import PREFIX, ScratchDirectory, remove_left_behind

CHECKOUT = Path(__file__).parents[3]
DIE = """
import os, pathlib, sys
from nanny.scratch import ScratchDirectory
made = ScratchDirectory(pathlib.Path(sys.argv[1])).path
(made / "hosts").write_text("192.0.2.1 a")
print(made, flush=True)
os._exit(1)
"""


def leave_behind(parent: Path) -> Path:
    """Have a process make a directory and die without removing it."""
    command = [sys.executable, "-c", DIE, str(parent)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=30, cwd=CHECKOUT, check=False)
    return Path(ended.stdout.strip())


def test_a_directory_in_use_stays_and_one_whose_process_is_dead_goes(tmp_path):
    used, left = ScratchDirectory(tmp_path), leave_behind(tmp_path)
    assert left.parent == tmp_path
    assert remove_left_behind(tmp_path) == [left]
    assert list(tmp_path.iterdir()) == [used.path]
    assert remove_left_behind(tmp_path) == []
    used.close()
    assert list(tmp_path.iterdir()) == []


def test_what_is_not_such_a_directory_stays(tmp_path):
    (tmp_path / f"{PREFIX}unlocked").mkdir()
    (tmp_path / f"{PREFIX}file").write_text("")
    other = leave_behind(tmp_path).rename(tmp_path / "other")
    (tmp_path / f"{PREFIX}link").symlink_to(other)
    before = sorted(tmp_path.rglob("*"))
    assert remove_left_behind(tmp_path) == []
    assert sorted(tmp_path.rglob("*")) == before


def test_a_directory_that_is_missing_has_nothing_left_behind(tmp_path):
    assert remove_left_behind(tmp_path / "missing") == []
