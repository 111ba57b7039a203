"""settings.env is the one place: a change there reaches every object that has the value."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from deploy.images.build import image_names
from kubedns import __version__
from tests.deploy.manifests import DEPLOY, Manifest, container, one, pod_spec, render


def render_with(tmp_path: Path, directory: str, **settings: str) -> list[Manifest]:
    """Render a copy of deploy/ after changing values of settings.env."""
    copy = tmp_path / "deploy"
    shutil.copytree(DEPLOY, copy, ignore=shutil.ignore_patterns("__pycache__"))
    env = copy / "settings/settings.env"
    text = env.read_text()
    for name, value in settings.items():
        text, count = re.subn(rf"(?m)^{name}=.*$", f"{name}={value}", text)
        assert count == 1, f"settings.env has no line {name}="
    env.write_text(text)
    done = subprocess.run(
        ["kubectl", "kustomize", str(copy / directory)],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [it for it in yaml.safe_load_all(done.stdout) if it]


def test_the_domain_reaches_all_three_containers(tmp_path) -> None:
    objects = render_with(tmp_path, "", CLUSTER_DOMAIN="k8s.corp.example")
    for it in pod_spec(objects)["containers"]:
        assert {"name": "CLUSTER_DOMAIN", "value": "k8s.corp.example"} in it["env"]
    assert "cluster.local" not in yaml.safe_dump(objects)


def test_the_cluster_ip_reaches_the_service(tmp_path) -> None:
    objects = render_with(tmp_path, "", CLUSTER_IP="172.20.0.10")
    assert one(objects, "Service")["spec"]["clusterIP"] == "172.20.0.10"
    assert "10.96.0.10" not in yaml.safe_dump(objects)


def test_both_cluster_ips_reach_the_dual_stack_service(tmp_path) -> None:
    objects = render_with(
        tmp_path, "overlays/dual-stack", CLUSTER_IP="172.20.0.10", SECOND_CLUSTER_IP="fd01::a"
    )
    service = one(objects, "Service")["spec"]
    assert service["clusterIP"] == "172.20.0.10"
    assert service["clusterIPs"] == ["172.20.0.10", "fd01::a"]
    assert service["ipFamilyPolicy"] == "RequireDualStack"
    assert "--dns-bind-address=::" in container(objects, "kubedns")["args"]


@pytest.mark.parametrize(
    ("setting", "name"),
    [("KUBEDNS_IMAGE", "kubedns"), ("NANNY_IMAGE", "dnsmasq"), ("HEALTHZ_IMAGE", "healthz")],
)
def test_an_image_reaches_its_container_and_no_other(tmp_path, setting: str, name: str) -> None:
    objects = render_with(tmp_path, "", **{setting: "registry.example/dns/it:9"})
    assert [
        it["name"] for it in pod_spec(objects)["containers"] if it["image"] == "registry.example/dns/it:9"
    ] == [name]


def test_the_shipped_images_are_those_of_this_version_as_make_images_names_them() -> None:
    assert {it["image"] for it in pod_spec(render(""))["containers"]} == set(image_names().values())
    assert all(name.endswith(f":{__version__}") for name in image_names().values())


def test_the_settings_themselves_are_not_applied_to_the_cluster() -> None:
    assert not [it for it in render("") if it["metadata"]["name"] == "kube-dns-settings"]
