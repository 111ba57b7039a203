"""The manifests as kustomize renders them, for the tests of this folder."""

import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
OVERLAYS = ("kubedns-first", "high-availability", "dual-stack", "federation", "network-policy", "monitoring")
RENDERED = ("", *(f"overlays/{name}" for name in OVERLAYS))
"""Every kustomization that people apply, as a path below deploy/."""

Manifest = dict[str, Any]


DOORS = {directory: 10053 if directory.endswith("kubedns-first") else 53 for directory in RENDERED}
"""Kustomization -> the pod's port that the Service leads to: kubedns's, or dnsmasq's."""


@cache
def render_text(directory: str) -> str:
    """Return what `kubectl kustomize deploy/DIRECTORY` prints; fails with kubectl's own words."""
    done = subprocess.run(
        ["kubectl", "kustomize", str(DEPLOY / directory)],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def render(directory: str) -> list[Manifest]:
    """Return the rendered objects, fresh copies each time."""
    return [document for document in yaml.safe_load_all(render_text(directory)) if document]


def one(objects: list[Manifest], kind: str, name: str = "kube-dns") -> Manifest:
    """Return the only object of this kind and name."""
    found: Manifest
    (found,) = [it for it in objects if it["kind"] == kind and it["metadata"]["name"] == name]
    return found


def pod_spec(objects: list[Manifest]) -> Manifest:
    """Return the pod spec of the Deployment kube-dns."""
    spec: Manifest = one(objects, "Deployment")["spec"]["template"]["spec"]
    return spec


def container(objects: list[Manifest], name: str) -> Manifest:
    """Return one container of the Deployment kube-dns."""
    found: Manifest
    (found,) = [it for it in pod_spec(objects)["containers"] if it["name"] == name]
    return found
