"""What the manifests promise: availability, the restricted profile, least rights, truthful probes.

Source: the Pod Security Standards (profile `restricted`), and faults of such add-ons in the field.
"""

import re

import pytest

from tests.deploy.manifests import DOORS, RENDERED, Manifest, container, one, pod_spec, render

CONTAINERS = ("kubedns", "dnsmasq", "healthz")
SELECTOR = {"k8s-app": "kube-dns"}


@pytest.fixture(params=RENDERED, ids=lambda directory: directory or "base")
def directory(request) -> str:
    found: str = request.param
    return found


@pytest.fixture
def objects(directory: str) -> list[Manifest]:
    return render(directory)


@pytest.fixture
def door(directory: str) -> int:
    """The pod's port that clients ask."""
    return DOORS[directory]


def flags(manifest: Manifest) -> dict[str, str]:
    """Return the `--name=value` arguments of a container, names without dashes."""
    pairs = [argument.lstrip("-").partition("=") for argument in manifest["args"]]
    return {name: value for name, _, value in pairs}


def seconds(duration: str) -> int:
    assert re.fullmatch(r"\d+s", duration)
    return int(duration[:-1])


def test_the_deployment_has_the_three_containers_and_the_label_dashboards_expect(objects) -> None:
    deployment = one(objects, "Deployment")
    assert [it["name"] for it in pod_spec(objects)["containers"]] == list(CONTAINERS)
    assert deployment["spec"]["selector"]["matchLabels"] == SELECTOR
    assert deployment["spec"]["template"]["metadata"]["labels"].items() >= SELECTOR.items()


def test_everything_namespaced_lies_in_kube_system(objects) -> None:
    cluster_wide = {"ClusterRole", "ClusterRoleBinding"}
    for manifest in objects:
        expected = None if manifest["kind"] in cluster_wide else "kube-system"
        assert manifest["metadata"].get("namespace") == expected, manifest["metadata"]["name"]


# Availability


def test_a_rollout_never_lowers_the_number_of_ready_pods(objects) -> None:
    rolling = one(objects, "Deployment")["spec"]["strategy"]["rollingUpdate"]
    assert rolling["maxUnavailable"] == 0
    assert rolling["maxSurge"] != 0


def test_replicas_are_at_least_two_or_left_to_the_autoscaler(objects) -> None:
    autoscaled = any(it["metadata"]["name"] == "kube-dns-autoscaler" for it in objects)
    replicas = one(objects, "Deployment")["spec"].get("replicas")
    assert replicas is None if autoscaled else replicas >= 2


def test_replicas_spread_by_preference_so_that_one_node_is_enough(objects) -> None:
    spec = pod_spec(objects)
    anti_affinity = spec["affinity"]["podAntiAffinity"]
    assert "requiredDuringSchedulingIgnoredDuringExecution" not in anti_affinity
    (preferred,) = anti_affinity["preferredDuringSchedulingIgnoredDuringExecution"]
    assert preferred["podAffinityTerm"]["topologyKey"] == "kubernetes.io/hostname"
    assert preferred["podAffinityTerm"]["labelSelector"]["matchLabels"] == SELECTOR
    assert {it["whenUnsatisfiable"] for it in spec["topologySpreadConstraints"]} == {"ScheduleAnyway"}
    assert not any("hostPort" in port for it in spec["containers"] for port in it["ports"])


def test_a_drain_takes_one_pod_at_a_time_and_is_not_held_up_by_a_broken_one(objects) -> None:
    budget = one(objects, "PodDisruptionBudget")["spec"]
    assert budget["maxUnavailable"] == 1
    assert budget["selector"]["matchLabels"] == SELECTOR
    assert budget["unhealthyPodEvictionPolicy"] == "AlwaysAllow"


def test_pods_are_critical_and_run_on_control_plane_nodes_too(objects) -> None:
    spec = pod_spec(objects)
    assert spec["priorityClassName"] == "system-cluster-critical"
    keys = {toleration["key"] for toleration in spec["tolerations"]}
    assert {"CriticalAddonsOnly", "node-role.kubernetes.io/control-plane"} <= keys


