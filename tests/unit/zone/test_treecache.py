"""The tree: what is there, what is not, what a wildcard looks at, and its JSON."""

import json

import pytest

from kubedns.backend import Alias
from kubedns.dns.names import Labels
from kubedns.objects import Endpoint, EndpointSlice, Port, Service
from kubedns.zone.dump import dump
from kubedns.zone.servicenames import names_of
from kubedns.zone.treecache import TreeCache

DOMAIN: Labels = (b"cluster", b"local")
SUFFIX: Labels = (b"svc", *DOMAIN)
IP = bytes((10, 96, 0, 1))
HTTP = Port("http", "tcp", 80)


def put(tree: TreeCache, service: Service, *slices: EndpointSlice) -> None:
    tree.set((service.namespace, service.name), names_of(service, slices, SUFFIX))


def headless(
    namespace: str, name: str, *addresses: bytes, hostname: str = ""
) -> tuple[Service, EndpointSlice]:
    endpoints = tuple(Endpoint((address,), hostname) for address in addresses)
    return Service(namespace, name, headless=True), EndpointSlice(namespace, "s", name, endpoints, (HTTP,))


@pytest.fixture
def tree():
    tree = TreeCache()
    put(tree, Service("shop", "web", cluster_ips=(IP,), ports=(HTTP,)))
    put(tree, Service("shop", "ext", external_name="up.example"))
    put(tree, Service("prod", "ip", external_name="10.9.9.9"))
    return tree


def looked(tree: TreeCache, name: str) -> tuple[list[str], int]:
    """Return addresses and aliases at a wildcard, and how many names were looked at."""
    looks: list[int] = []
    found: list[str] = []
    for records in tree.match(tuple(name.encode().split(b".")), looks.append):
        if isinstance(records, Alias):
            found.append(b".".join(records.target).decode())
        else:
            found += [address.hex(".") for address in records.addresses(4)]
    return sorted(found), sum(looks)


def shown(tree: TreeCache, ttl: int = 30):
    node = json.loads("".join(dump(tree, DOMAIN, ttl)))
    for label in ("local", "cluster", "svc"):
        assert node["Entries"] == {}
        node = node["ChildNodes"][label]
    return node


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("*.*.svc", ["0a.09.09.09", "up.example"]),
        ("*.shop.svc", ["up.example"]),
        ("*.shop.*", ["up.example"]),
        ("*.prod.*", ["0a.09.09.09"]),
        ("web.*.svc", ["0a.60.00.01"]),
        ("web.shop.*", ["0a.60.00.01"]),
        ("*.web.shop.svc", ["0a.60.00.01"]),
        ("*.*.*.svc", ["0a.60.00.01"]),
        ("_http._tcp.*.*.svc", ["0a.60.00.01"]),
        ("*._http._tcp.web.*.svc", ["0a.60.00.01"]),
        ("_http.*.web.shop.svc", []),
        ("*.*.web.shop.svc", []),
        ("*._tcp.web.shop.svc", []),
        ("*.ext.shop.svc", []),
        ("shop.*", []),
        ("*.svc", []),
        ("*", []),
        ("web.shop.*.x", []),
    ],
)
def test_wildcard_stands_for_what_the_originals_does(tree, name, found):
    assert looked(tree, name)[0] == found


def test_each_name_that_a_wildcard_looks_at_is_told(tree):
    for number in range(50):
        put(tree, Service(f"ns-{number}", "web", cluster_ips=(IP,)))
    assert looked(tree, "web.*.svc")[1] == 52
    assert looked(tree, "*.*.svc")[1] == 52 + 53
    assert looked(tree, "web.shop.*")[1] == 1


