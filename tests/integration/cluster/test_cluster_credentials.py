"""Credentials against a server that checks them: the real `kubernetes` library, real TLS."""

import asyncio
import json
import os
import ssl
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import trustme
import yaml

from kubedns.cluster.credentials import (
    SERVICE_ACCOUNT,
    ServiceAccountCredentials,
    UrlCredentials,
    load_credentials,
)
from kubedns.cluster.files import CredentialsError
from kubedns.cluster.kubeconfig import KubeconfigCredentials
from tests.integration.cluster.fakeapi import FakeApi, fake_api, replay, service
from tests.integration.cluster.watching import watching

pytestmark = pytest.mark.integration


def headers(api: FakeApi) -> dict[tuple[str, str], str | None]:
    return {(one.plural, one.kind): one.headers.get("authorization") for one in api.asked}


async def test_service_account_sends_its_token_on_list_and_watch_without_the_final_newline(
    account, server_tls
):
    async with fake_api(server_tls(), "first-token") as api, watching(account.credentials(api.port)):
        assert headers(api) == {
            ("services", "stream"): "Bearer first-token",
            ("services", "watch"): "Bearer first-token",
            ("endpointslices", "stream"): "Bearer first-token",
            ("endpointslices", "watch"): "Bearer first-token",
        }


async def test_in_cluster_is_chosen_when_nothing_is_given(account, server_tls):
    async with fake_api(server_tls(), "first-token") as api:
        environ = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(api.port)}
        async with watching(load_credentials("", "", environ, account.directory)) as case:
            assert case.watch.synced.is_set()


async def test_rotated_token_is_used_within_one_retry_of_a_401(account, server_tls, authority):
    async with fake_api(server_tls(), "first-token") as api:
        api.put(service("web"))
        async with watching(account.credentials(api.port)) as case:
            account.write("second-token\n", authority.cert_pem.bytes())
            api.tokens = {"second-token"}
            api.reset()
            api.put(service("new"))
            assert await case.until(lambda: "new" in case.names) < 5
            assert case.names == {"web", "new"}
            assert len(api.of_kind("services", "stream")) == 1
            assert case.watch.statistics[0].watches["unauthorized"] == 0


async def test_401_reads_the_token_anew_even_if_the_file_looks_unchanged(account, server_tls):
    async with fake_api(server_tls(), "other-token") as api:
        credentials = account.credentials(api.port)
        await credentials.access()
        path = (account.directory / "token").resolve()
        status = path.stat()
        path.write_text("other-token\n")
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
        async with watching(credentials) as case:
            assert case.watch.synced.is_set()


async def test_api_restarted_with_another_certificate_and_a_rotated_token_is_found_again(
    account, server_tls, authority
):
    async with fake_api(server_tls(), "first-token") as api:
        api.put(service("web"))
        async with watching(account.credentials(api.port)) as case:
            await api.stop()
            account.write("second-token", authority.cert_pem.bytes())
            api.tls, api.tokens = server_tls(), {"second-token"}
            await case.until(lambda: "refuses" in case.watch._services.failure)
            api.put(service("new"))
            await api.start()
            await case.until(lambda: "new" in case.names)
            assert case.names == {"web", "new"}


async def test_replaced_authority_is_trusted_after_its_bundle_was_replaced(account, server_tls):
    other = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    other.issue_cert("127.0.0.1").configure_cert(context)
    async with fake_api(server_tls(), "first-token") as api, watching(account.credentials(api.port)) as case:
        await api.stop()
        api.tls = context
        await api.start()
        await case.until(lambda: "TLS" in case.watch._services.failure)
        account.write("first-token", other.cert_pem.bytes())
        api.put(service("new"))
        await case.until(lambda: "new" in case.names)


