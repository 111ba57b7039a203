"""One message in, one out: what is awaited, what is counted, what a fault costs."""

import asyncio
import logging

import pytest

from kubedns.backend import BackendError
from kubedns.dns.records import Resolution, UpstreamRecord
from kubedns.objects import Service, Topology
from kubedns.skydns.answers import Policy, ZoneAnswers
from kubedns.skydns.server import MOST_CHAINS, Server
from kubedns.telemetry.counters import Outcome, ServerCounters
from kubedns.zone.clusterzone import ClusterZone
from tests.later import Mailbox, settled
from tests.protocol.oracle import Rr
from tests.protocol.reading import ask, read
from tests.protocol.served import Served, TableForwarder, own_loop

D = "cluster.local"


@pytest.fixture
def zone():
    zone = ClusterZone((b"cluster", b"local"))
    web = Service("shop", "web", cluster_ips=(bytes((10, 0, 0, 1)),))
    ext = Service("shop", "ext", external_name="up.example")
    zone.services.apply({("shop", "web"): web, ("shop", "ext"): ext})
    zone.mark_synced()
    return zone


@pytest.fixture
def loop():
    with own_loop() as loop:
        yield loop


def server_of(backend, forwarder) -> Server:
    server = Server(backend, ZoneAnswers(backend, Policy()), forwarder, ServerCounters())
    server.set_clock(0)
    return server


class Silent(TableForwarder):
    """Never comes back; `asked` says when it was asked."""

    def __init__(self) -> None:
        super().__init__({})
        self.asked = asyncio.Event()

    async def resolve(self, labels, qtype) -> Resolution:
        self.asked.set()
        await asyncio.Event().wait()
        raise AssertionError


class Gate(TableForwarder):
    """Comes back for everybody once it is opened; `full` says that as many wait as may."""

    def __init__(self) -> None:
        super().__init__({})
        self.waiting = 0
        self.full = asyncio.Event()
        self.open = asyncio.Event()

    async def resolve(self, labels, qtype) -> Resolution:
        self.waiting += 1
        if self.waiting == MOST_CHAINS:
            self.full.set()
        await self.open.wait()
        return Resolution(0, (UpstreamRecord(labels, 1, 30, bytes((192, 0, 2, 1))),))


class Endless(TableForwarder):
    """Says of every name that it is an alias of another, taking its time."""

    def __init__(self) -> None:
        super().__init__({})
        self.asked = 0

    async def resolve(self, labels, qtype) -> Resolution:
        self.asked += 1
        await asyncio.sleep(1.5)
        target = b"\5n%04d\7example\0" % self.asked
        return Resolution(0, (UpstreamRecord(labels, 5, 30, target),))


async def test_alias_whose_target_never_answers_is_servfail_with_the_alias(zone):
    query = ask(f"ext.shop.svc.{D}")
    waiting = server_of(zone, Silent()).respond(query)
    assert waiting is not None
    assert not isinstance(waiting, bytes)
    reply = read(query, await asyncio.wait_for(settled(waiting), 30))
    assert reply.rcode == "SERVFAIL"
    assert reply.rdatas("CNAME") == {"up.example."}


async def test_aliases_beyond_the_limit_are_servfail_until_others_are_done(zone):
    gate = Gate()
    server = server_of(zone, gate)
    query = ask(f"ext.shop.svc.{D}")
    boxes = [Mailbox() for _ in range(MOST_CHAINS)]
    for box in boxes:
        waiting = server.respond(query)
        assert waiting is not None
        assert not isinstance(waiting, bytes)
        waiting.begin(box, None)
    await asyncio.wait_for(gate.full.wait(), 30)
    refused = server.respond(query)
    assert isinstance(refused, bytes)
    assert read(query, refused).rcode == "SERVFAIL"
    assert server.overloads == 1
    gate.open.set()
    await asyncio.wait_for(asyncio.gather(*(box.reply for box in boxes)), 30)
    assert read(query, await settled(server.respond(query))).rcode == "NOERROR"
    assert server.overloads == 1


async def test_chain_of_slow_upstreams_is_given_up_as_a_whole(zone):
    forwarder = Endless()
    query = ask(f"ext.shop.svc.{D}")
    waiting = server_of(zone, forwarder).respond(query)
    assert waiting is not None
    assert not isinstance(waiting, bytes)
    reply = read(query, await asyncio.wait_for(settled(waiting), 30))
    assert reply.rcode == "SERVFAIL"
    assert "up.example." in reply.rdatas("CNAME")
    assert forwarder.asked < 8


