"""One pod in real containers: started, probed, killed and removed as kubelet would.

In: the manifest's Pod, a network namespace, the volumes' directories.
Out: probe results, exit statuses, logs.  Nothing is restarted unless asked for.
"""

import contextlib
import http.client
import json
import signal
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deploy.images.engine import Engine
from tests.e2e.pod.manifest import Container, Pod, Probe

POLL = 0.1


@dataclass(frozen=True, slots=True)
class Exit:
    """How a container ended."""

    status: int
    out_of_memory: bool


@dataclass(frozen=True, slots=True)
class Answer:
    """What a probe got; status 0 when nobody answered."""

    status: int
    text: str

    @property
    def healthy(self) -> bool:
        """Kubelet's rule: 200 to 399."""
        return 200 <= self.status < 400


def wait_until(condition: Callable[[], bool], deadline: float, what: Callable[[], str]) -> float:
    """Wait for a condition and return the seconds it took; fail with `what()` after `deadline` seconds."""
    started = time.monotonic()
    while not condition():
        if time.monotonic() - started > deadline:
            raise AssertionError(f"not within {deadline:g} s: {what()}")
        time.sleep(POLL)
    return time.monotonic() - started


class RunningPod:
    """The containers of one pod; `environment` is what kubelet adds to every container's.

    `door` is where clients ask, `ADDRESS#PORT`.
    """

    def __init__(
        self,
        engine: Engine,
        pod: Pod,
        *,
        name: str,
        namespace: Path,
        address: str,
        volumes: dict[str, Path],
        resolv_conf: Path,
        environment: dict[str, str],
    ) -> None:
        self.pod, self.address, self.namespace = pod, address, namespace
        self._engine, self._name = engine, name
        self.door = f"{address}#{pod.door}"
        self._volumes, self._resolv_conf, self._environment = volumes, resolv_conf, environment

    def start(self, *names: str) -> None:
        """Start the named containers, or all of them, anew."""
        for container in self.pod.containers.values():
            if not names or container.name in names:
                self._remove(container.name)
                self._engine.run(*self._flags(container), container.image, *container.arguments)

    def _flags(self, container: Container) -> list[str]:
        flags = [
            "--detach",
            f"--name={self._name}-{container.name}",
            f"--network=ns:{self.namespace}",
            "--no-hosts",
            f"--volume={self._resolv_conf}:/etc/resolv.conf:ro",
            f"--user={self.pod.user}:{self.pod.group}",
            f"--memory={container.memory_limit}",
            f"--memory-swap={container.memory_limit}",
            *(f"--cap-drop={name}" for name in container.dropped_capabilities),
            *(f"--env={name}={value}" for name, value in (self._environment | container.environment).items()),
        ]
        if container.read_only_root:
            flags += ["--read-only", "--read-only-tmpfs=false"]
        if not container.privilege_escalation:
            flags.append("--security-opt=no-new-privileges")
        for mount in container.mounts:
            mode = "ro" if mount.read_only else "rw"
            flags.append(f"--volume={self._volumes[mount.volume]}:{mount.path}:{mode}")
        return flags

    def probe(self, probe: Probe) -> Answer:
        """Ask what kubelet would ask."""
        try:
            if probe.path is None:
                socket.create_connection((self.address, probe.port), probe.timeout).close()
                return Answer(200, "connected")
            return self.get(probe.port, probe.path, probe.timeout)
        except (OSError, http.client.HTTPException) as error:
            return Answer(0, str(error))

    def get(self, port: int, path: str, timeout: float = 5) -> Answer:
        """GET a path of the pod; raises OSError."""
        connection = http.client.HTTPConnection(self.address, port, timeout=timeout)
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            return Answer(response.status, response.read().decode())
        finally:
            connection.close()

    def live(self, name: str) -> bool:
        """Whether a container's liveness probe passes."""
        return self.probe(self.pod.containers[name].liveness).healthy

    def ready(self) -> bool:
        """Whether every readiness probe passes."""
        return all(self.probe(it.readiness).healthy for it in self.pod.containers.values() if it.readiness)

    def wait_ready(self, deadline: float = 40) -> float:
        """Wait until every readiness and liveness probe passes; return the seconds."""

        def healthy() -> bool:
            return self.ready() and all(self.live(name) for name in self.pod.containers)

        return wait_until(healthy, deadline, self.describe)

    def kill(self, name: str, signal_number: signal.Signals) -> None:
        """Send a signal to the container's first process."""
        self._engine.call("kill", f"--signal={signal_number.value}", f"{self._name}-{name}")

    def wait_exit(self, name: str, deadline: float) -> Exit:
        """Wait for a container to end."""
        wait_until(
            lambda: not self._state(name)["Running"], deadline, lambda: f"{name} ended\n{self.logs(name)}"
        )
        state = self._state(name)
        return Exit(state["ExitCode"], state["OOMKilled"])

    def running(self, name: str) -> bool:
        """Whether a container runs."""
        return bool(self._state(name)["Running"])

    def _state(self, name: str) -> dict[str, Any]:
        state: dict[str, Any] = json.loads(
            self._engine.call("inspect", "--format={{json .State}}", f"{self._name}-{name}")
        )
        return state

    def process_ids(self, name: str) -> list[int]:
        """The processes of a container, as the host numbers them."""
        listed = self._engine.call("top", f"{self._name}-{name}", "hpid")
        return [int(line) for line in listed.splitlines()[1:]]

    def command_lines(self, name: str) -> list[str]:
        """What a container runs, without the processes that end meanwhile."""
        lines = []
        for process in self.process_ids(name):
            with contextlib.suppress(OSError):
                lines.append(Path(f"/proc/{process}/cmdline").read_text().replace("\0", " ").rstrip())
        return lines

    def changed_files(self, name: str) -> list[str]:
        """Paths below the container's own root that were made, changed or deleted."""
        return self._engine.call("diff", f"{self._name}-{name}").splitlines()

    def memory_peak(self, name: str) -> int:
        """The most bytes that the container's memory was charged with, page cache included."""
        groups = Path(f"/proc/{self._state(name)['Pid']}/cgroup").read_text().splitlines()
        paths = {line.split(":")[1]: line.split(":")[2] for line in groups}
        if "memory" in paths:
            return int(Path(f"/sys/fs/cgroup/memory{paths['memory']}/memory.max_usage_in_bytes").read_text())
        return int(Path(f"/sys/fs/cgroup{paths['']}/memory.peak").read_text())

    def logs(self, name: str) -> str:
        """The container's log, standard error included."""
        return self._engine.call("logs", f"{self._name}-{name}", merged=True)

    def describe(self) -> str:
        """Every probe's answer and the end of every log, for a failure's message."""
        lines = []
        for container in self.pod.containers.values():
            lines.append(f"{container.name}: liveness {self.probe(container.liveness)}")
            if container.readiness:
                lines.append(f"{container.name}: readiness {self.probe(container.readiness)}")
            lines += self.logs(container.name).splitlines()[-15:]
        return "\n".join(lines)

    def _remove(self, name: str) -> None:
        self._engine.call("rm", "--force", "--time=0", "--ignore", f"{self._name}-{name}")

    def remove(self) -> None:
        """Remove all containers, killing those that run."""
        for name in self.pod.containers:
            self._remove(name)
