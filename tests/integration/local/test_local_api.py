"""The local API over HTTP, measured against the recorded responses of a real server.

The recorded lists are themselves the manifests that the API is loaded with.
"""

import asyncio
import gzip
import io
import json
import re
import ssl
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from kubedns.local.api.server import LocalApi
from tests.tools import tool

pytestmark = pytest.mark.integration

RECORDED = Path(__file__).parents[2] / "data" / "apiserver"
SERVICES, SLICES = "/api/v1/services", "/apis/discovery.k8s.io/v1/endpointslices"
IN_DEFAULT = "/api/v1/namespaces/default/services"
HEADLESS = "service.kubernetes.io/headless"
UNMANAGED = f"!{HEADLESS},endpointslice.kubernetes.io/managed-by!=endpointslice-controller.k8s.io"
PAGE_2 = "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6NDEwLCJzdGFydCI6Ii9lZGdlL2V4dFx1MDAwMCJ9"
STREAM = {
    "watch": "1",
    "sendInitialEvents": "true",
    "resourceVersionMatch": "NotOlderThan",
    "allowWatchBookmarks": "true",
}


def recorded(name: str) -> tuple[int, str]:
    head, _, body = (RECORDED / f"{name}.http").read_bytes().partition(b"\r\n\r\n")
    return int(head.split()[1]), body.decode()


class Client:
    """Asks the API as a person with curl would, so that it indents its answers."""

    def __init__(self, api: LocalApi, session: aiohttp.ClientSession) -> None:
        self.api, self._session = api, session

    async def text(self, path: str, **query: str) -> tuple[int, str]:
        async with self._session.get(self.api.url + path, params=query) as response:
            return response.status, await response.text()

    async def send(
        self, method: str, path: str, body: Any = None, kind: str = "application/json", **query: str
    ) -> tuple[int, Any]:
        data = None if body is None else json.dumps(body)
        headers = {"Content-Type": kind}
        url = self.api.url + path
        async with self._session.request(method, url, data=data, headers=headers, params=query) as response:
            return response.status, await response.json()

    def events(self, path: str, **query: str) -> "Events":
        return Events(self._session, self.api.url + path, {"watch": "1", **query})


class Events:
    """One watch; iterates over (type, object)."""

    def __init__(self, session: aiohttp.ClientSession, url: str, query: dict[str, str]) -> None:
        self._request = session.get(url, params=query)

    async def __aenter__(self) -> "Events":
        self._response = await self._request.__aenter__()
        return self

    async def __aexit__(self, *failure: Any) -> None:
        self._response.close()

    async def next(self) -> tuple[str, dict[str, Any]]:
        async with asyncio.timeout(5):
            line = await self._response.content.readline()
        event: dict[str, Any] = json.loads(line) if line else {"type": "END", "object": {}}
        return event["type"], event["object"]

    async def names(self, count: int) -> list[tuple[str, str]]:
        found = [await self.next() for _ in range(count)]
        return [(kind, value["metadata"].get("name", "")) for kind, value in found]


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[Client]:
    lists = ("services-list", "endpointslices-list-headless", "endpointslices-list-unmanaged", "nodes-list")
    for name in lists:
        (tmp_path / f"{name}.json").write_text(recorded(name)[1], encoding="utf-8")
    api = LocalApi(first_version=410, bookmark_interval=0.1)
    api.load([tmp_path])
    api.store.restart_history(410)
    async with api, aiohttp.ClientSession(headers={"User-Agent": "curl/8"}) as session:
        yield Client(api, session)


def service(name: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name},
        "spec": {"ports": [{"port": 80}], **spec},
    }


@pytest.mark.parametrize(
    ("name", "path", "query"),
    [
        ("services-list", SERVICES, {}),
        ("nodes-list", "/api/v1/nodes", {}),
        ("services-list-limit5-page1", SERVICES, {"limit": "5"}),
        ("services-list-limit5-page2", SERVICES, {"limit": "5", "continue": PAGE_2}),
        ("endpointslices-list-headless", SLICES, {"labelSelector": HEADLESS}),
        ("endpointslices-list-unmanaged", SLICES, {"labelSelector": UNMANAGED}),
        ("services-watch-bad-rv-500", SERVICES, {"watch": "1", "resourceVersion": "None"}),
        ("configmap-missing", "/api/v1/namespaces/kube-system/configmaps/kube-dns", {}),
    ],
)
async def test_responses_equal_the_recorded_ones_byte_for_byte(client, name, path, query):
    assert await client.text(path, **query) == recorded(name)


