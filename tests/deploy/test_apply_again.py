"""Applying the manifests again, by kubectl on a live API: what an administrator wrote survives."""

import asyncio
import json
import shutil
import subprocess
import textwrap
from pathlib import Path

import pytest
import yaml

from kubedns.local.api.server import LocalApi
from tests.deploy.manifests import DEPLOY, Manifest, one, render

pytestmark = pytest.mark.integration


async def kubectl(api: LocalApi, home: Path, *words: str) -> str:
    """Run kubectl against the API and return what it prints."""
    done = await asyncio.to_thread(
        subprocess.run,
        ["kubectl", f"--server={api.url}", f"--cache-dir={home}", "--namespace=kube-system", *words],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
        env={"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(home)},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def file_of(tmp_path: Path, *objects: Manifest) -> Path:
    path = tmp_path / "manifest.yaml"
    path.write_text(yaml.safe_dump_all(objects))
    return path


async def test_configuration_survives_a_second_apply(tmp_path) -> None:
    manifest = file_of(tmp_path, one(render(""), "ConfigMap"))
    stubs = json.dumps({"corp.example": ["192.0.2.7"]})
    async with LocalApi() as api:
        await kubectl(api, tmp_path, "apply", "-f", str(manifest))
        await kubectl(
            api,
            tmp_path,
            "patch",
            "configmap",
            "kube-dns",
            "-p",
            json.dumps({"data": {"stubDomains": stubs}}),
        )
        await kubectl(api, tmp_path, "apply", "-f", str(manifest))
        kept = api.get("ConfigMap", "kube-dns", "kube-system")
    assert kept is not None
    assert kept["data"] == {"stubDomains": stubs}


async def test_the_service_keeps_its_address_and_ports_over_a_second_apply(tmp_path) -> None:
    service = one(render(""), "Service")
    manifest = file_of(tmp_path, service)
    async with LocalApi() as api:
        await kubectl(api, tmp_path, "apply", "-f", str(manifest))
        before = api.get("Service", "kube-dns", "kube-system")
        await kubectl(api, tmp_path, "apply", "-f", str(manifest))
        after = api.get("Service", "kube-dns", "kube-system")
    assert before is not None
    assert after is not None
    assert after["spec"] == before["spec"]
    assert [port["port"] for port in after["spec"]["ports"]] == [53, 53, 10055]


async def test_the_service_is_switched_back_as_the_readme_says_and_stays_so_for_the_base(tmp_path) -> None:
    """A Service's ports merge by their number, which both of these share: hence the JSON patch."""
    readme = (DEPLOY / "README.md").read_text()
    example = readme.partition("patch service kube-dns --type=json -p '[\n")[2].partition("]'")[0]
    first, base = (one(render(name), "Service") for name in ("overlays/kubedns-first", ""))
    async with LocalApi() as api:
        await kubectl(api, tmp_path, "apply", "-f", str(file_of(tmp_path, first)))
        patch = ("patch", "service", "kube-dns", "--type=json", "-p", f"[{example}]")
        await kubectl(api, tmp_path, *patch)
        patched = api.get("Service", "kube-dns", "kube-system")
        await kubectl(api, tmp_path, "apply", "-f", str(file_of(tmp_path, base)))
        applied = api.get("Service", "kube-dns", "kube-system")
    assert patched is not None
    assert applied is not None
    assert [port["targetPort"] for port in patched["spec"]["ports"]] == [53, 53, 10055]
    assert patched["spec"] == applied["spec"]


def test_the_example_for_gke_renames_what_the_managed_add_on_owns(tmp_path) -> None:
    shutil.copytree(DEPLOY, tmp_path / "deploy", ignore=shutil.ignore_patterns("__pycache__"))
    example = (DEPLOY / "README.md").read_text().partition("<<'END'\n")[2].partition("    END\n")[0]
    (tmp_path / "own").mkdir()
    (tmp_path / "own/kustomization.yaml").write_text(textwrap.dedent(example))
    done = subprocess.run(
        ["kubectl", "kustomize", str(tmp_path / "own")],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    objects = [it for it in yaml.safe_load_all(done.stdout) if it]
    assert not [it for it in objects if it["kind"] == "Service"], "the Service stays the platform's"
    account = one(objects, "ServiceAccount", "custom-kube-dns")["metadata"]["name"]
    binding = one(objects, "ClusterRoleBinding", "system:kube-dns-addon")
    deployment = one(objects, "Deployment", "custom-kube-dns")
    assert [it["name"] for it in binding["subjects"]] == [account]
    assert deployment["spec"]["template"]["spec"]["serviceAccountName"] == account


def test_the_example_that_tunes_dnsmasq_renders(tmp_path) -> None:
    readme = (DEPLOY / "README.md").read_text()
    example = readme.partition("## Tune")[2].partition("    patches:\n")[2].partition("\n\n")[0]
    kustomization = tmp_path / "kustomization.yaml"
    kustomization.write_text(
        "resources: [kube-dns.yaml]\npatches:\n" + "\n".join(line[4:] for line in example.splitlines())
    )
    (tmp_path / "kube-dns.yaml").write_text((DEPLOY / "kube-dns.yaml").read_text())
    done = subprocess.run(
        ["kubectl", "kustomize", str(tmp_path)], capture_output=True, text=True, timeout=30, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "--cache-size=5000" in done.stdout
    assert "--cache-size=1000" not in done.stdout
