"""A real kubectl works on the local API."""

import asyncio
import json
import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from kubedns.local.api.server import LocalApi

pytestmark = pytest.mark.integration

HELLO = """
apiVersion: v1
kind: Service
metadata:
  name: hello
spec:
  selector: {app: hello}
  ports:
    - {name: http, port: 80}
    - {name: dns, port: 53, protocol: UDP}
    - {name: dns-tcp, port: 53, protocol: TCP}
"""


class Kubectl:
    """Runs kubectl on the API, with its own home directory."""

    def __init__(self, api: LocalApi, home: Path) -> None:
        program = shutil.which("kubectl")
        assert program, "kubectl is needed: https://kubernetes.io/docs/tasks/tools/"
        self.api = api
        self._command = [program, f"--server={api.url}"]
        self.environment = {**os.environ, "HOME": str(home), "KUBECONFIG": str(home / "none")}

    async def start(self, *words: str) -> asyncio.subprocess.Process:
        pipe = asyncio.subprocess.PIPE
        return await asyncio.create_subprocess_exec(
            *self._command, *words, stdin=pipe, stdout=pipe, stderr=pipe, env=self.environment
        )

    async def run(self, *words: str, text: str = "") -> tuple[int | None, str, str]:
        process = await self.start(*words)
        async with asyncio.timeout(30):
            output, errors = await process.communicate(text.encode())
        return process.returncode, output.decode(), errors.decode()

    async def __call__(self, *words: str, text: str = "") -> str:
        status, output, errors = await self.run(*words, text=text)
        assert status == 0, errors
        return output

    async def spec(self, name: str = "hello") -> Any:
        return json.loads(await self("get", "service", name, "-o", "json"))["spec"]


@pytest.fixture
async def kubectl(tmp_path: Path) -> AsyncIterator[Kubectl]:
    async with LocalApi() as api:
        yield Kubectl(api, tmp_path)


async def test_apply_creates_changes_and_prunes_fields(kubectl):
    assert "service/hello created" in await kubectl("apply", "-f", "-", text=HELLO)
    changed = HELLO.replace("port: 80", "port: 81").replace("app: hello", "role: front")
    assert "service/hello configured" in await kubectl("apply", "-f", "-", text=changed)
    spec = await kubectl.spec()
    assert spec["selector"] == {"role": "front"}
    assert [port["port"] for port in spec["ports"]] == [81, 53, 53]
    fewer = "\n".join(line for line in changed.splitlines() if "http" not in line)
    await kubectl("apply", "-f", "-", text=fewer)
    assert "unchanged" in await kubectl("apply", "-f", "-", text=fewer)
    assert [port["name"] for port in (await kubectl.spec())["ports"]] == ["dns", "dns-tcp"]


async def test_diff_shows_what_apply_would_do(kubectl):
    await kubectl("apply", "-f", "-", text=HELLO)
    status, output, _ = await kubectl.run("diff", "-f", "-", text=HELLO.replace("port: 80", "port: 81"))
    assert status == 1
    assert "+    port: 81" in output
    assert (await kubectl.spec())["ports"][0]["port"] == 80


async def test_create_replace_edit_and_all_patch_types(kubectl):
    await kubectl("create", "-f", "-", text=HELLO)
    await kubectl("patch", "service", "hello", "-p", '{"spec":{"ports":[{"port":80,"targetPort":8080}]}}')
    await kubectl("patch", "service", "hello", "--type=merge", "-p", '{"spec":{"selector":{"b":"c"}}}')
    rename = '[{"op":"replace","path":"/spec/ports/0/name","value":"web"}]'
    await kubectl("patch", "service", "hello", "--type=json", "-p", rename)
    spec = await kubectl.spec()
    assert spec["selector"] == {"app": "hello", "b": "c"}
    assert spec["ports"][0] == {"name": "web", "protocol": "TCP", "port": 80, "targetPort": 8080}
    assert len(spec["ports"]) == 3
    whole = await kubectl("get", "service", "hello", "-o", "yaml")
    await kubectl("replace", "-f", "-", text=whole.replace("name: web", "name: www"))
    kubectl.environment["EDITOR"] = "sed -i s/www/edited/"
    await kubectl("edit", "service", "hello")
    assert (await kubectl.spec())["ports"][0]["name"] == "edited"


async def test_labels_annotations_and_selectors(kubectl):
    await kubectl("apply", "-f", "-", text=HELLO)
    await kubectl("label", "service", "hello", "tier=front")
    await kubectl("annotate", "service", "hello", "note=x")
    assert "hello" in await kubectl("get", "services", "-A", "-l", "tier in (front)", "-o", "wide")
    await kubectl("label", "service", "hello", "tier-")
    assert await kubectl("get", "services", "-l", "tier", "-o", "name") == ""


async def test_get_in_all_forms_and_describe(kubectl):
    await kubectl("apply", "-f", "-", text=HELLO)
    for words in (
        ["svc"],
        ["services", "-A"],
        ["ns"],
        ["nodes"],
        ["endpointslices", "-A"],
        ["cm", "-o", "wide"],
    ):
        await kubectl("get", *words)
    assert "hello" in await kubectl("get", "svc", "hello", "-o", "yaml")
    assert "http  80/TCP" in await kubectl("describe", "svc", "hello")
    assert "endpointslices" in await kubectl("api-resources")
    _, _, errors = await kubectl.run("get", "endpoints")
    assert "deprecated" in errors


async def test_watch_follows_along(kubectl):
    process = await kubectl.start("get", "services", "-w", "--no-headers", "-o", "name")
    assert process.stdout is not None
    try:
        while not kubectl.api.watches:
            await asyncio.sleep(0.01)
        await kubectl("apply", "-f", "-", text=HELLO)
        async with asyncio.timeout(10):
            assert await process.stdout.readline() == b"service/hello\n"
    finally:
        process.kill()
        await process.communicate()


async def test_deleting_by_file_all_and_namespace(kubectl):
    for name in ("a", "b", "hello"):
        await kubectl("create", "-f", "-", text=HELLO.replace("name: hello", f"name: {name}"))
    await kubectl("delete", "-f", "-", text=HELLO)
    await kubectl("delete", "services", "--all")
    assert kubectl.api.get("Service", "a") is None
    namespace = '{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}'
    await kubectl("apply", "-f", "-", text=namespace)
    await kubectl("apply", "-n", "shop", "-f", "-", text=HELLO)
    await kubectl("delete", "namespace", "shop")
    assert kubectl.api.get("Service", "hello", "shop") is None


async def test_faults_are_shown_to_the_person(kubectl):
    status, _, errors = await kubectl.run("create", "-f", "-", text=HELLO.replace("port: 80", "port: 0"))
    assert status == 1
    assert "spec.ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive" in errors
    _, _, errors = await kubectl.run("create", "-f", "-", text=HELLO.replace("selector", "selectr"))
    assert 'unknown field "spec.selectr"' in errors
    _, _, errors = await kubectl.run("get", "pods")
    assert 'doesn\'t have a resource type "pods"' in errors
    _, _, errors = await kubectl.run("apply", "--server-side", "-f", "-", text=HELLO)
    assert "without --server-side" in errors
    _, _, errors = await kubectl.run("apply", "-n", "nowhere", "-f", "-", text=HELLO)
    assert 'namespaces "nowhere" not found' in errors
