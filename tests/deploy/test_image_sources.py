"""Dockerfiles and pins: every image installs its role's dependencies by hash, and nothing else."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from deploy.images.build import ROLES
from kubedns import __version__
from tests.deploy.manifests import ROOT

PINS = ("kubedns", "nanny", "healthz", "build", "sbom")


def pins(name: str) -> dict[str, str]:
    """Return distribution -> version of a requirements file."""
    text = (ROOT / "requirements" / f"{name}.txt").read_text()
    return dict(re.findall(r"(?m)^([a-z0-9.-]+)==(\S+)", text))


def wanted() -> dict[str, Requirement]:
    """Return what pyproject.toml says that all three programs need, by its normal name."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    found = [Requirement(text) for text in project["dependencies"]]
    return {canonicalize_name(requirement.name): requirement for requirement in found}


def named(role: str) -> set[str]:
    """Return the distributions that an image's `.in` file names."""
    lines = (ROOT / "requirements" / f"{role}.in").read_text().split()
    return {canonicalize_name(line) for line in lines}


@pytest.mark.parametrize("role", ROLES)
def test_pins_fit_what_the_project_asks_for(role: str) -> None:
    pinned = pins(role)
    for name in named(role):
        assert name in pinned, "run `make requirements`"
        assert wanted()[name].specifier.contains(pinned[name]), "run `make requirements`"


def test_the_images_and_a_plain_install_need_the_same() -> None:
    assert set().union(*(named(role) for role in ROLES)) == wanted().keys()


def test_a_role_gets_no_dependency_of_another() -> None:
    assert "kubernetes" in pins("kubedns")
    assert not {"kubernetes", "orjson"} & (pins("nanny").keys() | pins("healthz").keys())


def test_releases_that_send_no_credential_are_not_pinned() -> None:
    assert pins("kubedns")["kubernetes"] not in ("36.0.0", "36.0.1")


@pytest.mark.parametrize("name", PINS)
def test_every_pin_has_hashes(name: str) -> None:
    text = (ROOT / "requirements" / f"{name}.txt").read_text().replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    assert lines
    assert all("--hash=sha256:" in line for line in lines)


@pytest.fixture(params=ROLES)
def dockerfile(request) -> str:
    return Path(ROOT, f"Dockerfile.{request.param}").read_text()


def test_an_image_is_gathered_from_one_settable_base(dockerfile) -> None:
    assert re.findall(r"(?m)^FROM (.+)$", dockerfile) == ["${BASE} AS build", "scratch"]
    assert re.search(r"(?m)^ARG BASE=\S+-slim\S*$", dockerfile)


def test_an_image_installs_by_hash_and_from_wheels_only(dockerfile) -> None:
    installs = re.findall(r"-r requirements/\S+", dockerfile)
    assert (
        dockerfile.count("--require-hashes") == dockerfile.count("--only-binary=:all:") == len(installs) == 2
    )


def test_an_image_runs_as_the_manifests_user_without_a_shell(dockerfile) -> None:
    assert "USER 1001:1001" in dockerfile
    assert re.search(r'(?m)^ENTRYPOINT \["/opt/kube-dns/bin/[a-z-]+"\]$', dockerfile)
    assert not re.search(r"(?m)^(CMD|SHELL|ADD)\b", dockerfile)


def test_the_build_context_holds_only_what_is_copied() -> None:
    allowed = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    assert allowed == {
        "LICENSE",
        "README.md",
        "pyproject.toml",
        "requirements/*.txt",
        "kubedns",
        "nanny",
        "healthz",
        "deploy/images/slim.py",
        "deploy/images/runtime.py",
    }


def test_the_change_log_begins_with_this_version() -> None:
    (latest, *_) = re.findall(r"(?m)^## (\S+)", (ROOT / "CHANGELOG.md").read_text())
    assert latest == __version__
