import base64
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kubedns.cluster import project
from kubedns.cluster.project import MalformedError
from kubedns.dns.names import pack_address
from kubedns.objects import Endpoint, EndpointSlice, Port, Service

DATA = Path(__file__).parents[2] / "data" / "apiserver"


def recorded(name: str) -> list[dict[str, Any]]:
    body = (DATA / name).read_bytes().partition(b"\r\n\r\n")[2]
    items: list[dict[str, Any]] = json.loads(body)["items"]
    return items


def service(spec: Any, refused: list[str] | None = None) -> Service:
    return project.service(("shop", "web"), {"spec": spec}, [] if refused is None else refused)


def endpoint_slice(refused: list[str] | None = None, **fields: Any) -> EndpointSlice:
    body = {"metadata": {"labels": {"kubernetes.io/service-name": "web"}}, "addressType": "IPv4", **fields}
    return project.endpoint_slice(("shop", "web-x"), body, [] if refused is None else refused)


def ready(*addresses: str, hostname: str = "") -> Endpoint:
    return Endpoint(tuple(pack_address(text) for text in addresses), hostname)


def test_recorded_services_are_projected_without_refusals():
    refused: list[str] = []
    found = {}
    for item in recorded("services-list.http"):
        key = project.key_of(item)
        found[key] = project.service(key, item, refused)
    assert refused == []
    assert found["default", "kubernetes"] == Service(
        "default", "kubernetes", (pack_address("10.96.0.1"),), ports=(Port("https", "tcp", 443),)
    )
    assert any(one.headless for one in found.values())
    assert any(one.external_name for one in found.values())
    assert any(len(one.cluster_ips) == 2 for one in found.values())


@pytest.mark.parametrize("name", ["endpointslices-list-headless.http", "endpointslices-list-unmanaged.http"])
def test_recorded_slices_are_projected_without_refusals(name):
    refused: list[str] = []
    for item in recorded(name):
        key = project.key_of(item)
        assert project.endpoint_slice(key, item, refused).service
    assert refused == []


def test_cluster_ips_go_before_cluster_ip():
    assert service({"clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.2", "fd00::1"]}).cluster_ips == (
        pack_address("10.0.0.2"),
        pack_address("fd00::1"),
    )
    assert service({"clusterIP": "10.0.0.1"}).cluster_ips == (pack_address("10.0.0.1"),)


@pytest.mark.parametrize("spec", [{"clusterIP": "None"}, {"clusterIPs": ["None"]}])
def test_cluster_ip_none_is_headless(spec):
    assert service(spec) == Service("shop", "web", headless=True)


@pytest.mark.parametrize(
    "spec", [{}, {"clusterIP": ""}, {"clusterIPs": []}, None, 7, "spec", {"clusterIPs": [""]}]
)
def test_service_without_decision_has_nothing(spec):
    assert service(spec) == Service("shop", "web")


def test_external_name_is_kept_as_written():
    spec = {"type": "ExternalName", "externalName": "Up.Example.TEST.", "clusterIP": ""}
    assert service(spec).external_name == "Up.Example.TEST."


def test_external_name_of_a_wrong_type_is_refused_with_the_reason():
    refused: list[str] = []
    assert service({"type": "ExternalName", "externalName": 5}, refused) == Service("shop", "web")
    assert refused == ["externalName 5 is not a name"]


def test_ports_without_name_or_number_are_left_out_silently():
    refused: list[str] = []
    ports = [
        {"port": 80},
        {"name": "", "port": 81},
        {"name": None, "port": 82},
        {"name": "any", "port": None},
    ]
    assert service({"clusterIP": "10.0.0.1", "ports": ports}, refused).ports == ()
    assert refused == []


@pytest.mark.parametrize(
    ("protocol", "kept"), [("TCP", "tcp"), ("UDP", "udp"), ("SCTP", "sctp"), (None, "tcp")]
)
def test_protocols(protocol, kept):
    port = {"name": "dns", "port": 53, "protocol": protocol}
    assert service({"ports": [port]}).ports == (Port("dns", kept, 53),)


def test_port_without_protocol_is_tcp():
    assert service({"ports": [{"name": "dns", "port": 53}]}).ports == (Port("dns", "tcp", 53),)


@pytest.mark.parametrize(
    "port",
    [
        {"name": "a.b", "port": 80},
        {"name": "UPPER", "port": 80},
        {"name": "x" * 64, "port": 80},
        {"name": ["x"], "port": 80},
        {"name": "web", "port": "80"},
        {"name": "web", "port": True},
        {"name": "web", "port": 0},
        {"name": "web", "port": 65536},
        {"name": "web", "port": 80, "protocol": "HTTP"},
        {"name": "web", "port": 80, "protocol": {}},
        "web",
        None,
    ],
)
def test_port_that_cannot_be_used_is_named_and_the_rest_kept(port):
    refused: list[str] = []
    good = {"name": "ok", "port": 81}
    assert service({"clusterIP": "10.0.0.1", "ports": [port, good]}, refused).ports == (
        Port("ok", "tcp", 81),
    )
    assert len(refused) == 1


def test_equal_sets_of_ports_are_one_object():
    spec = {"ports": [{"name": "http", "port": 80}, {"name": "grpc", "port": 90}]}
    assert service(spec).ports is service(json.loads(json.dumps(spec))).ports


@pytest.mark.parametrize(
    ("conditions", "published"),
    [
        (None, True),
        ({}, True),
        ({"ready": None}, True),
        ({"ready": True}, True),
        ({"ready": False}, False),
        ({"ready": False, "serving": True, "terminating": True}, False),
        ({"ready": True, "serving": False, "terminating": True}, True),
        ({"ready": "true"}, False),
        ([], True),
    ],
)
def test_only_ready_endpoints_are_kept(conditions, published):
    made = endpoint_slice(endpoints=[{"addresses": ["10.1.0.1"], "conditions": conditions}])
    assert made.endpoints == ((ready("10.1.0.1"),) if published else ())


