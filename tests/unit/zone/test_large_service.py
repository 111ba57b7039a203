"""A Service at the API's own limits: what is made of it is what is asked for, and no more."""

from kubedns.dns.names import address_text, pack_address, parse_domain
from kubedns.objects import Endpoint, EndpointSlice, Port, Service
from kubedns.zone import endpoints
from kubedns.zone.clusterzone import ClusterZone
from kubedns.zone.endpoints import Endpoints
from kubedns.zone.recordlabel import hash_of_label, record_label
from tests.protocol import oracle

DOMAIN = parse_domain("cluster.local")
AT = (b"big", b"t", b"svc", *DOMAIN)
PORTS = tuple(Port(f"p{number}", "tcp", 8000 + number) for number in range(100))


def slice_of(number: int, first: int = 0, *, named: bool = True) -> EndpointSlice:
    of_slice = tuple(
        Endpoint((bytes((10, number, host // 250, host % 250)),), f"h-{number}-{host}" if named else "")
        for host in range(first, first + 1000)
    )
    return EndpointSlice("t", f"big-{number}", "big", of_slice, PORTS)


def test_name_of_one_endpoint_does_not_hash_any_address_where_they_have_hostnames(monkeypatch):
    hashed: list[bytes] = []
    monkeypatch.setattr(endpoints, "address_hashes", hashed.extend)
    known = Endpoints(AT, tuple(slice_of(number) for number in range(5)))
    assert [it.hostname for it in known.at(b"h-3-7")] == ["h-3-7"]
    assert not known.at(b"nothing")
    assert not known.at(b"3030")
    assert not hashed


def test_address_without_hostname_is_found_by_its_label_among_thousands():
    known = Endpoints(AT, tuple(slice_of(number, named=False) for number in range(5)))
    for address in (bytes((10, 0, 0, 0)), bytes((10, 4, 3, 249))):
        assert [it.addresses for it in known.at(record_label(address))] == [(address,)]
    assert not known.at(record_label(bytes((10, 9, 9, 9))))


def test_labels_are_the_originals_for_every_form_of_an_address():
    for text in ("10.96.0.1", "10.244.1.20", "1.2.3.4", "255.255.255.255", "0.0.0.0", "fd00::1", "::"):
        label = record_label(pack_address(text))
        assert label == oracle.record_label(text).encode()
        spelt = hash_of_label(label)
        assert spelt is not None
        assert record_label(pack_address(text)) == (b"%x" % spelt).hex().encode()
    for label in (b"", b"3", b"web-0", b"30", b"3030303030303030", b"3g", b"6161616161616161" * 2, b"2f30"):
        assert hash_of_label(label) in (
            None,
            int(bytes.fromhex(label.decode()), 16) if label == b"30" else None,
        )


def test_labels_of_many_addresses_are_the_originals():
    for number in range(2000):
        address = bytes((10, number % 7, number // 250, number % 250))
        assert record_label(address) == oracle.record_label(address_text(address)).encode()


def test_port_of_some_slices_has_their_endpoints_and_all_addresses_of_their_names():
    one = EndpointSlice(
        "t", "a", "big", (Endpoint((b"\x0a\0\0\1",), "x"), Endpoint((b"\x0a\0\0\2",), "y")), PORTS[:2]
    )
    other = EndpointSlice("t", "b", "big", (Endpoint((b"\x0a\0\0\3",), "x"),), (Port("p0", "tcp", 9),))
    known = Endpoints(AT, (one, other))
    first, second = known.port(b"_tcp", b"_p0"), known.port(b"_tcp", b"_p1")
    assert first is not None
    assert second is not None
    assert (first.count, sorted(first.targets(0, 9))) == (3, [(b"x", 9), (b"x", 8000), (b"y", 8000)])
    assert first.targets(1, 1) == first.targets(0, 9)[1:2]
    assert (second.count, second.targets(0, 9)) == (2, [(b"x", 8001), (b"y", 8001)])
    assert set(second.addresses(4)) == {b"\x0a\0\0\1", b"\x0a\0\0\2", b"\x0a\0\0\3"}
    entry = second.entry(b"x")
    assert entry is not None
    assert (entry.count, entry.targets(0, 9)) == (1, [(b"x", 8001)])
    assert second.entry(b"z") is None
    assert known.port(b"_udp", b"_p0") is None


def test_reverse_names_follow_a_slice_that_changes_beside_others():
    zone = ClusterZone(DOMAIN)
    zone.services.apply({("t", "big"): Service("t", "big", headless=True)})
    zone.slices.apply({("t", f"big-{number}"): slice_of(number) for number in range(3)})

    def ptr(text: str) -> object:
        octets = pack_address(text)
        labels = (*(b"%d" % octet for octet in reversed(octets)), b"in-addr", b"arpa")
        return zone.reverse_record(labels)

    assert ptr("10.1.0.5") == ((b"h-1-5", *AT),)
    zone.slices.apply({("t", "big-1"): slice_of(1, first=6)})
    assert ptr("10.1.0.5") is None
    assert ptr("10.1.0.6") == ((b"h-1-6", *AT),)
    same_address_twice = EndpointSlice("t", "copy", "big", (Endpoint((pack_address("10.1.0.6"),), "h-1-6"),))
    zone.slices.apply({("t", "copy"): same_address_twice})
    zone.slices.apply({("t", "big-1"): None})
    assert ptr("10.1.0.6") == ((b"h-1-6", *AT),)
    zone.slices.apply({("t", "copy"): None})
    assert ptr("10.1.0.6") is None
    assert zone.count_records() == 2000


def test_name_that_all_endpoints_share_holds_each_address_once_in_their_order():
    addresses = [bytes((10, 1, number // 250, number % 250)) for number in range(3000)]
    slices = tuple(
        EndpointSlice("t", f"big-{number}", "big", (Endpoint(tuple(addresses[first:last]), "same"),))
        for number, (first, last) in enumerate(((1000, 3000), (0, 2500)))
    )
    found = Endpoints(AT, slices).all()
    assert found.addresses(4) == addresses[1000:] + addresses[:1000]
    assert (found.count, found.distinct, found.targets(0, 9)) == (3000, 1, [(b"same", 0)])
    assert found.glue(b"same", 4) == found.addresses(4)