def test_the_grace_period_outlasts_every_lame_duck_and_whoever_is_at_the_door_goes_first(
    objects, door
) -> None:
    kubedns = seconds(flags(container(objects, "kubedns"))["lame-duck"])
    nanny = seconds(flags(container(objects, "dnsmasq"))["lameDuck"])
    first, last = (nanny, kubedns) if door == 53 else (kubedns, nanny)
    assert 5 <= first < last < 20
    assert last + 10 <= pod_spec(objects)["terminationGracePeriodSeconds"]


def test_the_pod_resolves_by_the_nodes_resolvers_and_not_by_itself(objects) -> None:
    assert pod_spec(objects)["dnsPolicy"] == "Default"


# Security


def test_the_pod_meets_the_restricted_profile(objects) -> None:
    for manifest in (it for it in objects if it["kind"] == "Deployment"):
        spec = manifest["spec"]["template"]["spec"]
        assert not {"hostNetwork", "hostPID", "hostIPC"} & spec.keys()
        assert spec["securityContext"]["runAsNonRoot"] is True
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        allowed_volumes = {"configMap", "emptyDir", "projected", "secret", "downwardAPI"}
        for volume in spec.get("volumes", []):
            assert volume.keys() - {"name"} <= allowed_volumes
        for it in spec["containers"]:
            context = it["securityContext"]
            assert context["allowPrivilegeEscalation"] is False
            assert context["capabilities"] == {"drop": ["ALL"]}
            assert context["readOnlyRootFilesystem"] is True
            assert not {"privileged", "procMount", "runAsUser"} & context.keys()


def test_all_containers_run_as_one_unprivileged_user_and_bind_port_53_by_sysctl(objects) -> None:
    context = pod_spec(objects)["securityContext"]
    assert (context["runAsUser"], context["runAsGroup"]) == (1001, 1001)
    assert context["sysctls"] == [{"name": "net.ipv4.ip_unprivileged_port_start", "value": "53"}]


def test_only_kubedns_gets_a_token(objects) -> None:
    assert one(objects, "ServiceAccount")["automountServiceAccountToken"] is False
    assert pod_spec(objects)["automountServiceAccountToken"] is False
    holders = [
        it["name"]
        for it in pod_spec(objects)["containers"]
        if any("serviceaccount" in mount["mountPath"] for mount in it.get("volumeMounts", []))
    ]
    assert holders == ["kubedns"]


def test_the_role_is_the_least_that_dns_needs(objects) -> None:
    role = one(objects, "ClusterRole", "system:kube-dns-addon")
    rights = {
        (group, resource): set(rule["verbs"])
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
    nodes = rights.pop(("", "nodes"), None)
    assert rights == {
        ("", "services"): {"list", "watch"},
        ("discovery.k8s.io", "endpointslices"): {"list", "watch"},
    }
    assert nodes in (None, {"list"})
    assert not any("*" in str(rule) for rule in role["rules"])
    binding = one(objects, "ClusterRoleBinding", "system:kube-dns-addon")
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "kube-dns", "namespace": "kube-system"}]


def test_nodes_may_be_listed_in_the_federation_overlay_only() -> None:
    for directory in RENDERED:
        role = one(render(directory), "ClusterRole", "system:kube-dns-addon")
        reads_nodes = any("nodes" in rule["resources"] for rule in role["rules"])
        assert reads_nodes == directory.endswith("federation"), directory


def test_the_service_account_of_the_pod_is_the_shipped_one(objects) -> None:
    assert pod_spec(objects)["serviceAccountName"] == one(objects, "ServiceAccount")["metadata"]["name"]


def test_the_network_policy_lets_in_at_both_doors_and_out_to_servers_and_the_api() -> None:
    objects = render("overlays/network-policy")
    policy = one(objects, "NetworkPolicy")["spec"]
    assert policy["podSelector"]["matchLabels"] == SELECTOR
    assert set(policy["policyTypes"]) == {"Ingress", "Egress"}
    dns, metrics = policy["ingress"]
    asked = {(port["protocol"], port["port"]) for port in dns["ports"]}
    assert asked == {(protocol, port) for protocol in ("UDP", "TCP") for port in (53, 10053)}
    assert "from" not in dns, "nodes ask too"
    assert {port["port"] for port in metrics["ports"]} == {10054, 10055, 10056}
    assert metrics["from"]
    reached = {(port["protocol"], port["port"]) for rule in policy["egress"] for port in rule["ports"]}
    assert reached == {("UDP", 53), ("TCP", 53), ("TCP", 443), ("TCP", 6443)}
    served = {port["containerPort"] for it in pod_spec(objects)["containers"] for port in it["ports"]}
    assert served - {port["port"] for rule in policy["ingress"] for port in rule["ports"]} == {8081}


