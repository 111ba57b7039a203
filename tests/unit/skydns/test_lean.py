"""The lean path keeps what may be kept, where it dies with what it was made from."""

from collections import Counter
from itertools import pairwise, product
from random import Random

import pytest

from kubedns.objects import Endpoint, EndpointSlice, Port, Service
from kubedns.zone.clusterzone import ClusterZone
from tests.protocol.population import NAMES, NAMESPACES, Population
from tests.protocol.reading import ask, read
from tests.protocol.served import Served, own_loop

D = "cluster.local"
DB = b"\2db\4shop"
HEADS = ("", "db-0.", "10-96-0-1.", "_http._tcp.", "_dns._udp.", "_tcp.", "no.", "10-96-0-1._http._tcp.")


@pytest.fixture
def zone():
    zone = ClusterZone((b"cluster", b"local"))
    zone.services.apply(
        {
            ("shop", "db"): Service("shop", "db", headless=True),
            ("shop", "web"): Service("shop", "web", cluster_ips=(bytes((10, 0, 0, 9)),)),
        }
    )
    zone.slices.apply({("shop", "s"): of(1, 2)})
    zone.mark_synced()
    return zone


def of(*lasts: int) -> EndpointSlice:
    endpoints = tuple(Endpoint((bytes((10, 1, 0, last)),), f"db-{last}") for last in lasts)
    return EndpointSlice("shop", "s", "db", endpoints, (Port("pg", "tcp", 5432),))


@pytest.fixture
def served(zone):
    with own_loop() as loop:
        yield Served(zone, loop)


def addresses(
    served: Served, name: str = f"db.shop.svc.{D}", rdtype: str = "A", payload: int | None = None
) -> set[str]:
    query = ask(name, rdtype, payload=payload)
    return read(query, served.ask(query)).rdatas(rdtype)


def test_second_answer_is_made_of_what_the_first_left_with_the_service(served, zone):
    addresses(served)
    misses = served.counters.misses
    assert addresses(served) == {"10.1.0.1", "10.1.0.2"}
    assert addresses(served, f"DB.Shop.SVC.{D}") == {"10.1.0.1", "10.1.0.2"}
    assert addresses(served, payload=1232) == {"10.1.0.1", "10.1.0.2"}
    assert served.counters.misses == misses
    assert zone.subtrees[DB].packed


def test_change_of_a_service_takes_its_answers_and_leaves_those_of_others(served, zone):
    addresses(served)
    addresses(served, f"web.shop.svc.{D}")
    addresses(served, f"db-3.db.shop.svc.{D}")
    others = zone.subtrees[b"\3web\4shop"].packed
    zone.slices.apply({("shop", "s"): of(2, 3)})
    assert zone.subtrees[DB].packed is None
    assert zone.subtrees[b"\3web\4shop"].packed is others
    assert addresses(served) == {"10.1.0.2", "10.1.0.3"}
    assert addresses(served, f"db-3.db.shop.svc.{D}") == {"10.1.0.3"}


def test_name_that_comes_into_being_is_found_at_once(served, zone):
    query = ask(f"new.shop.svc.{D}")
    for _ in range(2):
        assert read(query, served.ask(query)).rcode == "NXDOMAIN"
    zone.services.apply({("shop", "new"): Service("shop", "new", cluster_ips=(bytes((10, 0, 0, 8)),))})
    assert addresses(served, f"new.shop.svc.{D}") == {"10.0.0.8"}
    zone.services.apply({("shop", "new"): None})
    assert read(query, served.ask(query)).rcode == "NXDOMAIN"


def test_names_that_do_not_exist_leave_nothing_behind(served, zone):
    for number in range(200):
        addresses(served, f"n{number}.db.shop.svc.{D}")
        addresses(served, f"n{number}.shop.svc.{D}")
        addresses(served, f"n{number}.db.shop.svc.{D}", "TXT")
        addresses(served, f"*.x{number}.db.shop.svc.{D}")
    assert not zone.subtrees[DB].packed


def test_what_one_service_keeps_is_bounded_by_its_names(served, zone):
    for number in range(300):
        for rdtype in ("A", "AAAA", "SRV", f"TYPE{number + 300}"):
            addresses(served, f"db.shop.svc.{D}", rdtype, payload=512 + number)
            addresses(served, f"_pg._tcp.db.shop.svc.{D}", rdtype)
    assert len(zone.subtrees[DB].packed or ()) <= 6


def test_srv_answer_in_mixed_case_is_not_served_to_another_spelling(served):
    name = f"_pg._tcp.db.shop.svc.{D}"
    for spelling in (name, name.upper(), name.title(), name, name.upper()):
        query = ask(spelling, "SRV", payload=1232)
        reply = read(query, served.ask(query))
        assert {record.owner for record in reply.answer} == {spelling + "."}
        assert len(reply.additional) == 2


def test_answers_made_here_are_those_of_the_full_path_to_the_octet(monkeypatch):
    monkeypatch.setattr("random.randrange", lambda _: 0)  # where more records than fit begin
    names = [f"{head}{name}.{space}.svc.{D}" for head in HEADS for name in NAMES for space in NAMESPACES]
    made: Counter[str] = Counter()
    for seed in range(12):
        rng, population = Random(seed), Population()
        for _ in range(40):
            population.change_service(rng)
            population.change_slice(rng)
        with own_loop() as loop:
            lean = Served(population.fresh_zone(), loop)
            full = Served(population.fresh_zone(), loop, full=True)
            for name, rdtype in product(names, ("A", "AAAA", "SRV")):
                misses = lean.counters.misses
                query = ask(name, rdtype, payload=1232)
                reply = lean.server._lean.respond(query, tcp=False)
                if reply is not None:
                    assert reply == full.ask(query), f"seed {seed}: {name} {rdtype}"
                    made[rdtype] += lean.counters.misses > misses
    assert min(made["A"], made["AAAA"], made["SRV"]) > 40


def test_records_of_a_port_turn_where_no_message_holds_them_all(served, zone):
    count = 3000
    endpoints = tuple(
        Endpoint((bytes((10, 1, number // 250, number % 250)),), f"a-long-host-name-{number}")
        for number in range(count)
    )
    zone.slices.apply(
        {("shop", "s"): EndpointSlice("shop", "s", "db", endpoints, (Port("pg", "tcp", 5432),))}
    )
    query = ask(f"_pg._tcp.db.shop.svc.{D}", "SRV")
    seen: set[str] = set()
    sizes = []
    for _ in range(20):
        reply = read(query, served.ask(query, tcp=True), tcp=True)
        assert "TC" in reply.flags
        seen |= reply.rdatas("SRV")
        sizes.append(len(seen))
    assert [after - before for before, after in pairwise(sizes)] == [1] * 19
