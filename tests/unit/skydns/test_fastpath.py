"""The fast path keeps what may be kept, where it dies with what it was made from."""

import pytest

from kubedns.objects import Endpoint, EndpointSlice, Port, Service
from kubedns.zone.clusterzone import ClusterZone
from tests.protocol.reading import ask, read
from tests.protocol.served import Served, own_loop

D = "cluster.local"
DB = b"\2db\4shop"


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
    for _ in range(20):
        reply = read(query, served.ask(query, tcp=True), tcp=True)
        assert "TC" in reply.flags
        assert len(reply.answer) > 500
        seen |= reply.rdatas("SRV")
    assert len(seen) > count * 0.95


@pytest.mark.parametrize("asked", [1, 2, 3, 4, 6, 12])
def test_client_that_asks_several_times_for_each_use_meets_every_record(served, zone, asked):
    zone.slices.apply({("shop", "s"): of(*range(12))})
    query = ask(f"db.shop.svc.{D}")
    first = set()
    for _ in range(600):
        reply = [served.ask(query) for _ in range(asked)][-1]
        first.add(read(query, reply).message.answer[0][0].address)
    assert len(first) == 12