def test_every_container_of_the_autoscaler_has_a_liveness_probe() -> None:
    (autoscaler,) = one(render("overlays/high-availability"), "Deployment", "kube-dns-autoscaler")["spec"][
        "template"
    ]["spec"]["containers"]
    assert autoscaler["livenessProbe"]["httpGet"] == {"path": "/healthz", "port": 8080}


# Configuration


def test_the_config_map_holds_no_data_that_an_apply_would_write_back(objects) -> None:
    config = one(objects, "ConfigMap")
    assert not {"data", "binaryData", "immutable"} & config.keys()
    assert config["metadata"]["labels"]["addonmanager.kubernetes.io/mode"] == "EnsureExists"


def test_the_config_is_optional_and_mounted_where_both_programs_read_it(objects) -> None:
    volumes = {it["name"]: it for it in pod_spec(objects)["volumes"]}
    for name, flag in (("kubedns", "config-dir"), ("dnsmasq", "configDir")):
        program = container(objects, name)
        (mount,) = [it for it in program["volumeMounts"] if it["mountPath"] == flags(program)[flag]]
        assert volumes[mount["name"]]["configMap"] == {"name": "kube-dns", "optional": True}
        assert "subPath" not in mount, "a subPath mount is never updated"


def test_every_variable_in_an_argument_is_defined(objects) -> None:
    for it in pod_spec(objects)["containers"]:
        defined = {variable["name"] for variable in it["env"]}
        used = set(re.findall(r"\$\((\w+)\)", " ".join(it["args"])))
        assert used <= defined
        assert "CLUSTER_DOMAIN" in used


def test_every_volume_is_mounted_and_every_mount_has_a_volume(objects) -> None:
    spec = pod_spec(objects)
    mounted = {mount["name"] for it in spec["containers"] for mount in it.get("volumeMounts", [])}
    assert mounted == {volume["name"] for volume in spec["volumes"]}


# Probes and ports


def test_liveness_asks_exechealthz_for_the_containers_own_server(objects, door) -> None:
    probes = {
        argument.split("=")[1].split(",")[0]: argument
        for argument in container(objects, "healthz")["args"]
        if "--probe=" in argument
    }
    for name in ("kubedns", "dnsmasq"):
        asked = container(objects, name)["livenessProbe"]["httpGet"]
        assert asked == {"path": f"/healthcheck/{name}", "port": 10054}
        # Class CHAOS: answered by the server itself, so that neither an outage of the API server
        # nor a dead neighbour restarts it, and no cache hides its own death.
        assert re.fullmatch(rf"--probe={name},127\.0\.0\.1:(53|10053),version\.bind,\d+,CH", probes[name])
    assert ":10053," in probes["kubedns"]
    assert ":53," in probes["dnsmasq"]
    assert f":{door}," in probes["cluster"], "the whole way begins where clients ask"
    assert container(objects, "healthz")["livenessProbe"]["httpGet"]["port"] == 10054


def test_readiness_says_what_the_door_needs(objects, door) -> None:
    assert container(objects, "kubedns")["readinessProbe"]["httpGet"] == {"path": "/readiness", "port": 8081}
    if door == 53:
        assert container(objects, "dnsmasq")["readinessProbe"]["tcpSocket"] == {"port": 53}
    else:
        assert "readinessProbe" not in container(objects, "dnsmasq"), "kubedns does without dnsmasq"


def test_no_probe_is_so_hasty_that_a_busy_node_becomes_a_crash_loop(objects) -> None:
    for it in pod_spec(objects)["containers"]:
        probe = it["livenessProbe"]
        assert probe["periodSeconds"] * probe["failureThreshold"] >= 30
        assert probe["timeoutSeconds"] >= 5
        assert probe["initialDelaySeconds"] >= 10


