"""Create, update, patch and delete as a real server does them."""

from collections.abc import Callable
from typing import Any

import pytest

from kubedns.local.api.errors import ApiError
from kubedns.local.api.intake import Write
from kubedns.local.api.kinds import CONFIG_MAPS, ENDPOINT_SLICES, NAMESPACES, NODES, SERVICES, Resource
from kubedns.local.api.registry import Preconditions, Registry
from kubedns.local.api.store import Store

Value = dict[str, Any]


@pytest.fixture
def registry() -> Registry:
    registry = Registry(Store(first_version=1))
    registry.ensure_namespace("default")
    return registry


def service(name: str = "web", metadata: Value | None = None, **spec: Any) -> Value:
    return {"metadata": {"name": name, **(metadata or {})}, "spec": {"ports": [{"port": 80}], **spec}}


def slice_(name: str = "web-x", **fields: Any) -> Value:
    return {
        "metadata": {"name": name},
        "addressType": "IPv4",
        "endpoints": [{"addresses": ["10.0.0.1"]}],
        "ports": [{"port": 80}],
        **fields,
    }


def create(
    registry: Registry, body: Value, resource: Resource = SERVICES, namespace: str = "default", **how: bool
) -> Value:
    return registry.value(
        resource,
        registry.create(
            resource,
            namespace,
            body,
            Write(dry_run=how.get("dry_run", False), strict=how.get("strict", False)),
        ),
    )


def update(registry: Registry, body: Value, resource: Resource = SERVICES) -> Value:
    entry, _ = registry.update(resource, "default", body["metadata"]["name"], body, Write())
    return registry.value(resource, entry)


def refusal(call: Callable[..., Any], *args: Any, **kwargs: Any) -> ApiError:
    with pytest.raises(ApiError) as refused:
        call(*args, **kwargs)
    return refused.value


def test_a_plain_service_is_completed_as_a_real_server_does(registry):
    created = create(registry, service())
    assert created["spec"] == {
        "ports": [{"protocol": "TCP", "port": 80, "targetPort": 80}],
        "clusterIP": "10.96.1.1",
        "clusterIPs": ["10.96.1.1"],
        "type": "ClusterIP",
        "sessionAffinity": "None",
        "ipFamilies": ["IPv4"],
        "ipFamilyPolicy": "SingleStack",
        "internalTrafficPolicy": "Cluster",
    }
    assert created["status"] == {"loadBalancer": {}}
    assert list(created["metadata"]) == ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"]


@pytest.mark.parametrize(
    ("spec", "families", "policy", "addresses"),
    [
        ({"ipFamilyPolicy": "PreferDualStack"}, ["IPv4", "IPv6"], "PreferDualStack", 2),
        ({"ipFamilies": ["IPv6"]}, ["IPv6"], "SingleStack", 1),
        ({"clusterIP": "fd00::1"}, ["IPv6"], "SingleStack", 1),
        ({"clusterIP": "None"}, ["IPv4", "IPv6"], "RequireDualStack", 1),
        ({"clusterIP": "None", "selector": {"a": "b"}}, ["IPv4"], "SingleStack", 1),
        (
            {"clusterIP": "fd00::1", "clusterIPs": ["fd00::1"], "ipFamilyPolicy": "RequireDualStack"},
            ["IPv6", "IPv4"],
            "RequireDualStack",
            2,
        ),
    ],
)
def test_families_follow_policy_addresses_and_headlessness(registry, spec, families, policy, addresses):
    made = create(registry, service(**spec))["spec"]
    assert (made["ipFamilies"], made["ipFamilyPolicy"], len(made["clusterIPs"])) == (
        families,
        policy,
        addresses,
    )
    assert made["clusterIP"] == made["clusterIPs"][0]


def test_explicit_addresses_are_kept_and_conflicts_refused_until_they_are_free(registry):
    create(registry, service("one", clusterIP="10.7.7.7"))
    problem = refusal(create, registry, service("two", clusterIP="10.7.7.7"))
    assert problem.code == 422
    assert "10.7.7.7: provided IP is already allocated" in problem.message
    registry.delete(SERVICES, "default", "one", Preconditions(), Write())
    assert create(registry, service("two", clusterIP="10.7.7.7"))["spec"]["clusterIP"] == "10.7.7.7"


