"""Every rendered object against the API schemas of the supported Kubernetes versions."""

import shutil
import subprocess

import kubernetes_validate  # type: ignore[import-untyped]
import pytest
import yaml

from tests.deploy.manifests import DEPLOY, RENDERED, container, render, render_text

VERSIONS = ("1.31", "1.32", "1.33", "1.34", "1.35", "1.36")
CUSTOM_RESOURCES = {"PodMonitor", "PrometheusRule"}
"""Kinds of the Prometheus operator: no part of the Kubernetes schemas."""


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("directory", RENDERED)
def test_rendered_objects_fit_the_strict_schema(directory: str, version: str) -> None:
    objects = [it for it in render(directory) if it["kind"] not in CUSTOM_RESOURCES]
    assert len(objects) >= 7
    for manifest in objects:
        kubernetes_validate.validate(manifest, version, strict=True)


def test_a_misspelt_field_is_refused_by_the_strict_schema() -> None:
    manifest = render("")[0] | {"automountServiceAccountTokens": False}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(manifest, VERSIONS[-1], strict=True)


def test_committed_single_file_equals_the_render() -> None:
    committed = (DEPLOY / "kube-dns.yaml").read_text()
    assert committed == render_text(""), "run `make manifests` and commit deploy/kube-dns.yaml"


def test_all_components_together_render_to_the_strict_schema(tmp_path) -> None:
    copy = tmp_path / "deploy"
    shutil.copytree(DEPLOY, copy, ignore=shutil.ignore_patterns("__pycache__"))
    components = [f"components/{path.name}" for path in sorted((DEPLOY / "components").iterdir())]
    text = (copy / "kustomization.yaml").read_text()
    (copy / "kustomization.yaml").write_text(
        text.replace("  - settings\n", "".join(f"  - {it}\n" for it in (*components, "settings")))
    )
    done = subprocess.run(
        ["kubectl", "kustomize", str(copy)], capture_output=True, text=True, timeout=30, check=False
    )
    assert done.returncode == 0, done.stderr
    objects = [it for it in yaml.safe_load_all(done.stdout) if it["kind"] not in CUSTOM_RESOURCES]
    for manifest in objects:
        kubernetes_validate.validate(manifest, VERSIONS[-1], strict=True)
    arguments = container(objects, "kubedns")["args"]
    assert {"--dns-bind-address=::", "--cache-server=127.0.0.1:53"} <= set(arguments)


@pytest.mark.parametrize("directory", RENDERED)
def test_no_two_objects_of_a_render_are_the_same(directory: str) -> None:
    keys = [(it["kind"], it["metadata"].get("namespace"), it["metadata"]["name"]) for it in render(directory)]
    assert len(keys) == len(set(keys))