def test_alias_of_an_upstream_into_a_federation_without_a_place_is_servfail_with_the_aliases(zone, loop):
    target = f"nope.shop.mesh.svc.{D}"
    outside = {("up.example", "A"): ("NOERROR", [Rr("up.example", "CNAME", target)])}
    zone.configure_federations({"mesh": "fed.example"}, None)
    query = ask(f"ext.shop.svc.{D}")
    served = Served(zone, loop, outside=outside)
    reply = read(query, served.ask(query))
    assert reply.rcode == "SERVFAIL"
    assert reply.rdatas("CNAME") == {"up.example.", target + "."}
    zone.configure_federations({"mesh": "fed.example"}, Topology("z", "r"))
    assert len(read(query, served.ask(query)).rdatas("CNAME")) == 3


class Failing(ClusterZone):
    """Has a fault that nobody thought of."""

    def records(self, name):
        raise ZeroDivisionError("a fault")


class Unable(ClusterZone):
    """Cannot tell."""

    def records(self, name):
        raise BackendError("not now")


def test_fault_of_ours_costs_one_servfail_and_a_log_line(loop, caplog):
    zone = Failing((b"cluster", b"local"))
    zone.mark_synced()
    served = Served(zone, loop)
    query = ask(f"web.shop.svc.{D}", "TXT")
    with caplog.at_level(logging.ERROR):
        reply = served.ask(query)
    assert reply is not None
    assert reply[:2] == query[:2]
    assert reply[3] & 0xF == 2
    assert "cannot answer" in caplog.text


def test_backend_that_cannot_tell_is_servfail_without_a_line_for_each_query(loop, caplog):
    zone = Unable((b"cluster", b"local"))
    zone.mark_synced()
    query = ask(f"web.shop.svc.{D}", "TXT")
    with caplog.at_level(logging.INFO):
        assert read(query, Served(zone, loop).ask(query)).rcode == "SERVFAIL"
    assert not caplog.records


@pytest.mark.parametrize(
    ("name", "rdtype", "outcome"),
    [
        (f"web.shop.svc.{D}", "A", Outcome.ANSWERED),
        (f"web.shop.svc.{D}", "TXT", Outcome.NODATA),
        (f"nope.shop.svc.{D}", "A", Outcome.NXDOMAIN),
        (f"web.shop.svc.{D}", "ANY", Outcome.REFUSED),
    ],
)
@pytest.mark.parametrize("tcp", [False, True])
def test_each_answer_is_counted_once_by_its_outcome_kept_or_not(zone, loop, name, rdtype, outcome, tcp):
    served = Served(zone, loop)
    auth = served.counters.systems["auth"]
    sizes = [len(served.ask(ask(name, rdtype), tcp=tcp) or b"") for _ in range(3)]
    assert auth.outcomes[outcome] == auth.answered() == 3
    assert auth.size_histogram().total == sum(sizes)


def test_reverse_names_are_counted_apart_and_foreign_ones_forwarded(zone, loop):
    served = Served(zone, loop)
    served.ask(ask("1.0.0.10.in-addr.arpa", "PTR"))
    served.ask(ask("9.9.9.9.in-addr.arpa", "PTR"))
    assert served.counters.systems["reverse"].answered() == 1
    assert served.forwarder.forwarded == [(b"9", b"9", b"9", b"9", b"in-addr", b"arpa")]


def test_new_hour_is_in_every_soa_at_once(zone, loop):
    served = Served(zone, loop)
    for hour in (0, 1, 5):
        served.server.set_clock(hour * 3600 + 1234)
        for name in (f"nope.shop.svc.{D}", f"web.shop.svc.{D}", D):
            query = ask(name, "AAAA")
            (soa,) = read(query, served.ask(query)).authority
            assert soa.rdata.split()[2] == str(hour * 3600)


@pytest.mark.parametrize(
    "name", ["version.bind", "version.server", "hostname.bind", "id.server", "VERSION.Bind"]
)
def test_class_ch_tells_who_answers(zone, loop, name):
    query = ask(name, "TXT", rdclass="CH")
    reply = read(query, Served(zone, loop).ask(query))
    assert reply.rcode == "NOERROR"
    assert len(reply.rdatas("TXT")) == 1


def test_everything_else_in_class_ch_is_refused(zone, loop):
    served = Served(zone, loop)
    for name, rdtype in (("authors.bind", "TXT"), ("version.bind", "A"), (f"web.shop.svc.{D}", "A")):
        query = ask(name, rdtype, rdclass="CH")
        assert read(query, served.ask(query)).rcode == "REFUSED"