def test_a_dry_run_leaves_no_trace(registry):
    version = registry.store.version
    shown = create(registry, service(clusterIP="10.7.7.7"), dry_run=True)
    assert shown["spec"]["clusterIP"] == "10.7.7.7"
    assert registry.store.version == version
    create(registry, service("other", clusterIP="10.7.7.7"))
    registry.delete(SERVICES, "default", "other", Preconditions(), Write(dry_run=True))
    assert registry.store.get(SERVICES, "default", "other") is not None


def test_node_ports_are_allocated_kept_and_refused(registry):
    made = create(registry, service(type="NodePort"))
    number = made["spec"]["ports"][0]["nodePort"]
    assert 30000 <= number <= 32767
    taken = refusal(
        create, registry, service("two", type="NodePort", ports=[{"port": 1, "nodePort": number}])
    )
    assert "provided port is already allocated" in taken.message
    assert update(registry, service(type="NodePort"))["spec"]["ports"][0]["nodePort"] == number
    assert "nodePort" not in update(registry, service())["spec"]["ports"][0]
    assert (
        "may not be used"
        in refusal(create, registry, service("c", ports=[{"port": 1, "nodePort": 30000}])).message
    )


def test_an_update_keeps_what_the_server_allocated(registry):
    made = create(registry, service())
    changed = update(registry, service(metadata={"labels": {"a": "b"}}))
    assert changed["spec"] == made["spec"]
    assert changed["metadata"]["uid"] == made["metadata"]["uid"]
    assert changed["metadata"]["resourceVersion"] != made["metadata"]["resourceVersion"]


def test_an_update_that_changes_nothing_makes_no_new_version(registry):
    made = create(registry, service())
    version = registry.store.version
    assert update(registry, made) == made
    assert registry.store.version == version


def test_an_update_from_an_older_version_is_a_conflict(registry):
    made = create(registry, service())
    update(registry, service(metadata={"labels": {"a": "b"}}))
    problem = refusal(update, registry, made)
    assert (problem.code, problem.reason) == (409, "Conflict")
    assert problem.message == (
        'Operation cannot be fulfilled on services "web": the object has been modified; please apply your '
        "changes to the latest version and try again"
    )


def test_a_cluster_ip_may_not_change_but_the_type_may(registry):
    create(registry, service())
    problem = refusal(update, registry, service(clusterIP="None"))
    assert problem.code == 422
    assert "spec.clusterIPs[0]" in problem.message
    assert "may not change once set" in problem.message
    external = update(registry, service(type="ExternalName", externalName="web.example.", ports=[]))
    assert external["spec"] == {
        "type": "ExternalName",
        "externalName": "web.example.",
        "sessionAffinity": "None",
    }
    assert update(registry, service())["spec"]["clusterIP"]


def test_a_dual_stack_service_becomes_single_stack_and_back(registry):
    both = create(registry, service(ipFamilyPolicy="RequireDualStack"))["spec"]
    first = both["clusterIPs"][0]
    single = registry.patch(
        SERVICES,
        "default",
        "web",
        ("application/merge-patch+json", {"spec": {"ipFamilyPolicy": "SingleStack"}}),
        Write(),
    )
    assert registry.value(SERVICES, single)["spec"]["clusterIPs"] == [first]
    again = update(registry, service(ipFamilyPolicy="PreferDualStack", ipFamilies=["IPv4", "IPv6"]))["spec"]
    assert again["clusterIPs"][0] == first
    assert len(again["clusterIPs"]) == 2


def test_generate_name_makes_a_new_name_each_time(registry):
    body = {"metadata": {"generateName": "web-"}, "data": {}}
    names = {create(registry, body, CONFIG_MAPS)["metadata"]["name"] for _ in range(5)}
    assert len(names) == 5
    assert all(name.startswith("web-") and len(name) == 9 for name in names)


def test_a_generation_counts_changes_of_content_and_labels_only(registry):
    assert create(registry, slice_(), ENDPOINT_SLICES)["metadata"]["generation"] == 1
    annotated = slice_(metadata={"name": "web-x", "annotations": {"a": "b"}})
    assert update(registry, annotated, ENDPOINT_SLICES)["metadata"]["generation"] == 1
    assert update(registry, slice_(endpoints=[]), ENDPOINT_SLICES)["metadata"]["generation"] == 2
    labelled = slice_(endpoints=[], metadata={"name": "web-x", "labels": {"a": "b"}})
    assert update(registry, labelled, ENDPOINT_SLICES)["metadata"]["generation"] == 3


