"""The images themselves: what they hold, and what they do without."""

import pytest

from deploy.images.build import ROLES, image_names
from kubedns import __version__

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

SHELLS = ("/usr/bin/dash", "/usr/bin/bash", "/usr/bin/sh")


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


def test_kubedns_needs_no_shell(engine) -> None:
    masks = [f"--volume=/dev/null:{shell}:ro" for shell in SHELLS]
    printed = engine.run("--rm", "--network=none", *masks, image_names()["kubedns"], "--help")
    assert "--initial-sync-timeout" in printed


@pytest.mark.parametrize("role", ROLES)
def test_an_image_holds_no_installer_of_packages(engine, role: str) -> None:
    listed = engine.run("--rm", "--network=none", "--entrypoint=ls", image_names()[role], "/opt/kube-dns/bin")
    assert "pip" not in listed.split()


def test_a_kubeconfig_works_in_the_image_without_the_asynchronous_client(engine) -> None:
    program = "import kubedns.cluster.kubeconfig"
    engine.run(
        "--rm",
        "--network=none",
        "--entrypoint=/opt/kube-dns/bin/python",
        image_names()["kubedns"],
        "-c",
        program,
    )