async def test_a_version_from_the_future_is_answered_as_recorded(client):
    status, body = await client.text(SERVICES, resourceVersion="999999999")
    assert (status, body.replace("current: 410", "current: 488")) == recorded(
        "services-list-rv-too-large-504"
    )


async def test_a_watch_from_a_compacted_version_is_answered_as_recorded(client):
    status, body = await client.text(SERVICES, watch="1", resourceVersion="5")
    assert (status, body.replace("(410)", "(482)")) == recorded("services-watch-expired-410")


async def test_an_expired_token_is_answered_as_recorded_and_the_fresh_one_works(client):
    client.api.expire_history()
    query = {"limit": "5", "continue": PAGE_2}
    status, body = await client.text(SERVICES, **query)
    assert (status, body) == recorded("services-list-continue-expired-410")
    _, rest = await client.text(SERVICES, **{"continue": json.loads(body)["metadata"]["continue"]})
    assert len(json.loads(rest)["items"]) == 26


async def test_a_streamed_list_equals_the_recorded_one_up_to_its_bookmark(client):
    _, whole = recorded("services-watchlist")
    initial = whole[: whole.index("\n", whole.index("k8s.io/initial-events-end")) + 1]
    status, body = await client.text(SERVICES, timeoutSeconds="1", **STREAM)
    assert status == 200
    assert body.startswith(initial)
    assert set(body.removeprefix(initial).splitlines()) == {
        initial.splitlines()[-1].replace(',"annotations":{"k8s.io/initial-events-end":"true"}', "")
    }


async def test_a_created_service_becomes_the_recorded_event(client):
    _, body = recorded("services-watch")
    wanted = json.loads(body.splitlines()[0])
    applied = json.loads(
        wanted["object"]["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"]
    )
    async with client.events(SERVICES, resourceVersion="410") as events:
        await client.send("POST", "/api/v1/namespaces/prod/services", applied)
        kind, made = await events.next()
    for changing in ("uid", "resourceVersion", "creationTimestamp", "managedFields", "annotations"):
        wanted["object"]["metadata"].pop(changing)
        made["metadata"].pop(changing, None)
    assert json.dumps({"type": kind, "object": made}) == json.dumps(wanted)


async def test_discovery_describes_the_served_kinds_as_recorded(client):
    wanted = {entry["name"]: entry for entry in json.loads(recorded("api-discovery")[1])["resources"]}
    _, body = await client.text("/api/v1")
    served = json.loads(body)["resources"]
    assert {"services", "endpoints", "nodes", "configmaps", "namespaces"} <= {
        entry["name"] for entry in served
    }
    assert served == [wanted[entry["name"]] for entry in served]


async def test_pages_show_one_version_while_objects_change(client):
    _, first = await client.text(SERVICES, limit="30")
    client.api.delete("Service", "svc", "svc")
    client.api.apply({**service("aaa"), "metadata": {"name": "aaa", "namespace": "zzz"}})
    token = json.loads(first)["metadata"]["continue"]
    _, second = await client.text(SERVICES, limit="30", **{"continue": token})
    page = json.loads(second)
    assert [item["metadata"]["name"] for item in page["items"]] == ["svc"]
    assert page["metadata"] == {"resourceVersion": "410"}


async def test_exact_and_not_older_than_choose_the_version_of_a_list(client):
    client.api.delete("Service", "svc", "svc")

    async def count(**query: str) -> int:
        return len(json.loads((await client.text(SERVICES, **query))[1])["items"])

    assert await count(resourceVersion="410", resourceVersionMatch="Exact") == 31
    assert await count(resourceVersion="410", resourceVersionMatch="NotOlderThan") == 30
    assert await count(resourceVersion="0") == 30
    assert (await client.text(SERVICES, resourceVersion="5", resourceVersionMatch="Exact"))[0] == 410
    assert (await client.text(SERVICES, resourceVersionMatch="Exact"))[0] == 422


async def test_namespaces_and_field_selectors_narrow_a_list(client):
    _, body = await client.text("/api/v1/namespaces/prod/services", fieldSelector="metadata.name=dual")
    assert [item["metadata"]["name"] for item in json.loads(body)["items"]] == ["dual"]
    assert json.loads((await client.text("/api/v1/namespaces/nowhere/services"))[1])["items"] == []
    assert (await client.text(SERVICES, fieldSelector="spec.x=1"))[0] == 400
    assert (await client.text(SERVICES, labelSelector="a b"))[0] == 400


