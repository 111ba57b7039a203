"""Merge, JSON and strategic merge patches of Services."""

import copy
from typing import Any

import pytest

from kubedns.local.api.errors import ApiError
from kubedns.local.api.kinds import SERVICES
from kubedns.local.api.patches import apply_patch, merge_patch

_SERVICE: dict[str, Any] = {
    "metadata": {"name": "web", "labels": {"app": "web"}, "finalizers": ["one", "two"]},
    "spec": {
        "selector": {"app": "web"},
        "ports": [
            {"name": "http", "port": 80, "protocol": "TCP"},
            {"name": "dns", "port": 53, "protocol": "UDP"},
            {"name": "dns-tcp", "port": 53, "protocol": "TCP"},
        ],
    },
}


def strategic(patch: Any) -> Any:
    before = copy.deepcopy(_SERVICE)
    result = apply_patch("application/strategic-merge-patch+json", SERVICES.schema, _SERVICE, patch)
    assert before == _SERVICE
    return result


def port_names(value: Any) -> list[str]:
    return [port.get("name") for port in value["spec"]["ports"]]


@pytest.mark.parametrize(
    ("value", "patch", "result"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_merge_patches_follow_the_examples_of_rfc_7386(value, patch, result):
    assert merge_patch(value, patch) == result


def test_strategic_merge_changes_one_port_and_keeps_the_others():
    value = strategic({"spec": {"ports": [{"port": 80, "targetPort": 8080}]}})
    assert value["spec"]["ports"][0] == {"name": "http", "port": 80, "protocol": "TCP", "targetPort": 8080}
    assert port_names(value) == ["http", "dns", "dns-tcp"]


def test_strategic_merge_tells_tcp_from_udp_on_one_port_number():
    value = strategic({"spec": {"ports": [{"port": 53, "protocol": "TCP", "name": "tcp"}]}})
    assert port_names(value) == ["http", "dns", "tcp"]


def test_strategic_merge_adds_deletes_and_orders_ports():
    value = strategic(
        {
            "spec": {
                "$setElementOrder/ports": [{"port": 443}, {"port": 80}],
                "ports": [
                    {"port": 443, "name": "https"},
                    {"port": 53, "protocol": "UDP", "$patch": "delete"},
                ],
            }
        }
    )
    assert port_names(value) == ["https", "http", "dns-tcp"]


def test_strategic_merge_replaces_a_list_or_a_map_when_told_to():
    value = strategic(
        {
            "spec": {
                "ports": [{"port": 1}, {"$patch": "replace"}],
                "selector": {"$patch": "replace", "role": "front"},
            }
        }
    )
    assert value["spec"] == {"ports": [{"port": 1}], "selector": {"role": "front"}}


def test_strategic_merge_deletes_maps_and_retains_keys():
    value = strategic({"metadata": {"labels": {"$patch": "delete"}}, "spec": {"$retainKeys": ["selector"]}})
    assert value["metadata"]["labels"] == {}
    assert value["spec"] == {"selector": {"app": "web"}}


def test_strategic_merge_adds_to_and_deletes_from_plain_lists():
    patch = {"$deleteFromPrimitiveList/finalizers": ["one"], "finalizers": ["three", "two"]}
    assert strategic({"metadata": patch})["metadata"]["finalizers"] == ["two", "three"]


def test_null_removes_a_field():
    assert "selector" not in strategic({"spec": {"selector": None}})["spec"]


@pytest.mark.parametrize(
    "patch", [[], "x", {"spec": {"ports": [{"name": "http"}]}}, {"spec": {"$patch": "explode"}}]
)
def test_strategic_patches_that_make_no_sense_get_400(patch):
    with pytest.raises(ApiError) as refused:
        strategic(patch)
    assert refused.value.code == 400


def test_json_patches_apply_in_order_or_not_at_all():
    def patch(*operations: dict[str, Any]) -> Any:
        return apply_patch("application/json-patch+json", SERVICES.schema, _SERVICE, list(operations))

    replaced = patch({"op": "replace", "path": "/spec/ports/0/port", "value": 81})
    assert replaced["spec"]["ports"][0]["port"] == 81
    assert _SERVICE["spec"]["ports"][0]["port"] == 80
    with pytest.raises(ApiError) as failed_test:
        patch({"op": "test", "path": "/spec/ports/0/port", "value": 1})
    assert failed_test.value.code == 422
    with pytest.raises(ApiError) as malformed:
        patch({"op": "explode", "path": "/spec"})
    assert malformed.value.code == 400


def test_server_side_apply_is_refused_with_a_way_out():
    with pytest.raises(ApiError, match="without --server-side") as refused:
        apply_patch("application/apply-patch+yaml", SERVICES.schema, _SERVICE, {})
    assert refused.value.code == 415


def test_json_patch_that_doubles_the_object_again_and_again_is_refused():
    bomb = [{"op": "copy", "from": "/metadata", "path": f"/metadata/k{number}"} for number in range(28)]
    with pytest.raises(ApiError, match="copies at most"):
        apply_patch("application/json-patch+json", SERVICES.schema, _SERVICE, bomb)
    many = [{"op": "test", "path": "/metadata/name", "value": "web"}] * 10_001
    with pytest.raises(ApiError, match="at most 10000 operations"):
        apply_patch("application/json-patch+json", SERVICES.schema, _SERVICE, many)