async def test_token_file_that_vanishes_leaves_the_last_token_in_use(account, server_tls):
    async with fake_api(server_tls(), "first-token") as api:
        credentials = account.credentials(api.port)
        await credentials.access()
        (account.directory / "token").unlink()
        assert (await credentials.access()).authorization == "Bearer first-token"


def kubeconfig(path: Path, server: str, ca: Path | None, user: Mapping[str, object]) -> str:
    cluster: dict[str, object] = {"server": server}
    if ca is not None:
        cluster["certificate-authority"] = str(ca)
    path.write_text(
        yaml.safe_dump(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "it",
                "contexts": [{"name": "it", "context": {"cluster": "it", "user": "me"}}],
                "clusters": [{"name": "it", "cluster": cluster}],
                "users": [{"name": "me", "user": dict(user)}],
            }
        )
    )
    return str(path)


@pytest.fixture
def ca_file(tmp_path: Path, authority: trustme.CA) -> Path:
    path = tmp_path / "ca.crt"
    authority.cert_pem.write_to_path(str(path))
    return path


async def test_kubernetes_library_gives_the_token_of_a_kubeconfig_on_list_and_watch(
    tmp_path, ca_file, server_tls
):
    async with fake_api(server_tls(), "kube-token") as api:
        path = kubeconfig(tmp_path / "config", api.url, ca_file, {"token": "kube-token"})
        async with watching(load_credentials(path, "", {})):
            assert set(headers(api).values()) == {"Bearer kube-token"}
            assert {kind for _, kind in headers(api)} == {"stream", "watch"}


async def test_kubernetes_library_gives_the_in_cluster_token(account, monkeypatch):
    """What 36.0.0 and 36.0.1 get wrong; ours reads the files itself, others of its loaders go the same way."""
    from kubernetes.client import Configuration
    from kubernetes.config.incluster_config import InClusterConfigLoader

    configuration = Configuration()
    loader: Any = InClusterConfigLoader(  # type: ignore[no-untyped-call]
        str(account.directory / "token"),
        str(account.directory / "ca.crt"),
        environ={"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": "6443"},
    )
    loader.load_and_set(configuration)
    assert "first-token" in str(configuration.auth_settings()["BearerToken"]["value"])


async def test_url_overrides_the_server_of_the_kubeconfig(tmp_path, ca_file, server_tls):
    async with fake_api(server_tls(), "kube-token") as api:
        path = kubeconfig(tmp_path / "config", "https://192.0.2.1:6443", ca_file, {"token": "kube-token"})
        async with watching(load_credentials(path, api.url + "/", {})) as case:
            assert case.watch.synced.is_set()


async def test_kubeconfig_that_changes_is_read_again(tmp_path, ca_file, server_tls):
    async with fake_api(server_tls(), "one") as api:
        path = kubeconfig(tmp_path / "config", api.url, ca_file, {"token": "one"})
        async with watching(load_credentials(path, "", {})) as case:
            api.tokens = {"two"}
            kubeconfig(tmp_path / "config", api.url, ca_file, {"token": "two"})
            api.reset()
            api.put(service("new"))
            await case.until(lambda: "new" in case.names)


async def test_token_file_of_a_kubeconfig_is_read_again_on_401(tmp_path, ca_file, server_tls):
    token = tmp_path / "token"
    token.write_text("one")
    async with fake_api(server_tls(), "one") as api:
        path = kubeconfig(tmp_path / "config", api.url, ca_file, {"tokenFile": str(token)})
        async with watching(load_credentials(path, "", {})) as case:
            api.tokens = {"two"}
            token.write_text("two")
            api.reset()
            api.put(service("new"))
            await case.until(lambda: "new" in case.names)