def test_namespace_exists_as_long_as_a_service_of_it(tree):
    assert tree.get((b"shop", b"svc")) == ()
    assert tree.get((b"no", b"svc")) is None
    for name in ("web", "ext"):
        tree.set(("shop", name), None)
    tree.set(("shop", "never"), None)
    assert tree.get((b"shop", b"svc")) is None
    assert tree.get((b"svc",)) == ()
    tree.set(("prod", "ip"), None)
    assert tree.get((b"svc",)) is None
    assert shown(tree) == {"ChildNodes": {}, "Entries": {}}


def test_json_is_the_originals_with_both_maps_everywhere(tree):
    put(tree, *headless("shop", "db", bytes((10, 1, 0, 1)), bytes((10, 1, 0, 2)), hostname="same"))
    node = shown(tree)
    shop = node["ChildNodes"]["shop"]
    assert node["ChildNodes"]["prod"]["Entries"]["ip"]["host"] == "10.9.9.9"
    assert shop["Entries"] == {
        "ext": {"host": "up.example.", "priority": 10, "weight": 10, "ttl": 30},
    }
    same = shop["ChildNodes"]["db"]["Entries"]["same"]
    assert [record["host"] for record in same] == ["10.1.0.1", "10.1.0.2"]
    web = shop["ChildNodes"]["web"]
    (label,) = web["Entries"]
    assert label == "6266366134663036"
    tcp = web["ChildNodes"]["_tcp"]
    assert tcp["Entries"] == {}
    port = tcp["ChildNodes"]["_http"]
    assert port["ChildNodes"] == {}
    assert port["Entries"][label] == {
        "host": "web.shop.svc.cluster.local.",
        "port": 80,
        "priority": 10,
        "weight": 10,
        "ttl": 30,
    }
    named = shop["ChildNodes"]["db"]["ChildNodes"]["_tcp"]["ChildNodes"]["_http"]["Entries"]["same"]
    assert named["host"] == "same.db.shop.svc.cluster.local."
    assert "ttl" not in shown(tree, 0)["ChildNodes"]["shop"]["Entries"]["ext"]


def test_json_of_a_large_tree_comes_in_pieces_of_one_record(tree):
    addresses = [bytes((10, 2, number // 250, number % 250)) for number in range(3000)]
    put(tree, *headless("shop", "db", *addresses))
    put(tree, *headless("shop", "same", *addresses, hostname="x"))
    for number in range(2500):
        put(tree, Service("shop", f"ext-{number}", external_name=f"n{number}.example"))
    pieces = list(dump(tree, DOMAIN, 30))
    assert max(piece.count("host") for piece in pieces) == 1
    assert max(map(len, pieces)) < 200
    assert pieces.count("") > 4 * 3000 // 64
    shop = json.loads("".join(pieces))["ChildNodes"]["local"]["ChildNodes"]["cluster"]["ChildNodes"]["svc"][
        "ChildNodes"
    ]["shop"]
    assert len(shop["ChildNodes"]["db"]["Entries"]) == 3000
    assert list(shop["ChildNodes"]["db"]["Entries"]) == sorted(shop["ChildNodes"]["db"]["Entries"])
    assert len(shop["ChildNodes"]["same"]["Entries"]["x"]) == 3000
    assert len(shop["Entries"]) == 2501


def test_what_goes_and_comes_while_the_tree_is_shown_leaves_it_well_formed(tree):
    for number in range(10):
        put(tree, Service("ns", f"web-{number}", cluster_ips=(IP,)))
        put(tree, Service("ns", f"ext-{number}", external_name="up.example"))
    pieces = []
    for piece in dump(tree, DOMAIN, 30):
        pieces.append(piece)
        if "web-3" in piece:
            for number in range(10):
                tree.set(("ns", f"web-{number}"), None)
                tree.set(("ns", f"ext-{number}"), None)
            put(tree, Service("other", "web", cluster_ips=(IP,)))
    found = json.loads("".join(pieces))["ChildNodes"]["local"]["ChildNodes"]["cluster"]["ChildNodes"]["svc"]
    assert list(found["ChildNodes"]["ns"]["ChildNodes"]) == ["web-0", "web-1", "web-2", "web-3"]
