"""`--kubecfg-file` in the image, which has only the part of the `kubernetes` library that reads kubeconfigs."""

import base64
import http.server
import json
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import trustme
import yaml

from deploy.images.build import image_names
from tests.e2e.pod.kubelet import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

NAME = "kube-dns-kubeconfig-test"
PLUGIN = """#!/opt/kube-dns/bin/python
import json, os
assert json.loads(os.environ["KUBERNETES_EXEC_INFO"])["kind"] == "ExecCredential"
print(json.dumps({"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",
                  "status": {"token": "plugin-token"}}))
"""
Run = Callable[[str, str, Mapping[str, Any]], None]


@pytest.fixture
def run(engine, tmp_path) -> Iterator[Run]:
    """Start the image's kube-dns with a kubeconfig of a server, its authority and a user."""
    tmp_path.chmod(0o755)

    def run(server: str, authority: str, user: Mapping[str, Any]) -> None:
        data = base64.b64encode(authority.encode()).decode()
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "c", "cluster": {"server": server, "certificate-authority-data": data}}],
            "users": [{"name": "u", "user": dict(user)}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "x",
        }
        (tmp_path / "config").write_text(yaml.safe_dump(config))
        engine.run(
            *("--detach", f"--name={NAME}", "--network=host", f"--volume={tmp_path}:/kube:ro"),
            "--env=PROMETHEUS_PORT=0",
            image_names()["kubedns"],
            *("--kubecfg-file=/kube/config", "--dns-port=0", "--healthz-port=0"),
        )

    yield run
    engine.call("rm", "--force", "--time=0", NAME)


@pytest.fixture
def log(engine) -> Callable[[], str]:
    return lambda: engine.call("logs", NAME, merged=True)


def id_token() -> str:
    """Return a JWT that has not expired; nobody checks its signature on this side."""
    parts = ({"alg": "none"}, {"exp": 4102444800})
    return (
        ".".join(base64.urlsafe_b64encode(json.dumps(it).encode()).decode().rstrip("=") for it in parts)
        + ".c2ln"
    )


@pytest.mark.parametrize("kind", ["token", "exec", "oidc"])
def test_a_bearer_token_lets_the_image_in(run, log, backstage, tmp_path, kind: str) -> None:
    plugin = tmp_path / "plugin"
    plugin.write_text(PLUGIN)
    plugin.chmod(0o755)
    users = {
        "token": ("plain-token", {"token": "plain-token"}),
        "exec": (
            "plugin-token",
            {
                "exec": {
                    "apiVersion": "client.authentication.k8s.io/v1",
                    "command": "/kube/plugin",
                    "interactiveMode": "Never",
                }
            },
        ),
        "oidc": (id_token(), {"auth-provider": {"name": "oidc", "config": {"id-token": id_token()}}}),
    }
    token, user = users[kind]
    backstage.accept_tokens("first-token", token)
    run(f"https://{backstage.address}:{backstage.api.port}", backstage.authority, user)
    wait_until(lambda: "synced after" in log(), 30, log)


class Refusal(http.server.BaseHTTPRequestHandler):
    """Answers 403; the connection has shown a client certificate before."""

    def do_GET(self) -> None:
        self.send_error(403)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def test_a_client_certificate_is_shown_by_the_image(run, log, node, tmp_path) -> None:
    authority = trustme.CA()
    client = authority.issue_cert(common_name="dns-reader")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.verify_mode = ssl.CERT_REQUIRED
    authority.configure_trust(context)
    authority.issue_cert(node.address).configure_cert(context)
    certificates, key = client.cert_chain_pems, client.private_key_pem
    seen: list[Any] = []

    class Server(http.server.HTTPServer):
        def get_request(self) -> tuple[Any, Any]:
            connection, peer = super().get_request()
            assert isinstance(connection, ssl.SSLSocket)
            seen.append(connection.getpeercert())
            return connection, peer

        def handle_error(self, *_: object) -> None:
            """A connection that ends early is none of this test's business."""

    server = Server((node.address, 0), Refusal)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        run(
            f"https://{node.address}:{server.server_port}",
            authority.cert_pem.bytes().decode(),
            {
                "client-certificate-data": base64.b64encode(certificates[0].bytes()).decode(),
                "client-key-data": base64.b64encode(key.bytes()).decode(),
            },
        )
        wait_until(lambda: bool(seen), 30, log)
        wait_until(lambda: "403" in log(), 30, log)
    finally:
        server.shutdown()
        server.server_close()
    assert (("commonName", "dns-reader"),) in seen[0]["subject"]


def test_the_library_reads_kubeconfigs_only(engine, tmp_path: Path) -> None:
    program = "import kubernetes.client as c; c.ApiClient(c.Configuration()); print(1)"
    python = (
        "--rm",
        "--network=none",
        "--entrypoint=/opt/kube-dns/bin/python",
        image_names()["kubedns"],
        "-c",
    )
    assert engine.run(*python, program) == "1"
    listed = engine.run(*python, "import kubernetes, os; print(sorted(os.listdir(kubernetes.__path__[0])))")
    assert "aio" not in listed