async def test_a_watch_without_version_begins_with_the_state(client):
    async with client.events("/api/v1/namespaces/prod/services") as events:
        assert await events.names(6) == [
            ("ADDED", name) for name in ("dual", "lb", "mixed", "noselector", "np", "v6only")
        ]
        client.api.delete("Service", "dual", "prod")
        client.api.apply(service("elsewhere"))
        client.api.delete("Service", "lb", "prod")
        assert await events.names(2) == [("DELETED", "dual"), ("DELETED", "lb")]


async def test_a_slice_that_changes_its_label_moves_from_one_watch_to_the_other(client):
    moving: dict[str, Any] = {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": "moving"},
        "addressType": "IPv4",
        "endpoints": [],
        "ports": [],
    }
    version = str(client.api.store.version)
    async with (
        client.events(SLICES, resourceVersion=version, labelSelector=HEADLESS) as headless,
        client.events(SLICES, resourceVersion=version, labelSelector=UNMANAGED) as unmanaged,
    ):
        client.api.apply(moving)
        moving["metadata"]["labels"] = {HEADLESS: ""}
        client.api.apply(moving)
        assert await unmanaged.names(2) == [("ADDED", "moving"), ("DELETED", "moving")]
        assert await headless.names(1) == [("ADDED", "moving")]


async def test_bookmarks_follow_the_version_and_come_last_at_the_timeout(client):
    async with client.events(
        SERVICES, resourceVersion="410", allowWatchBookmarks="true", timeoutSeconds="1"
    ) as events:
        client.api.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "other-kind"}})
        seen = []
        while (event := await events.next())[0] != "END":
            seen.append(event)
    assert {kind for kind, _ in seen} == {"BOOKMARK"}
    assert seen[-1][1]["metadata"] == {"resourceVersion": str(client.api.store.version)}


async def test_a_watcher_slower_than_the_history_is_told_that_it_is_expired(tmp_path):
    api = LocalApi(first_version=1, history=5)
    async with api, aiohttp.ClientSession() as session:
        version = str(api.store.version)
        for number in range(20):
            api.apply(service(f"s-{number}"))
        async with Client(api, session).events(SERVICES, resourceVersion=version) as events:
            kind, status = await events.next()
            assert (kind, status["code"], status["reason"]) == ("ERROR", 410, "Expired")
            assert (await events.next())[0] == "END"


async def test_one_object_is_watched_by_its_path(client):
    async with client.events(f"{IN_DEFAULT}/web") as events:
        assert await events.names(1) == [("ADDED", "web")]
        client.api.delete("Service", "single")
        client.api.delete("Service", "web")
        assert await events.names(1) == [("DELETED", "web")]


async def test_a_watcher_that_goes_away_is_forgotten(client):
    async with client.events(SERVICES, resourceVersion="410") as events:
        client.api.apply(service("a"))
        await events.next()
        assert client.api.watches == 1
    async with asyncio.timeout(5):
        while client.api.watches:
            await asyncio.sleep(0.01)


async def test_dropped_watches_end_without_an_event(client):
    async with client.events(SERVICES, resourceVersion="410") as events:
        client.api.apply(service("a"))
        assert await events.names(1) == [("ADDED", "a")]
        assert client.api.watches == 1
        client.api.drop_watches()
        with pytest.raises(aiohttp.ClientPayloadError):
            await events.next()


async def test_servers_that_cannot_stream_lists_refuse_in_their_own_ways(client):
    client.api.serve_streaming_lists("off")
    status, body = await client.text(SERVICES, **STREAM)
    assert status == 422
    assert json.loads(body)["details"]["causes"][0]["field"] == "sendInitialEvents"
    client.api.serve_streaming_lists("broken")
    status, body = await client.text(SERVICES, **STREAM)
    event = json.loads(body)
    assert (status, event["type"], event["object"]["code"]) == (200, "ERROR", 500)
    client.api.serve_streaming_lists("on")
    assert (await client.text(SERVICES, watch="1", sendInitialEvents="true"))[0] == 422


async def test_objects_are_created_changed_and_deleted_over_http(client):
    status, made = await client.send("POST", IN_DEFAULT, service("hello"))
    assert (status, made["kind"], made["metadata"]["namespace"]) == (201, "Service", "default")
    made["metadata"]["labels"] = {"a": "b"}
    status, changed = await client.send("PUT", f"{IN_DEFAULT}/hello", made)
    assert (status, changed["metadata"]["labels"]) == (200, {"a": "b"})
    assert (await client.send("PUT", f"{IN_DEFAULT}/hello", made))[0] == 409
    patch = {"metadata": {"labels": None}}
    status, bare = await client.send("PATCH", f"{IN_DEFAULT}/hello", patch, "application/merge-patch+json")
    assert status == 200
    assert "labels" not in bare["metadata"]
    status, gone = await client.send("DELETE", f"{IN_DEFAULT}/hello")
    assert status == 200
    assert gone["status"] == "Success"
    assert gone["details"] == {"name": "hello", "kind": "services", "uid": made["metadata"]["uid"]}
    assert (await client.send("GET", f"{IN_DEFAULT}/hello"))[0] == 404


