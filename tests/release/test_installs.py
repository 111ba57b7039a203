"""Every way to install: wheel and source distribution, alone in a new virtualenv, from the package index."""

import hashlib
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from kubedns import __version__

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

ROOT = Path(__file__).parents[2]
UV = (sys.executable, "-m", "uv")
PROGRAMS = {"kube-dns": "kubedns", "dnsmasq-nanny": "nanny", "exechealthz": "healthz"}


def run(*words: str | Path, epoch: int = 1_700_000_000) -> str:
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(epoch)}
    done = subprocess.run(words, capture_output=True, text=True, timeout=240, check=False, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> dict[str, Path]:
    """Wheel and source distribution, by the end of their names."""
    place = tmp_path_factory.mktemp("dist")
    run(*UV, "build", "--quiet", "--out-dir", place, ROOT)
    return {end: next(place.glob(f"*{end}")) for end in (".whl", ".tar.gz")}


@pytest.mark.parametrize("end", [".whl", ".tar.gz"])
def test_a_plain_install_gives_three_programs_that_start(built, tmp_path, end: str) -> None:
    run(*UV, "venv", "--quiet", "--python", sys.executable, tmp_path / "venv")
    python = tmp_path / "venv/bin/python"
    run(*UV, "pip", "install", "--quiet", "--python", python, built[end])
    for program, package in PROGRAMS.items():
        assert f"{program} {__version__} " in run(python.parent / program, "--version")
        assert program in run(python, "-P", "-m", package, "--help")
    listed = run(*UV, "pip", "check", "--python", python)
    assert "incompatib" not in listed


def test_a_kubeconfig_is_read_after_a_plain_install(built, tmp_path) -> None:
    run(*UV, "venv", "--quiet", "--python", sys.executable, tmp_path / "venv")
    python = tmp_path / "venv/bin/python"
    run(*UV, "pip", "install", "--quiet", "--python", python, built[".whl"])
    run(python, "-P", "-c", "import kubedns.cluster.kubeconfig")


def test_what_is_for_developers_is_in_no_wheel(built) -> None:
    names = zipfile.ZipFile(built[".whl"]).namelist()
    assert "kubedns/app.py" in names
    assert not [name for name in names if name.startswith(("kubedns/local", "tests", "deploy"))]
    with tarfile.open(built[".tar.gz"]) as archive:
        assert any(name.endswith("/tests/ports.py") for name in archive.getnames())


@pytest.mark.parametrize("end", [".whl", ".tar.gz"])
def test_a_second_build_has_the_same_octets(built, tmp_path, end: str) -> None:
    run(*UV, "build", "--quiet", "--out-dir", tmp_path, ROOT)
    (again,) = tmp_path.glob(f"*{end}")
    assert hashlib.sha256(again.read_bytes()).digest() == hashlib.sha256(built[end].read_bytes()).digest()
