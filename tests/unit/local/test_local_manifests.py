"""Loading manifests: forms that are taken, faults that are named."""

import json
from pathlib import Path

import pytest

from kubedns.local.api.kinds import CONFIG_MAPS, NAMESPACES, SERVICES
from kubedns.local.api.lastapplied import ANNOTATION
from kubedns.local.api.manifests import ManifestError, load_files
from kubedns.local.api.registry import Registry
from kubedns.local.api.store import Store


@pytest.fixture
def registry() -> Registry:
    return Registry(Store(first_version=1))


def write(directory: Path, name: str, text: str) -> Path:
    path = directory / name
    path.write_text(text, encoding="utf-8")
    return path


def test_several_documents_lists_and_directories_are_loaded(registry, tmp_path):
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "b"},
        "spec": {"ports": [{"port": 1}]},
    }
    write(
        tmp_path, "1.yaml", "---\n# nothing\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\n"
    )
    write(tmp_path, "2.json", json.dumps({"apiVersion": "v1", "kind": "List", "items": [service]}))
    typed = {
        "apiVersion": "v1",
        "kind": "ConfigMapList",
        "items": [{"metadata": {"name": "c", "namespace": "x"}}],
    }
    write(tmp_path, "3.yml", json.dumps(typed))
    write(tmp_path, "notes.txt", "not a manifest")
    assert load_files(registry, [tmp_path]) == 3
    assert registry.store.get(CONFIG_MAPS, "default", "a")
    assert registry.store.get(CONFIG_MAPS, "x", "c")
    assert registry.store.get(SERVICES, "default", "b")
    assert registry.store.get(NAMESPACES, "", "x")


def test_a_chosen_cluster_ip_is_not_given_to_a_service_before_it(registry, tmp_path):
    text = "\n---\n".join(
        f"{{apiVersion: v1, kind: Service, metadata: {{name: {name}}}, spec: {{ports: [{{port: 1}}]{ip}}}}}"
        for name, ip in [("any", ""), ("chosen", ", clusterIP: 10.96.1.1")]
    )
    load_files(registry, [write(tmp_path, "a.yaml", text)])
    taken = registry.value(SERVICES, registry.get(SERVICES, "default", "chosen"))["spec"]["clusterIP"]
    free = registry.value(SERVICES, registry.get(SERVICES, "default", "any"))["spec"]["clusterIP"]
    assert (taken, free) == ("10.96.1.1", "10.96.1.2")


def test_unquoted_timestamps_stay_text(registry, tmp_path):
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, creationTimestamp: 2026-11-29T13:34:11Z}\n"
    load_files(registry, [write(tmp_path, "a.yaml", text)])
    value = registry.value(CONFIG_MAPS, registry.get(CONFIG_MAPS, "default", "a"))
    assert value["metadata"]["creationTimestamp"] == "2026-11-29T13:34:11Z"


def annotations(registry: Registry, name: str) -> dict[str, str]:
    value = registry.value(CONFIG_MAPS, registry.get(CONFIG_MAPS, "default", name))
    return dict(value["metadata"].get("annotations", {}))


def test_a_hand_written_manifest_counts_as_applied_by_kubectl(registry, tmp_path):
    text = "{kind: ConfigMap, apiVersion: v1, data: {b: 'a<ü>&', a: ''}, metadata: {name: a}}"
    load_files(registry, [write(tmp_path, "a.yaml", text)])
    assert annotations(registry, "a")[ANNOTATION] == (
        '{"apiVersion":"v1","data":{"a":"","b":"a\\u003cü\\u003e\\u0026"},"kind":"ConfigMap",'
        '"metadata":{"annotations":{},"name":"a","namespace":"default"}}\n'
    )


def test_an_annotation_that_the_file_has_is_made_anew_beside_the_others(registry, tmp_path):
    text = (
        f"{{kind: ConfigMap, apiVersion: v1, metadata: {{name: a, annotations: {{{ANNOTATION}: x, b: c}}}}}}"
    )
    load_files(registry, [write(tmp_path, "a.yaml", text)])
    found = annotations(registry, "a")
    assert found["b"] == "c"
    assert json.loads(found[ANNOTATION])["metadata"]["annotations"] == {"b": "c"}


@pytest.mark.parametrize("recorded", ["uid: u", "resourceVersion: '7'"])
def test_a_recorded_object_stays_as_it_is(registry, tmp_path, recorded):
    text = f"{{kind: ConfigMap, apiVersion: v1, metadata: {{name: a, {recorded}}}}}"
    load_files(registry, [write(tmp_path, "a.yaml", text)])
    assert annotations(registry, "a") == {}


def test_a_manifest_too_large_for_an_annotation_goes_without(registry, tmp_path):
    text = f"{{kind: ConfigMap, apiVersion: v1, metadata: {{name: a}}, data: {{k: {'x' * 300_000}}}}}"
    load_files(registry, [write(tmp_path, "a.yaml", text)])
    assert annotations(registry, "a") == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("kind: [", "a.yaml: document 1: not YAML"),
        ("a: 1\n---\nb: [", "a.yaml: document 2: not YAML"),
        ("a: 1", "a.yaml: document 1: apiVersion is not set"),
        ("[1]", "a.yaml: document 1: not an object but list"),
        (
            "{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: n}}",
            "document 1: Pod n/p: v1 Pod is not served",
        ),
        ("{apiVersion: v1, kind: List, items: [1]}", "document 1: item 1: not an object but int"),
        ("{apiVersion: v1, kind: List, items: 1}", "document 1: items is not a list"),
        (
            "{apiVersion: v1, kind: Service, metadata: {name: s}, spec: {ports: [{port: x}]}}",
            r"document 1: Service s: .*spec.ports\[0\].port",
        ),
        (
            "{apiVersion: v1, kind: ConfigMap, metadata: {}}",
            "document 1: ConfigMap: .*metadata.name: Required value",
        ),
        ("{apiVersion: v1, kind: ConfigMap, metadata: 1}", "document 1: metadata is not an object"),
        (
            "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, annotations: [1]}}",
            "ConfigMap a: .*metadata.annotations",
        ),
        (
            "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {k: 1}}",
            "ConfigMap a: .*field data.k of type",
        ),
        ("\x00", "a.yaml: document 1: not YAML"),
    ],
)
def test_a_fault_is_named_with_file_document_object_and_reason(registry, tmp_path, text, message):
    with pytest.raises(ManifestError, match=message):
        load_files(registry, [write(tmp_path, "a.yaml", text)])


def test_missing_files_and_empty_directories_are_named(registry, tmp_path):
    with pytest.raises(ManifestError, match=r"nothere\.yaml: No such file"):
        load_files(registry, [tmp_path / "nothere.yaml"])
    with pytest.raises(ManifestError, match=r"has no \.yaml, \.yml, \.json files"):
        load_files(registry, [tmp_path])
    with pytest.raises(ManifestError, match="document 1: not JSON"):
        load_files(registry, [write(tmp_path, "a.json", "{")])