async def test_a_collection_is_deleted_by_selector_and_dry_runs_change_nothing(client):
    for name in ("a", "b"):
        await client.send(
            "POST", IN_DEFAULT, {**service(name), "metadata": {"name": name, "labels": {"x": name}}}
        )
    options = {"dryRun": ["All"]}
    assert len((await client.send("DELETE", IN_DEFAULT, options, labelSelector="x"))[1]["items"]) == 2
    assert len((await client.send("DELETE", IN_DEFAULT, labelSelector="x=a"))[1]["items"]) == 1
    assert client.api.get("Service", "a") is None
    assert client.api.get("Service", "b") is not None
    assert (await client.send("POST", IN_DEFAULT, service("c"), dryRun="All"))[0] == 201
    assert client.api.get("Service", "c") is None


@pytest.mark.parametrize(
    ("method", "path", "kind", "body", "code", "words"),
    [
        ("POST", IN_DEFAULT, "application/yaml", "{}", 415, "apply -f"),
        ("POST", IN_DEFAULT, "application/vnd.kubernetes.protobuf", "{}", 415, "apply -f"),
        ("PATCH", f"{IN_DEFAULT}/web", "application/apply-patch+yaml", "{}", 415, "server-side"),
        ("PATCH", f"{IN_DEFAULT}/web", "application/json", "{}", 415, "accepted media types"),
        ("POST", IN_DEFAULT, "application/json", "{", 400, "not valid JSON"),
        ("POST", IN_DEFAULT, "application/json", "[]", 400, "not a Kubernetes object"),
        ("POST", IN_DEFAULT, "application/json", '{"kind":"Pod"}', 400, "wrong type"),
        (
            "POST",
            IN_DEFAULT,
            "application/json",
            '{"metadata":{"namespace":"x","name":"y"}}',
            400,
            "namespace",
        ),
        (
            "PUT",
            f"{IN_DEFAULT}/web",
            "application/json",
            '{"metadata":{"name":"x"}}',
            400,
            "name of the object",
        ),
        ("POST", SERVICES, "application/json", "{}", 405, "does not allow this method"),
        ("DELETE", "/api/v1/namespaces", "application/json", "{}", 405, "does not allow this method"),
        ("POST", "/version", "application/json", "{}", 405, "does not allow this method"),
        ("GET", f"{SERVICES}?resourceVersion={'9' * 5000}", "application/json", "", 500, "out of range"),
        (
            "PATCH",
            f"{IN_DEFAULT}/web",
            "application/merge-patch+json",
            '{"a":' * 1020 + "1" + "}" * 1020,
            500,
            "recursion",
        ),
        ("GET", "/api/v1/pods", "application/json", "", 404, "could not find"),
        ("GET", "/api/v1/services/x/y/z", "application/json", "", 404, "could not find"),
        ("GET", "/nowhere", "application/json", "", 404, "could not find"),
        (
            "POST",
            "/api/v1/namespaces/nowhere/services",
            "application/json",
            '{"metadata":{"name":"a"}}',
            404,
            "nowhere",
        ),
    ],
)
async def test_requests_that_cannot_be_served_get_a_status(client, method, path, kind, body, code, words):
    request = (method, client.api.url + path)
    headers = {"Content-Type": kind}
    async with aiohttp.request(*request, data=body.encode(), headers=headers) as response:
        status = await response.json()
    assert (response.status, status["kind"], status["code"]) == (code, "Status", code)
    assert words in status["message"]


async def test_too_large_a_body_and_an_unwanted_format_are_refused(client):
    large = io.BytesIO(b"x" * (3 * 2**20 + 1))
    headers = {"Content-Type": "application/json"}
    url = client.api.url + IN_DEFAULT
    async with aiohttp.request("POST", url, data=large, headers=headers) as response:
        assert (response.status, (await response.json())["reason"]) == (413, "RequestEntityTooLarge")
    headers = {"Accept": "application/vnd.kubernetes.protobuf"}
    async with aiohttp.request("GET", url, headers=headers) as response:
        assert response.status == 406


