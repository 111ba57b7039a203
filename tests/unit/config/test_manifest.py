"""A ConfigMap's manifest, as `--check-config` reads it."""

import json

import pytest

from kubedns.config.check import check_config
from kubedns.config.manifest import ManifestError, read_manifest
from kubedns.shared.config import InvalidConfigError

STUBS = '{"corp.test": ["192.0.2.9"]}'


def manifest(name: str = "kube-dns", **data: object) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def as_yaml(*objects: object) -> str:
    return "\n---\n".join(map(json.dumps, objects))


@pytest.mark.parametrize(
    "text",
    [
        as_yaml(manifest("any", stubDomains=STUBS)),
        as_yaml({"kind": "Service"}, manifest("any", stubDomains=STUBS)),
        as_yaml(manifest("other", x="y"), manifest(stubDomains=STUBS)),
        as_yaml({"kind": "List", "items": [manifest("any", stubDomains=STUBS)]}),
        f"# a comment\nkind: ConfigMap\ndata:\n  stubDomains: |\n    {STUBS}\n",
        as_yaml(
            {"kind": "ConfigMap", "binaryData": {"stubDomains": "eyJjb3JwLnRlc3QiOiBbIjE5Mi4wLjIuOSJdfQ=="}}
        ),
    ],
)
def test_keys_are_those_of_the_config_map(tmp_path, text):
    path = tmp_path / "manifest.yaml"
    path.write_text(text)
    assert {key: value.strip() for key, value in read_manifest(str(path)).items()} == {
        "stubDomains": STUBS.encode()
    }
    assert check_config(str(path), "cluster.local.") == 0


def test_config_map_without_data_has_no_keys(tmp_path):
    path = tmp_path / "manifest.yaml"
    path.write_text("kind: ConfigMap\ndata:\n")
    assert read_manifest(str(path)) == {}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a: [", "neither YAML nor JSON"),
        ("\x00", "neither YAML nor JSON"),
        ("kind: Service", "it has: none"),
        ("", "it has: none"),
        (as_yaml(manifest("a"), manifest("b")), "it has: a, b"),
        ("kind: ConfigMap\ndata: [1]", "must be an object"),
    ],
)
def test_file_without_a_config_map_to_check_is_refused(tmp_path, text, reason):
    path = tmp_path / "manifest.yaml"
    path.write_text(text)
    with pytest.raises(ManifestError, match=reason):
        read_manifest(str(path))


def test_json_that_is_not_text_is_refused_with_the_way_to_write_it(tmp_path):
    path = tmp_path / "manifest.yaml"
    path.write_text(as_yaml(manifest(stubDomains={"corp.test": ["192.0.2.9"]})))
    with pytest.raises(InvalidConfigError, match=r"stubDomains: must be text; .*stubDomains: \|"):
        read_manifest(str(path))


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("stubdomains", "{}", "did you mean stubDomains"),
        ("stubDomains", '{"corp.test": []}', "no servers"),
        ("stubDomains", "corp.test: 192.0.2.9", "it is YAML"),
    ],
)
def test_mistake_that_the_server_would_let_pass_is_an_error(tmp_path, capsys, key, value, said):
    path = tmp_path / "manifest.yaml"
    path.write_text(as_yaml(manifest(**{key: value})))
    assert check_config(str(path), "cluster.local.") == 1
    assert said in capsys.readouterr().err
