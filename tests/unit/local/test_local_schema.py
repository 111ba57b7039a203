"""The shape of objects: order, omissions, types, unknown fields."""

import pytest

from kubedns.local.api.kinds import ENDPOINT_SLICES, SERVICES
from kubedns.local.api.schema import SchemaError, normalize, unknown_fields


def test_fields_come_in_the_order_of_the_go_structs():
    value = normalize(
        SERVICES.schema,
        {
            "status": {},
            "spec": {
                "type": "ClusterIP",
                "ports": [{"port": 80, "name": "http"}],
                "selector": {"b": "1", "a": "2"},
            },
            "metadata": {"labels": {"z": "1", "a": "2"}, "name": "web"},
        },
    )
    assert list(value) == ["metadata", "spec", "status"]
    assert list(value["spec"]) == ["ports", "selector", "type"]
    assert list(value["spec"]["ports"][0]) == ["name", "port"]
    assert list(value["metadata"]["labels"]) == ["a", "z"]


def test_empty_values_are_left_out_but_structs_and_pointers_stay():
    value = normalize(
        SERVICES.schema,
        {
            "metadata": {"name": "web", "labels": {}, "finalizers": [], "generateName": ""},
            "spec": {
                "publishNotReadyAddresses": False,
                "allocateLoadBalancerNodePorts": False,
                "clusterIP": "",
            },
        },
    )
    assert value == {
        "metadata": {"name": "web"},
        "spec": {"allocateLoadBalancerNodePorts": False},
        "status": {"loadBalancer": {}},
    }


def test_empty_lists_of_a_slice_are_written_as_null():
    value = normalize(ENDPOINT_SLICES.schema, {"metadata": {"name": "s"}, "addressType": "IPv4", "ports": []})
    assert value["endpoints"] is None
    assert value["ports"] is None


def test_normalized_objects_do_not_change_when_normalized_again():
    endpoint = {"addresses": ["10.0.0.1"], "hostname": "a", "conditions": {"ready": None, "serving": True}}
    once = normalize(ENDPOINT_SLICES.schema, {"metadata": {}, "endpoints": [endpoint], "ports": [{}]})
    assert normalize(ENDPOINT_SLICES.schema, once) == once
    assert once["endpoints"][0]["conditions"] == {"serving": True}


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({"spec": {"ports": [{"port": 80}, {"port": "http"}]}}, "spec.ports[1].port"),
        ({"spec": {"ports": {"port": 80}}}, "spec.ports"),
        ({"spec": {"selector": {"app": 1}}}, "spec.selector.app"),
        ({"spec": {"publishNotReadyAddresses": 1}}, "spec.publishNotReadyAddresses"),
        ({"spec": {"ports": [{"port": True}]}}, "spec.ports[0].port"),
        ({"spec": {"ports": [{"port": 2**31}]}}, "spec.ports[0].port"),
        ({"metadata": []}, "metadata"),
    ],
)
def test_a_value_of_the_wrong_type_is_refused_with_its_path(value, path):
    with pytest.raises(SchemaError, match=f"into field {path.replace('[', '.').replace(']', '.')} of type"):
        normalize(SERVICES.schema, value)


def test_unknown_fields_are_named_with_their_paths_and_left_out():
    value = {"metadata": {"name": "x", "nmae": "y"}, "spec": {"ports": [{"prot": 1}]}, "stats": {}}
    assert unknown_fields(SERVICES.schema, value) == ["metadata.nmae", "spec.ports[0].prot", "stats"]
    assert normalize(SERVICES.schema, value)["spec"] == {"ports": [{}]}