async def test_exec_plugin_is_run_again_on_401(tmp_path, ca_file, server_tls):
    token = tmp_path / "token"
    token.write_text("one")
    plugin = tmp_path / "plugin.py"
    answer = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential"}
    plugin.write_text(
        f"import json; print(json.dumps({answer!r} | {{'status': {{'token': open({str(token)!r}).read()}}}}))"
    )
    exec_section = {
        "apiVersion": answer["apiVersion"],
        "command": sys.executable,
        "args": [str(plugin)],
        "interactiveMode": "Never",
    }
    async with fake_api(server_tls(), "one") as api:
        path = kubeconfig(tmp_path / "config", api.url, ca_file, {"exec": exec_section})
        async with watching(load_credentials(path, "", {})) as case:
            api.tokens = {"two"}
            token.write_text("two")
            api.reset()
            api.put(service("new"))
            await case.until(lambda: "new" in case.names)


async def test_client_certificate_of_a_kubeconfig_is_shown(tmp_path, ca_file, authority, server_tls):
    context = server_tls()
    authority.configure_trust(context)
    context.verify_mode = ssl.CERT_REQUIRED
    client = authority.issue_cert("kube-dns@example.test")
    client.cert_chain_pems[0].write_to_path(str(tmp_path / "client.crt"))
    client.private_key_pem.write_to_path(str(tmp_path / "client.key"))
    user = {"client-certificate": str(tmp_path / "client.crt"), "client-key": str(tmp_path / "client.key")}
    async with fake_api(context) as api:
        path = kubeconfig(tmp_path / "config", api.url, ca_file, user)
        async with watching(load_credentials(path, "", {})) as case:
            assert case.watch.synced.is_set()
            assert set(headers(api).values()) == {None}


async def test_proxy_of_the_environment_is_used_unless_the_server_is_excepted(tmp_path, monkeypatch):
    monkeypatch.setenv("http_proxy", "http://192.0.2.9:3128")
    path = kubeconfig(tmp_path / "config", "http://api.example.test:8080", None, {"token": "t"})
    assert (await KubeconfigCredentials(path).access()).proxy == "http://192.0.2.9:3128"
    monkeypatch.setenv("no_proxy", ".example.test,10.0.0.1")
    assert (await KubeconfigCredentials(path).access()).proxy is None


async def test_insecure_kubeconfig_and_plain_http_are_taken(tmp_path, server_tls):
    async with fake_api(server_tls(), "t") as api:
        path = kubeconfig(tmp_path / "config", api.url, None, {"token": "t"})
        raw = yaml.safe_load(Path(path).read_text())
        raw["clusters"][0]["cluster"]["insecure-skip-tls-verify"] = True
        Path(path).write_text(json.dumps(raw))
        async with watching(load_credentials(path, "", {})) as case:
            assert case.watch.synced.is_set()
    async with fake_api() as api:
        path = kubeconfig(tmp_path / "config", api.url, None, {"token": "t"})
        async with watching(load_credentials(path, "", {})) as case:
            assert case.watch.synced.is_set()
            assert set(headers(api).values()) == {None}, "the token stays here"
        async with watching(load_credentials("", f"127.0.0.1:{api.port}", {})) as case:
            assert case.watch.synced.is_set()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "No such file"),
        ("", "cannot be used"),
        ("{", "cannot be used"),
        ("[]", "cannot be used"),
        ("just text", "cannot be used"),
        ("current-context: x\nclusters: []\ncontexts: []\nusers: []\n", "x"),
        ("current-context: x\nclusters: 5\ncontexts: 7\n", "cannot be used"),
    ],
)
def test_kubeconfig_that_cannot_be_used_is_named_with_the_reason(tmp_path, content, reason):
    path = tmp_path / "config"
    if content is not None:
        path.write_text(content)
    with pytest.raises(CredentialsError, match=f"kubeconfig {path} cannot be used: .*") as caught:
        KubeconfigCredentials(str(path))
    assert reason in str(caught.value)


def test_outside_a_cluster_without_flags_the_remedy_is_named():
    with pytest.raises(CredentialsError, match=r"--kubecfg-file or --kube-master-url"):
        load_credentials("", "", {})