def test_metrics_are_on_and_their_ports_named_on_the_pod(objects) -> None:
    ports = {
        port["name"]: port["containerPort"] for it in pod_spec(objects)["containers"] for port in it["ports"]
    }
    assert ports["metrics"] == 10055
    assert ports["metrics-nanny"] == int(flags(container(objects, "dnsmasq"))["metricsPort"])
    assert ports["healthz"] == int(flags(container(objects, "healthz"))["port"]) == 10054
    environment = {it["name"]: it["value"] for it in container(objects, "kubedns")["env"]}
    assert environment["PROMETHEUS_PORT"] == "10055"
    annotations = one(objects, "Deployment")["spec"]["template"]["metadata"]["annotations"]
    assert annotations["prometheus.io/scrape"] == "true"


def test_port_names_are_unique_in_the_pod_and_short_enough(objects) -> None:
    names = [port["name"] for it in pod_spec(objects)["containers"] for port in it["ports"]]
    assert len(names) == len(set(names))
    assert all(len(name) <= 15 for name in names)


def test_the_service_has_dns_over_both_transports_and_metrics(objects, door) -> None:
    service = one(objects, "Service")["spec"]
    assert service["selector"] == SELECTOR
    assert [(it["name"], it["protocol"], it["port"], it["targetPort"]) for it in service["ports"]] == [
        ("dns", "UDP", 53, door),
        ("dns-tcp", "TCP", 53, door),
        ("metrics", "TCP", 10055, 10055),
    ]


# Arguments


def test_dnsmasq_sends_the_cluster_domain_and_reverse_zones_to_kubedns_and_lifts_its_ceilings(
    objects,
) -> None:
    arguments = container(objects, "dnsmasq")["args"]
    after = arguments[arguments.index("--") + 1 :]
    assert {"-k", "--cache-size=1000", "--log-facility=-", "--dns-loop-detect"} <= set(after)
    assert [argument for argument in after if argument.startswith("--server=")] == [
        "--server=/$(CLUSTER_DOMAIN)/127.0.0.1#10053",
        "--server=/in-addr.arpa/127.0.0.1#10053",
        "--server=/ip6.arpa/127.0.0.1#10053",
    ]
    assert int(flags(container(objects, "dnsmasq"))["dns-forward-max"]) >= 1500
    assert int(flags(container(objects, "dnsmasq"))["max-tcp-connections"]) > 40
    assert "--no-negcache" not in after


def test_kubedns_asks_dnsmasq_for_names_elsewhere_where_it_is_at_the_door(objects, door) -> None:
    assert flags(container(objects, "kubedns")).get("cache-server") == (
        "127.0.0.1:53" if door == 10053 else None
    )


def test_the_wirings_differ_in_nothing_but_what_turns_round() -> None:
    """The same containers, images, ports and volumes, so that either Service leads into either pod."""
    base, first = render(""), render("overlays/kubedns-first")
    assert [it for it in first if it["kind"] not in {"Deployment", "Service"}] == [
        it for it in base if it["kind"] not in {"Deployment", "Service"}
    ]
    for name in CONTAINERS:
        one_way, other_way = container(base, name), container(first, name)
        turned = {"args", "readinessProbe"}
        assert {key: one_way[key] for key in one_way.keys() - turned} == {
            key: other_way[key] for key in other_way.keys() - turned
        }
        assert len(set(one_way["args"]) - set(other_way["args"])) == 1
    services = [one(objects, "Service")["spec"] for objects in (base, first)]
    for service in services:
        for port in service["ports"][:2]:
            del port["targetPort"]
    assert services[0] == services[1]


def test_kubedns_waits_for_the_api_server_and_keeps_negative_answers_short(objects) -> None:
    given = flags(container(objects, "kubedns"))
    assert given["initial-sync-timeout"] == "0"
    assert given["negative-ttl"] == "5"
    assert given["domain"] == "$(CLUSTER_DOMAIN)"


def test_memory_is_limited_and_cpu_is_not(objects) -> None:
    for it in pod_spec(objects)["containers"]:
        assert it["resources"]["limits"].keys() == {"memory"}
        assert it["resources"]["requests"].keys() == {"cpu", "memory"}
