"""A Service at the API's own limits: what is made of it is what is asked for, and no more."""

from itertools import pairwise

from kubedns.dns.names import pack_address, parse_domain
from kubedns.objects import Endpoint, EndpointSlice, Port, Service
from kubedns.zone import generate
from kubedns.zone.clusterzone import ClusterZone

DOMAIN = parse_domain("cluster.local")
PORTS = tuple(Port(f"p{number}", "tcp", 8000 + number) for number in range(100))


def slice_of(number: int, first: int = 0) -> EndpointSlice:
    endpoints = tuple(
        Endpoint((bytes((10, number, host // 250, host % 250)),), f"h-{number}-{host}")
        for host in range(first, first + 1000)
    )
    return EndpointSlice("t", f"big-{number}", "big", endpoints, PORTS)


def test_question_for_one_port_makes_the_entries_of_that_port_alone():
    service = Service("t", "big", headless=True)
    node = generate.subtree(service, tuple(slice_of(number) for number in range(5)), DOMAIN)
    ports = node.children[b"_tcp"].children
    assert len(ports) == 100
    assert len(ports[b"_p7"].entries) == 5000
    assert sum(port.is_made() for port in ports.values()) == 1


def test_reverse_names_follow_a_slice_that_changes_beside_others():
    zone = ClusterZone(DOMAIN)
    zone.services.apply({("t", "big"): Service("t", "big", headless=True)})
    zone.slices.apply({("t", f"big-{number}"): slice_of(number) for number in range(3)})

    def ptr(text: str) -> object:
        octets = pack_address(text)
        labels = (*(b"%d" % octet for octet in reversed(octets)), b"in-addr", b"arpa")
        return zone.reverse_record(labels)

    at = (b"big", b"t", b"svc", *DOMAIN)
    assert ptr("10.1.0.5") == ((b"h-1-5", *at),)
    zone.slices.apply({("t", "big-1"): slice_of(1, first=6)})
    assert ptr("10.1.0.5") is None
    assert ptr("10.1.0.6") == ((b"h-1-6", *at),)
    same_address_twice = EndpointSlice("t", "copy", "big", (Endpoint((pack_address("10.1.0.6"),), "h-1-6"),))
    zone.slices.apply({("t", "copy"): same_address_twice})
    zone.slices.apply({("t", "big-1"): None})
    assert ptr("10.1.0.6") == ((b"h-1-6", *at),)
    zone.slices.apply({("t", "copy"): None})
    assert ptr("10.1.0.6") is None
    assert zone.count_records() == 2000


def test_entries_of_a_large_service_are_made_in_steps():
    service, slices = Service("t", "big", headless=True), tuple(slice_of(number) for number in range(5))
    node = generate.subtree(service, slices, DOMAIN)
    port = node.children[b"_tcp"].children[b"_p7"]
    unmade = generate.subtree(service, slices, DOMAIN)
    made = [len(entries) for entries, _ in unmade.view_in_steps()]
    assert max(after - before for before, after in pairwise([0, *made])) <= 64
    assert len(list(port.view_in_steps())) > 2 * 5000 // 64
    assert not unmade.is_made()
    assert not port.is_made()
    assert list(unmade.view_in_steps())[-1][0] == node.entries
    assert list(port.view_in_steps())[-1][0] == port.entries


def test_name_that_all_endpoints_share_holds_each_address_once_in_their_order():
    addresses = [bytes((10, 1, number // 250, number % 250)) for number in range(3000)]
    slices = tuple(
        EndpointSlice("t", f"big-{number}", "big", (Endpoint(tuple(addresses[:2500]), "same"),))
        if number
        else EndpointSlice("t", "big-0", "big", (Endpoint(tuple(addresses[1000:]), "same"),))
        for number in range(2)
    )
    node = generate.subtree(Service("t", "big", headless=True), slices, DOMAIN)
    assert node.entries == {b"same": tuple((address, 0) for address in addresses[1000:] + addresses[:1000])}