def test_a_slice_gets_names_and_protocols_for_its_ports(registry):
    made = create(registry, slice_(), ENDPOINT_SLICES)
    assert made["ports"] == [{"name": "", "protocol": "TCP", "port": 80}]
    assert made["endpoints"] == [{"addresses": ["10.0.0.1"], "conditions": {}}]


def test_status_changes_only_through_its_subresource(registry):
    create(registry, service(type="LoadBalancer"))
    ingress = {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}
    body = {**service(type="LoadBalancer"), "status": ingress}
    assert update(registry, body)["status"] == {"loadBalancer": {}}
    entry, _ = registry.update(SERVICES, "default", "web", {**body, "spec": {}}, Write(), status=True)
    changed = registry.value(SERVICES, entry)
    assert changed["status"] == ingress
    assert changed["spec"]["type"] == "LoadBalancer"


def test_put_creates_services_but_not_config_maps(registry):
    _, created = registry.update(SERVICES, "default", "new", service("new"), Write())
    assert created
    assert (
        refusal(registry.update, CONFIG_MAPS, "default", "c", {"metadata": {"name": "c"}}, Write()).code
        == 404
    )


def test_a_missing_namespace_is_404_and_a_taken_name_409(registry):
    missing = refusal(create, registry, service(), namespace="nowhere")
    assert (missing.code, missing.message) == (404, 'namespaces "nowhere" not found')
    create(registry, service())
    taken = refusal(create, registry, service())
    assert (taken.code, taken.reason, taken.message) == (
        409,
        "AlreadyExists",
        'services "web" already exists',
    )


def test_a_namespace_takes_its_content_along(registry):
    create(registry, {"metadata": {"name": "shop"}}, NAMESPACES, "")
    create(registry, service(clusterIP="10.1.1.1"), namespace="shop")
    create(registry, slice_(), ENDPOINT_SLICES, "shop")
    registry.delete(NAMESPACES, "", "shop", Preconditions(), Write())
    assert registry.store.entries(SERVICES, "shop") == registry.store.entries(ENDPOINT_SLICES, "shop") == []
    assert create(registry, service("free", clusterIP="10.1.1.1"))


def test_the_default_namespace_stays(registry):
    assert refusal(registry.delete, NAMESPACES, "", "default", Preconditions(), Write()).code == 403


def test_preconditions_of_a_deletion_are_checked(registry):
    made = create(registry, service())["metadata"]
    for wanted in (Preconditions(uid="other"), Preconditions(version="1")):
        assert refusal(registry.delete, SERVICES, "default", "web", wanted, Write()).code == 409
    registry.delete(SERVICES, "default", "web", Preconditions(made["uid"], made["resourceVersion"]), Write())
    assert refusal(registry.get, SERVICES, "default", "web").code == 404