async def test_unknown_fields_are_warned_about_or_refused(client):
    async with aiohttp.ClientSession() as session:
        url = client.api.url + IN_DEFAULT
        async with session.post(url, json=service("a", colour="red")) as response:
            assert response.headers["Warning"] == '299 - "unknown field \\"spec.colour\\""'
        async with session.post(
            url, json=service("b", colour="red"), params={"fieldValidation": "Strict"}
        ) as response:
            assert response.status == 400


async def test_endpoints_come_with_the_warning_of_their_deprecation(client):
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"{client.api.url}/api/v1/endpoints") as response,
    ):
        assert "v1 Endpoints is deprecated" in response.headers["Warning"]


async def test_large_lists_are_compressed_only_when_asked(client):
    for number in range(400):
        client.api.apply(service(f"s-{number}"))
    async with aiohttp.ClientSession(auto_decompress=False) as session:
        url = client.api.url + SERVICES
        async with session.get(url, headers={"Accept-Encoding": "identity"}) as response:
            plain = await response.read()
        async with session.get(url, headers={"Accept-Encoding": "gzip"}) as response:
            assert response.headers["Content-Encoding"] == "gzip"
            packed = await response.read()
    assert len(packed) < len(plain) // 4
    assert gzip.decompress(packed) == plain
    assert len(json.loads(plain)["items"]) == 431


async def test_denied_verbs_get_the_recorded_403(client):
    client.api.deny("list", "services")
    status, body = await client.text(SERVICES)
    assert (status, body) == recorded("unauthenticated-403")
    assert (await client.text(f"{IN_DEFAULT}/web"))[0] == 200
    client.api.deny("*", "endpointslices")
    message = json.loads((await client.text("/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices"))[1])[
        "message"
    ]
    assert message == (
        'endpointslices.discovery.k8s.io is forbidden: User "system:anonymous" cannot list resource '
        '"endpointslices" in API group "discovery.k8s.io" in the namespace "shop"'
    )
    client.api.allow("list", "services")
    assert (await client.text(SERVICES))[0] == 200


async def test_tokens_are_asked_for_and_a_rotation_counts_at_once(tmp_path):
    tokens = tmp_path / "token"
    tokens.write_text("first\n", encoding="utf-8")
    api = LocalApi(token_file=tokens)
    async with api, aiohttp.ClientSession() as session:

        async def status(token: str | None) -> int:
            headers = {} if token is None else {"Authorization": f"Bearer {token}"}
            async with session.get(api.url + SERVICES, headers=headers) as response:
                return response.status

        assert [await status(token) for token in ("first", "second", "", None)] == [200, 401, 401, 401]
        tokens.write_text("second\n", encoding="utf-8")
        assert [await status(token) for token in ("first", "second")] == [401, 200]
        api.access.anonymous = True
        assert await status(None) == 403
        async with session.get(
            f"{api.url}/version", headers={"User-Agent": "curl/8", "Authorization": "x"}
        ) as response:
            assert (response.status, await response.text()) == recorded("bad-token-401")


async def test_tls_is_served_and_the_objects_survive_a_restart_on_the_same_port(tmp_path):
    key, certificate = tmp_path / "key.pem", tmp_path / "cert.pem"
    subprocess.run(
        [
            *(
                tool("openssl:openssl"),
                "req",
                "-x509",
                "-newkey",
                "ec",
                "-pkeyopt",
                "ec_paramgen_curve:P-256",
                "-nodes",
            ),
            *("-keyout", key, "-out", certificate, "-days", "1", "-subj", "/CN=127.0.0.1"),
            *("-addext", "subjectAltName=IP:127.0.0.1"),
        ],
        check=True,
        capture_output=True,
    )
    trust = ssl.create_default_context(cafile=str(certificate))
    api = LocalApi(tls=(certificate, key))
    await api.start()
    api.apply(service("kept"))
    port = api.port
    await api.stop()
    async with api, aiohttp.ClientSession() as session:
        assert (api.port, api.url) == (port, f"https://127.0.0.1:{port}")
        async with session.get(f"{api.url}{IN_DEFAULT}/kept", ssl=trust) as response:
            assert (await response.json())["metadata"]["name"] == "kept"


async def test_a_later_run_expires_the_versions_of_an_earlier_one():
    earlier = LocalApi()
    for number in range(5):
        earlier.apply(service(f"s-{number}"))
    assert re.fullmatch(r"\d{11}", str(earlier.store.version))
    later = LocalApi(first_version=earlier.store.version + 1)
    async with (
        later,
        aiohttp.ClientSession() as session,
        Client(later, session).events(SERVICES, resourceVersion=str(earlier.store.version)) as events,
    ):
        kind, status = await events.next()
    assert (kind, status["code"]) == ("ERROR", 410)
