"""The images, one node, and pods on it as tests ask for them."""

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from deploy.images.build import build, ensure_base, image_names
from deploy.images.engine import Engine, able_to_run, find_engine
from tests.e2e.pod.backstage import Backstage
from tests.e2e.pod.kubelet import RunningPod, wait_until
from tests.e2e.pod.manifest import Pod, read_pod
from tests.e2e.pod.network import Node, require_tools
from tests.e2e.pod.objects import sample_cluster
from tests.e2e.pod.volumes import SwappedVolume, scratch_directory


@pytest.fixture(scope="session")
def engine() -> Engine:
    """Podman with the manifest's three images built from this tree."""
    require_tools()
    podman = find_engine("podman")
    base = ensure_base(podman)
    podman = able_to_run(podman, base)
    build(podman, base, image_names())
    return podman


@pytest.fixture(scope="session")
def pod_manifest() -> Pod:
    return read_pod()


@pytest.fixture(scope="module")
def node(engine) -> Iterator[Node]:
    node = Node()
    yield node
    node.close()


@pytest.fixture(scope="module")
def backstage(node, tmp_path_factory) -> Iterator[Backstage]:
    backstage = Backstage(node.address, tmp_path_factory.mktemp("backstage"))
    backstage.start()
    node.redirect_resolver(backstage.upstream_port)
    backstage.apply(*sample_cluster())
    yield backstage
    backstage.close()


class Kubelet:
    """Makes pods of the manifest on the node, each with its own namespace and volumes."""

    def __init__(
        self, engine: Engine, manifest: Pod, node: Node, backstage: Backstage, directory: Path
    ) -> None:
        self._engine, self._manifest = engine, manifest
        self._node, self._backstage, self._directory = node, backstage, directory
        self._numbers = itertools.count(10)
        self._pods: list[RunningPod] = []
        self.config = SwappedVolume(directory / "config")
        self.token = SwappedVolume(directory / "token", self.token_files("first-token"))

    def token_files(self, token: str) -> dict[str, str]:
        """The projected volume of the service account."""
        return {"token": token, "ca.crt": self._backstage.authority, "namespace": "kube-system"}

    def run_pod(self) -> RunningPod:
        """Start a pod and return it at once, not yet ready."""
        number = next(self._numbers)
        namespace, address = self._node.add_namespace(number, self._manifest.sysctls)
        resolv_conf = self._directory / f"resolv-{number}.conf"
        resolv_conf.write_text(f"nameserver {self._backstage.address}\n")
        pod = RunningPod(
            self._engine,
            self._manifest,
            name=namespace.name,
            namespace=namespace,
            address=address,
            volumes={name: self._volume(name, number) for name in self._manifest.volumes},
            resolv_conf=resolv_conf,
            environment={
                "KUBERNETES_SERVICE_HOST": self._backstage.address,
                "KUBERNETES_SERVICE_PORT": str(self._backstage.api.port),
            },
        )
        self._pods.append(pod)
        pod.start()
        return pod

    def _volume(self, name: str, number: int) -> Path:
        volume = self._manifest.volumes[name]
        if "configMap" in volume:
            return self.config.directory
        if "projected" in volume:
            return self.token.directory
        assert "emptyDir" in volume, f"a volume that no test kubelet can make: {volume}"
        return scratch_directory(self._directory / f"{name}-{number}")

    def remove(self, pod: RunningPod) -> None:
        """Remove a pod and its namespace."""
        pod.remove()
        self._node.remove_namespace(pod.namespace)
        self._pods.remove(pod)

    def close(self) -> None:
        """Remove every pod."""
        for pod in list(self._pods):
            self.remove(pod)


@pytest.fixture(scope="module")
def kubelet(engine, pod_manifest, node, backstage, tmp_path_factory) -> Iterator[Kubelet]:
    directory = tmp_path_factory.mktemp("kubelet")
    directory.chmod(0o755)
    kubelet = Kubelet(engine, pod_manifest, node, backstage, directory)
    yield kubelet
    kubelet.close()


@pytest.fixture(scope="module")
def shared_pod(kubelet: Kubelet) -> RunningPod:
    """One pod for all tests of a module."""
    pod = kubelet.run_pod()
    pod.wait_ready()
    return pod


@pytest.fixture(scope="module")
def unconfigured(shared_pod: RunningPod) -> list[str]:
    """What dnsmasq's container runs while the configuration is empty."""
    return shared_pod.command_lines("dnsmasq")


@pytest.fixture
def pod(shared_pod: RunningPod, unconfigured: list[str], kubelet: Kubelet) -> RunningPod:
    """The module's pod, ready and without configuration, whatever the test before did to it."""
    if not kubelet.config.empty:
        kubelet.config.write({})
    ended = [name for name in shared_pod.pod.containers if not shared_pod.running(name)]
    if ended:
        shared_pod.start(*ended)
    wait_until(lambda: shared_pod.command_lines("dnsmasq") == unconfigured, 20, shared_pod.describe)
    shared_pod.wait_ready()
    return shared_pod


@pytest.fixture
def fresh_pod(kubelet: Kubelet) -> Iterator[RunningPod]:
    """A pod of a test's own, for tests that end it."""
    pod = kubelet.run_pod()
    pod.wait_ready()
    yield pod
    kubelet.remove(pod)


Report = Callable[[str], None]


@pytest.fixture
def report(capsys) -> Report:
    """Print a measured figure past the capture."""

    def say(text: str) -> None:
        with capsys.disabled():
            print(f"\n    {text}")

    return say
