"""The images themselves: what they hold, and what they do without."""

from pathlib import Path

import pytest

from deploy.images.build import ROLES, build, ensure_base, image_names
from kubedns import __version__

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

PYTHON = "/opt/kube-dns/bin/python"
FILES = """
import os, pathlib, stat
for folder, _, names in os.walk("/"):
    if folder.startswith(("/proc", "/sys", "/dev")):
        continue
    for path in (pathlib.Path(folder, name) for name in names):
        mode = path.lstat().st_mode
        if stat.S_ISREG(mode) and mode & 0o111:
            print("setuid" if mode & 0o6000 else "program", path)
"""


@pytest.mark.parametrize("role", ROLES)
def test_an_image_says_what_it_is_and_runs_unprivileged(engine, role: str) -> None:
    config = engine.inspect_image(image_names()[role])["Config"]
    assert config["User"] == "1001:1001"
    labels = config["Labels"]
    assert (
        labels["org.opencontainers.image.title"]
        == {"kubedns": "kube-dns", "nanny": "dnsmasq-nanny", "healthz": "exechealthz"}[role]
    )
    assert labels["org.opencontainers.image.version"] == __version__
    assert labels["org.opencontainers.image.licenses"] == "Apache-2.0"
    assert labels["org.opencontainers.image.base.name"]


@pytest.mark.parametrize("role", ROLES)
def test_an_image_prints_its_version(engine, role: str) -> None:
    printed = engine.run("--rm", "--network=none", "--read-only", image_names()[role], "--version")
    assert __version__ in printed


@pytest.mark.parametrize(
    ("role", "programs"),
    [
        ("kubedns", {"kube-dns"}),
        ("nanny", {"dnsmasq-nanny", "dnsmasq"}),
        ("healthz", {"exechealthz", "dash"}),  # `exechealthz --cmd` runs commands by a shell
    ],
)
def test_an_image_holds_no_program_but_its_own(engine, role: str, programs: set[str]) -> None:
    name = image_names()[role]
    listed = engine.run("--rm", "--network=none", "--user=0", f"--entrypoint={PYTHON}", name, "-c", FILES)
    kinds = [line.split(" ", 1) for line in listed.splitlines()]
    assert {kind for kind, _ in kinds} == {"program"}
    found = {Path(path).name for _, path in kinds if "/bin/" in path or "/sbin/" in path}
    version = engine.run("--rm", "--network=none", f"--entrypoint={PYTHON}", name, "-V").split()[1]
    assert found == programs | {f"python{version.rpartition('.')[0]}"}


@pytest.mark.parametrize(("role", "most"), [("kubedns", 35), ("nanny", 20.5), ("healthz", 16)])
def test_an_image_stays_small_and_shares_its_lowest_layer(engine, role: str, most: float) -> None:
    shared, *own = engine.layers(image_names()[role])
    assert sum(own) <= most
    assert shared < 50
    layers = [engine.inspect_image(name)["RootFS"]["Layers"] for name in image_names().values()]
    assert len({first for first, *_ in layers}) == 1


def test_the_commands_of_exechealthz_are_run_by_the_shell_of_its_image(engine) -> None:
    printed = engine.run(
        "--rm", "--network=none", "--entrypoint=/bin/sh", image_names()["healthz"], "-c", "echo $((6 * 7))"
    )
    assert printed == "42"


def test_another_build_has_the_same_layers(engine) -> None:
    """The ID tells also which builds before it the cache was filled by: `make release` uses none."""
    again = {"healthz": "localhost/kube-dns/again:test"}
    build(engine, ensure_base(engine), again, cached=False)
    try:
        first, second = (engine.inspect_image(name) for name in (image_names()["healthz"], *again.values()))
        assert first["RootFS"]["Layers"] == second["RootFS"]["Layers"]
    finally:
        engine.call("rmi", *again.values())