def test_missing_service_account_names_the_file(tmp_path):
    environ = {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443"}
    with pytest.raises(CredentialsError, match=r"token.*No such file.*automountServiceAccountToken"):
        load_credentials("", "", environ, tmp_path)
    assert str(SERVICE_ACCOUNT) == "/var/run/secrets/kubernetes.io/serviceaccount"


@pytest.mark.parametrize(
    "url", ["ftp://x", "http://", "http://h:99999", "http://h:0", "https://h/?a=b", "http://[::1"]
)
def test_url_that_is_none_is_refused(url):
    with pytest.raises(CredentialsError, match="API server URL"):
        UrlCredentials(url)


def test_ipv6_service_host_is_bracketed(account):
    assert ServiceAccountCredentials("fd00::1", "443", account.directory).server == "https://[fd00::1]:443"


async def test_plain_http_behind_an_https_url_is_said_plainly_and_once():
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        names = "services, endpointslices_headless, endpointslices_unmanaged: cannot "
        async with watching(url, synced=False) as case:
            await case.until(lambda: case.watch.why_not_synced().startswith(names))
            reason = case.watch.why_not_synced()
    assert f"what answers at {url} does not speak TLS" in reason
    assert reason.count("does not speak TLS") == 1
    assert "ssl:" not in reason


async def test_each_cause_has_its_own_message(account, server_tls, tmp_path, unused_tcp_port):
    messages: dict[str, str] = {}

    async def failure(cause: str, credentials: object, contains: str) -> None:
        async with watching(credentials, synced=False) as case:  # type: ignore[arg-type]
            await case.until(lambda: contains in case.watch.why_not_synced())
            messages[cause] = case.watch.why_not_synced()

    await failure("refused", f"http://127.0.0.1:{unused_tcp_port}", "refuses the connection")
    await failure("name", "http://no-such-name.invalid:6443", "does not resolve")
    async with fake_api() as api:
        api.always["services", "stream"] = replay("bad-token-401.http")
        await failure("401", api.url, "does not accept the credential")
        api.always["services", "stream"] = replay("unauthenticated-403.http")
        await failure("403", api.url, "verb 'watch' on resource 'services' in API group ''")
        api.always["endpointslices", "stream"] = replay("unauthenticated-403.http")
        await failure("403 slices", api.url, "resource 'endpointslices' in API group 'discovery.k8s.io'")
    other = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    other.issue_cert("127.0.0.1").configure_cert(context)
    async with fake_api(context) as api:
        await failure("CA", account.credentials(api.port), "TLS with the API server")
    assert len(set(messages.values())) == len(messages)


async def test_token_of_a_kubeconfig_does_not_go_over_plain_http(tmp_path, caplog):
    kubeconfig = tmp_path / "config"
    kubeconfig.write_text(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
        "clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]\n"
        "users: [{name: u, user: {token: secret-token}}]\n"
        "contexts: [{name: c, context: {cluster: c, user: u}}]\n"
    )
    credentials = load_credentials(str(kubeconfig), "", {})
    for _ in range(2):
        assert (await credentials.access()).authorization is None
    (warning,) = [record.getMessage() for record in caplog.records if "no TLS" in record.getMessage()]
    assert "http://127.0.0.1:1" in warning
    assert "secret-token" not in caplog.text


@pytest.mark.parametrize(("command", "words"), [("no-such-plugin", "not on this host"), ("false", "by hand")])
def test_exec_plugin_without_a_credential_is_named_and_nobody_goes_on_as_anonymous(tmp_path, command, words):
    plugin = {"apiVersion": "client.authentication.k8s.io/v1", "command": command, "interactiveMode": "Never"}
    path = kubeconfig(tmp_path / "config", "https://127.0.0.1:1", None, {"exec": plugin})
    with pytest.raises(CredentialsError, match=f"exec plugin {command}.*{words}"):
        load_credentials(path, "", {})
