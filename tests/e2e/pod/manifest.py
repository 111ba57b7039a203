"""The pod of the shipped manifest, as values a container engine can be told.

In: the base, or with WIRING=kubedns-first in the environment the overlay of that name, as kubectl renders it.
Out: a Pod; every argument, user, mount, limit and probe is the manifest's.
"""

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

DEPLOY = Path(__file__).resolve().parents[3] / "deploy"
CLASSIC, KUBEDNS_FIRST = "classic", "kubedns-first"
WIRING = os.environ.get("WIRING") or CLASSIC
assert WIRING in {CLASSIC, KUBEDNS_FIRST}, f"WIRING={WIRING}"
_UNITS = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30}


@dataclass(frozen=True, slots=True)
class Probe:
    """What kubelet would ask: a path by HTTP, or with None a TCP connection."""

    port: int
    path: str | None
    timeout: float


@dataclass(frozen=True, slots=True)
class Mount:
    """One volumeMount."""

    volume: str
    path: str
    read_only: bool


@dataclass(frozen=True, slots=True)
class Container:
    """One container; `memory_limit` in bytes."""

    name: str
    image: str
    arguments: tuple[str, ...]
    environment: dict[str, str]
    mounts: tuple[Mount, ...]
    memory_limit: int
    dropped_capabilities: tuple[str, ...]
    read_only_root: bool
    privilege_escalation: bool
    liveness: Probe
    readiness: Probe | None


@dataclass(frozen=True, slots=True)
class Pod:
    """The pod template; `volumes` by name as the API has them, `grace_period` in seconds.

    `door` is the port that the Service leads to.
    """

    containers: dict[str, Container]
    volumes: dict[str, dict[str, Any]]
    sysctls: dict[str, str]
    user: int
    group: int
    grace_period: float
    cluster_ip: str
    door: int


def read_pod() -> Pod:
    """Return the pod of the Deployment, and the Service's address and target, of this wiring."""
    if WIRING == CLASSIC:
        text = (DEPLOY / "kube-dns.yaml").read_text()
    else:
        command = ["kubectl", "kustomize", str(DEPLOY / "overlays" / WIRING)]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    objects = {it["kind"]: it for it in yaml.safe_load_all(text)}
    spec = objects["Deployment"]["spec"]["template"]["spec"]
    context = spec["securityContext"]
    return Pod(
        containers={it["name"]: _container(it) for it in spec["containers"]},
        volumes={it["name"]: it for it in spec["volumes"]},
        sysctls={it["name"]: it["value"] for it in context["sysctls"]},
        user=context["runAsUser"],
        group=context["runAsGroup"],
        grace_period=spec["terminationGracePeriodSeconds"],
        cluster_ip=objects["Service"]["spec"]["clusterIP"],
        door=objects["Service"]["spec"]["ports"][0]["targetPort"],
    )


def _container(manifest: dict[str, Any]) -> Container:
    environment = {it["name"]: it["value"] for it in manifest["env"]}
    context = manifest["securityContext"]
    return Container(
        name=manifest["name"],
        image=manifest["image"],
        arguments=tuple(_expanded(argument, environment) for argument in manifest["args"]),
        environment=environment,
        mounts=tuple(
            Mount(it["name"], it["mountPath"], it.get("readOnly", False))
            for it in manifest.get("volumeMounts", [])
        ),
        memory_limit=_bytes(manifest["resources"]["limits"]["memory"]),
        dropped_capabilities=tuple(context["capabilities"]["drop"]),
        read_only_root=context["readOnlyRootFilesystem"],
        privilege_escalation=context["allowPrivilegeEscalation"],
        liveness=_probe(manifest["livenessProbe"]),
        readiness=_probe(manifest["readinessProbe"]) if "readinessProbe" in manifest else None,
    )


def _expanded(argument: str, environment: dict[str, str]) -> str:
    return re.sub(r"\$\((\w+)\)", lambda found: environment[found[1]], argument)


def _probe(manifest: dict[str, Any]) -> Probe:
    http = manifest.get("httpGet")
    asked = http or manifest["tcpSocket"]
    return Probe(asked["port"], http["path"] if http else None, manifest["timeoutSeconds"])


def _bytes(quantity: str) -> int:
    return int(quantity[:-2]) * _UNITS[quantity[-2:]]
