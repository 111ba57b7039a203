"""The zone through changes that a watch brings in every order."""

from ipaddress import ip_address
from itertools import permutations

import pytest

from kubedns.objects import Endpoint, EndpointSlice, Port, Service
from kubedns.zone.clusterzone import ClusterZone

D = (b"cluster", b"local")
X = bytes((10, 0, 0, 1))
POD = bytes((10, 1, 0, 1))


def ptr(zone: ClusterZone, packed: bytes) -> list[str] | None:
    found = zone.reverse_record(tuple(ip_address(packed).reverse_pointer.encode().split(b".")))
    return None if found is None else [b".".join(labels[:2]).decode() for labels in found]


@pytest.fixture
def zone():
    return ClusterZone(D)


def test_delete_missed_during_a_silence_is_gone_from_every_index(zone):
    """A relist replaces: the address that another Service has now is that one's alone."""
    zone.services.apply(
        {("a", "x"): Service("a", "x", cluster_ips=(X,)), ("a", "y"): Service("a", "y", headless=True)}
    )
    zone.slices.apply({("a", "s"): EndpointSlice("a", "s", "y", (Endpoint((POD,), "pod-0"),))})
    relist = {
        ("a", "z"): Service("a", "z", cluster_ips=(X,)),
        ("a", "x"): None,
        ("a", "y"): None,
    }
    zone.services.apply(relist)
    zone.slices.apply({("a", "s"): None})
    assert ptr(zone, X) == ["z.a"]
    assert ptr(zone, POD) is None
    shown = "".join(zone.dump())
    assert '"z"' in shown
    assert '"x"' not in shown
    assert '"y"' not in shown


def test_new_address_of_a_service_that_was_made_again_takes_the_old_reverse_name_away(zone):
    zone.services.apply({("a", "x"): Service("a", "x", cluster_ips=(X,))})
    zone.services.apply({("a", "x"): Service("a", "x", cluster_ips=(POD,))})
    assert ptr(zone, X) is None
    assert ptr(zone, POD) == ["x.a"]


def test_cluster_ip_patched_to_headless_without_slices_leaves_nothing(zone):
    zone.services.apply({("a", "x"): Service("a", "x", cluster_ips=(X,))})
    zone.services.apply({("a", "x"): Service("a", "x", headless=True)})
    assert zone.records((b"x", b"a", b"svc", *D)) is None
    assert ptr(zone, X) is None


@pytest.mark.parametrize("service_first", [False, True])
def test_endpoint_that_a_slice_lists_twice_leaves_no_reverse_name_behind(zone, service_first):
    service = {("a", "y"): Service("a", "y", headless=True)}
    twice = {("a", "s"): EndpointSlice("a", "s", "y", (Endpoint((POD,), "h"), Endpoint((POD,), "h")))}
    if service_first:
        zone.services.apply(service)
    zone.slices.apply(twice)
    zone.services.apply(service)
    assert ptr(zone, POD) == ["h.y"]
    assert zone.count_records() == 1
    zone.slices.apply({("a", "s"): None})
    assert ptr(zone, POD) is None
    assert zone.count_records() == 0


def test_any_order_of_the_same_objects_gives_the_same_octets():
    ports = (Port("http", "tcp", 80), Port("dns", "udp", 53))
    steps: list[Service | EndpointSlice] = [
        Service("a", "x", headless=True),
        Service("a", "y", cluster_ips=(X,), ports=ports),
        Service("a", "e", external_name="x.a.svc.cluster.local"),
        EndpointSlice("a", "s1", "x", (Endpoint((POD,), "h"), Endpoint((X,))), ports),
        EndpointSlice("a", "s2", "x", (Endpoint((X,), "h"), Endpoint((POD,))), ports[:1]),
    ]
    shown = set()
    for order in permutations(steps):
        zone = ClusterZone(D)
        for step in order:
            key = (step.namespace, step.name)
            if isinstance(step, Service):
                zone.services.apply({key: step})
            else:
                zone.slices.apply({key: step})
        shown.add("".join(zone.dump()))
    assert len(shown) == 1


def test_service_that_the_api_has_not_decided_about_makes_no_name(zone):
    zone.services.apply({("a", "x"): Service("a", "x")})
    assert zone.records((b"x", b"a", b"svc", *D)) is None
    assert zone.count_records() == 0
    assert zone.counts() == {"service": 1, "endpointslice": 0}


def test_name_server_has_the_addresses_of_the_dns_service(zone):
    name = (b"ns", b"dns", *D)
    assert zone.records(name) == ()
    zone.services.apply({("kube-system", "kube-dns"): Service("kube-system", "kube-dns", cluster_ips=(X,))})
    (found,) = list(zone.records(name) or ())
    assert (found.addresses(4), found.count) == ([X], 0)
    assert zone.records((b"x", *name)) is None


def test_alias_that_is_no_name_makes_no_record_and_is_named(zone, caplog):
    zone.services.apply({("a", "x"): Service("a", "x", external_name="no name")})
    assert zone.records((b"x", b"a", b"svc", *D)) is None
    assert "a/x" in caplog.text
    assert "no name" in caplog.text


def test_what_was_made_for_questions_is_forgotten_and_made_again(zone):
    zone.services.apply(
        {("a", "x"): Service("a", "x", cluster_ips=(X,)), ("a", "y"): Service("a", "y", headless=True)}
    )
    zone.slices.apply({("a", "s"): EndpointSlice("a", "s", "y", (Endpoint((POD,), "h"),))})
    names = [(b"x", b"a", b"svc", *D), (b"h", b"y", b"a", b"svc", *D)]

    def found() -> list[list[bytes]]:
        return [records.addresses(4) for name in names for records in zone.records(name) or ()]

    before = found()
    node = zone.subtrees[b"\1y\1a"]
    made = node.own()
    node.packed = {}
    for _ in zone.forget():
        pass
    assert node.packed is None
    assert node.own() is not made
    assert found() == before == [[X], [POD]]
    assert ptr(zone, POD) == ["h.y"]