def test_endpoint_that_comes_twice_is_kept_once_so_that_it_can_go_at_once():
    twice = [{"addresses": ["10.0.0.1"]}, {"addresses": ["10.0.0.2"]}, {"addresses": ["10.0.0.1"]}]
    assert endpoint_slice(endpoints=twice).endpoints == (ready("10.0.0.1"), ready("10.0.0.2"))


def test_slice_of_address_type_fqdn_has_no_endpoints():
    assert endpoint_slice(addressType="FQDN", endpoints=[{"addresses": ["a.example"]}]).endpoints == ()


def test_hostname_that_is_no_label_is_refused_and_the_address_kept():
    refused: list[str] = []
    made = endpoint_slice(refused, endpoints=[{"addresses": ["10.1.0.1"], "hostname": "No.Label"}])
    assert made.endpoints == (ready("10.1.0.1"),)
    assert refused == ["hostname 'No.Label' is not a DNS label"]


@pytest.mark.parametrize(
    "address", ["0x10.1.0.1", "10.1.0", "fe80::1%eth0", "", 167772161, None, "10.1.0.1 ", "10.1.0.1\x00", "ä"]
)
def test_address_that_is_none_is_refused_and_the_others_kept(address):
    refused: list[str] = []
    made = endpoint_slice(refused, endpoints=[{"addresses": [address, "10.1.0.2"]}, {"addresses": [address]}])
    assert made.endpoints == (ready("10.1.0.2"),)
    assert len(refused) == 2


@pytest.mark.parametrize("ports", [None, [], [{"name": "any", "port": None}]])
def test_slice_without_ports_keeps_its_endpoints(ports):
    made = endpoint_slice(ports=ports, endpoints=[{"addresses": ["10.1.0.1"], "hostname": "a"}])
    assert made.endpoints == (ready("10.1.0.1", hostname="a"),)
    assert made.ports == ()


@pytest.mark.parametrize("labels", [None, {}, [], {"kubernetes.io/service-name": "Not.A.Label"}])
def test_slice_of_no_service(labels):
    body = {"metadata": {"labels": labels}}
    assert project.endpoint_slice(("shop", "x"), body, []).service == ""


def test_key_needs_namespace_and_name():
    assert project.key_of({"metadata": {"namespace": "shop", "name": "web"}}) == ("shop", "web")
    for metadata in (
        None,
        {},
        {"name": "web"},
        {"namespace": "shop"},
        {"namespace": "a.b", "name": "web"},
        "x",
    ):
        with pytest.raises(MalformedError):
            project.key_of({"metadata": metadata})


def test_service_whose_name_is_no_label_is_malformed():
    with pytest.raises(MalformedError, match=r"'a\.b'.*not a DNS label"):
        project.service(("shop", "a.b"), {}, [])


def test_config_data_takes_text_and_binary():
    refused: list[str] = []
    body = {
        "data": {"stubDomains": "{}", "odd": 5},
        "binaryData": {"bin": base64.b64encode(b"\xff\x00").decode(), "bad": "%%%", "worse": 7},
    }
    assert project.config_data(("kube-system", "kube-dns"), body, refused) == {
        "stubDomains": b"{}",
        "bin": b"\xff\x00",
    }
    assert len(refused) == 3


@pytest.mark.parametrize(
    ("text", "number"), [("12", 12), ("", 0), ("None", 0), ("-1", 0), ("9" * 30, 0), ("٣", 0)]
)
def test_version_number(text, number):
    assert project.version_number(text) == number


TEXTS = ["", "web", "A.b", "10.0.0.1", "::1", "None", "TCP", "\x00", "\u00e9", "7"]
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.sampled_from(TEXTS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(TEXTS), inner, max_size=3),
    max_leaves=6,
)
FIELDS = [
    "metadata", "spec", "labels", "ports", "endpoints", "addresses", "conditions", "hostname", "clusterIPs",
    "clusterIP", "type", "externalName", "name", "namespace", "port", "protocol", "ready", "data", "binaryData",
    "addressType", "resourceVersion",
]  # fmt: skip
known_shapes = st.recursive(
    json_values,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=5),
    max_leaves=8,
)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(st.sampled_from(FIELDS), known_shapes))
def test_no_shape_of_json_raises_anything_but_malformed(body):
    for make in (project.service, project.endpoint_slice, project.config_data):
        make(("shop", "web"), body, [])
    project.version_number(project.version_text(body))
    try:
        project.key_of(body)
    except MalformedError as error:
        assert str(error)  # noqa: PT017 - what is raised is beside the point, but it must explain itself


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("10.096.000.020", bytes((10, 96, 0, 20))),
        ("::ffff:10.244.1.11", bytes((10, 244, 1, 11))),
        ("2001:db8::1", b"\x20\x01\x0d\xb8" + bytes(11) + b"\1"),
    ],
)
def test_addresses_of_old_objects_are_read_as_they_were_meant(text, address):
    assert project._addresses([text], "address", []) == (address,)


@pytest.mark.parametrize(
    "text", ["10.96.0.256", "10.96.0", "0x7f.0.0.1", "1.2.3.4.5", "10.0960.0.1", "٣.1.1.1"]
)
def test_what_is_no_address_stays_refused(text):
    refused: list[str] = []
    assert project._addresses([text], "address", refused) == ()
    assert len(refused) == 1