def test_unknown_fields_are_refused_when_strict_and_named_otherwise(registry):
    body = service(colour="red")
    assert (
        'strict decoding error: unknown field "spec.colour"'
        in refusal(create, registry, body, strict=True).message
    )
    write = Write()
    entry = registry.create(SERVICES, "default", body, write)
    assert write.warnings == ['unknown field "spec.colour"']
    assert "colour" not in registry.value(SERVICES, entry)["spec"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (service("1web"), "metadata.name"),
        (service("Web"), "metadata.name"),
        (service("w" * 64), "metadata.name"),
        (service(""), "metadata.name"),
        (service(ports=[]), "spec.ports"),
        (service(ports=[{"port": 0}]), "spec.ports[0].port"),
        (service(ports=[{"port": 70000}]), "spec.ports[0].port"),
        (service(ports=[{"port": 1}, {"port": 2}]), "spec.ports[0].name"),
        (service(ports=[{"name": "a", "port": 1}, {"name": "a", "port": 2}]), "spec.ports[1].name"),
        (service(ports=[{"name": "a", "port": 1}, {"name": "b", "port": 1}]), "spec.ports[1]"),
        (service(ports=[{"port": 1, "protocol": "tcp"}]), "spec.ports[0].protocol"),
        (service(type="Cluster"), "spec.type"),
        (service(type="ExternalName"), "spec.externalName"),
        (service(type="ExternalName", externalName="a..b"), "spec.externalName"),
        (service(type="ExternalName", externalName="a.b", clusterIP="10.0.0.1"), "spec.clusterIPs"),
        (service(clusterIP="10.0.0.300"), "spec.clusterIPs[0]"),
        (service(clusterIPs=["10.0.0.3"]), "spec.clusterIPs"),
        (service(ipFamilies=["IPv4", "IPv6"]), "spec.ipFamilyPolicy"),
        (service(ipFamilyPolicy="Dual"), "spec.ipFamilyPolicy"),
        (service(clusterIP="10.0.0.1", ipFamilies=["IPv6"]), "spec.clusterIPs[0]"),
        (service(externalTrafficPolicy="Local"), "spec.externalTrafficPolicy"),
        (service(metadata={"labels": {"a": "b c"}}), "metadata.labels"),
    ],
)
def test_services_that_a_real_server_refuses_get_422_naming_the_field(registry, body, field):
    problem = refusal(create, registry, body)
    assert (problem.code, problem.reason) == (422, "Invalid")
    assert field in [cause["field"] for cause in problem.body["details"]["causes"]]
    assert problem.message.startswith(f'Service "{body["metadata"]["name"]}" is invalid: ')


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"addressType": ""}, "addressType"),
        ({"addressType": "IPv5"}, "addressType"),
        ({"endpoints": [{"addresses": []}]}, "endpoints[0].addresses"),
        ({"endpoints": [{"addresses": ["fd00::1"]}]}, "endpoints[0].addresses[0]"),
        ({"endpoints": [{"addresses": ["10.0.0.1"], "hostname": "db.0"}]}, "endpoints[0].hostname"),
        ({"ports": [{"name": "a"}, {"name": "a"}]}, "ports"),
        ({"endpoints": [{"addresses": ["10.0.0.1"]}] * 1001}, "endpoints"),
    ],
)
def test_slices_that_a_real_server_refuses_get_422_naming_the_field(registry, fields, field):
    problem = refusal(create, registry, slice_(**fields), ENDPOINT_SLICES)
    assert problem.code == 422
    assert field in [cause["field"] for cause in problem.body["details"]["causes"]]
    assert problem.message.startswith('EndpointSlice.discovery.k8s.io "web-x" is invalid: ')


def test_the_address_type_of_a_slice_does_not_change(registry):
    create(registry, slice_(), ENDPOINT_SLICES)
    problem = refusal(update, registry, slice_(addressType="IPv6", endpoints=[]), ENDPOINT_SLICES)
    assert "addressType: Invalid value" in problem.message


def test_an_immutable_config_map_stays(registry):
    body = {"metadata": {"name": "c"}, "immutable": True, "data": {"a": "b"}}
    create(registry, body, CONFIG_MAPS)
    assert refusal(update, registry, {**body, "data": {"a": "c"}}, CONFIG_MAPS).code == 422


def test_a_node_gets_the_status_of_one_that_never_reported(registry):
    node = create(registry, {"metadata": {"name": "n"}}, NODES, "")
    assert node["status"]["daemonEndpoints"] == {"kubeletEndpoint": {"Port": 0}}
    assert node["status"]["nodeInfo"]["kubeletVersion"] == ""


def test_a_loaded_object_keeps_what_a_dump_says_and_may_change_its_cluster_ip(registry):
    dumped = service(
        metadata={"namespace": "elsewhere", "uid": "u-1", "resourceVersion": "77"}, clusterIP="10.0.0.5"
    )
    entry = registry.load(SERVICES, dumped, keep_version=True)
    assert registry.store.version >= 77
    assert (entry.version, registry.value(SERVICES, entry)["metadata"]["uid"]) == (77, "u-1")
    assert registry.store.get(NAMESPACES, "", "elsewhere") is not None
    headless = registry.value(SERVICES, registry.load(SERVICES, service(clusterIP="None")))
    registry.load(SERVICES, service(clusterIP="10.0.0.6"))
    assert headless["spec"]["clusterIPs"] == ["None"]
