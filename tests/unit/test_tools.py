"""What a test runs is asked for by the make target that runs the test."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.tools import tool

ROOT = Path(__file__).parents[2]
ELSEWHERE = {"pod": "e2e", "monitoring": "monitoring", "release": "installs"}
"""Folder -> the target that runs its tests; every other folder is run by `test`."""


def used_by(target: str) -> dict[str, str]:
    """Return `PROGRAM:PACKAGE` -> one file that says so, of the tests that a target runs."""
    found = {}
    for path in (ROOT / "tests").rglob("*.py"):
        owner = next((ELSEWHERE[name] for name in path.parent.parts if name in ELSEWHERE), "test")
        if owner == target and path != Path(__file__) and path.name != "tools.py":
            for pair in re.findall(r'\btool\(\s*"([^"]+)"', path.read_text()):
                found[pair] = str(path.relative_to(ROOT))
    return found


def asked_for(target: str) -> set[str]:
    """Return what `tools/need` is asked for by a target, without its prerequisites."""
    text = "".join((ROOT / name).read_text() for name in ("Makefile", "images.mk")).replace("\\\n", " ")
    recipe = re.search(rf"(?m)^{target}:.*\n((?:\t.*\n)+)", text)
    assert recipe is not None
    return {pair for line in re.findall(r"tools/need (.*)", recipe[1]) for pair in line.split()}


@pytest.mark.parametrize("target", ["test", "e2e", "monitoring"])
def test_a_target_asks_for_every_program_that_its_tests_run(target: str) -> None:
    missing = {pair: path for pair, path in used_by(target).items() if pair not in asked_for(target)}
    assert not missing
    assert used_by(target)


def test_a_program_that_is_not_there_is_named_with_its_package() -> None:
    with pytest.raises(AssertionError, match="needs no-such-program: apt-get install no-such-package"):
        tool("no-such-program:no-such-package")


def test_a_program_of_the_system_is_found_even_where_path_lacks_its_folder(monkeypatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert subprocess.run([tool("ip:iproute2"), "-V"], check=False, capture_output=True).returncode == 0
