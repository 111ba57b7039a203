"""The zone under any sequence of changes, against what is worked out from the objects alone."""

import json
from ipaddress import ip_address
from random import Random

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from kubedns.dns.names import address_text
from kubedns.objects import Key, Topology
from kubedns.zone.clusterzone import ClusterZone
from tests.protocol.oracle import DOMAIN, NEGATIVE_TTL, SOA_TTL, TTL, Oracle, Rr, Verdict
from tests.protocol.population import (
    CLUSTER_ADDRESSES,
    FEDERATIONS,
    OUTSIDE,
    PLACE,
    POD_ADDRESSES,
    SIX,
    Population,
    question_name,
    question_types,
)
from tests.protocol.reading import Reply, ask, read
from tests.protocol.served import Served, own_loop

RANDOMS = st.integers(0, 2**32).map(Random)
ADDRESSES = (*CLUSTER_ADDRESSES, *POD_ADDRESSES, *SIX, bytes((10, 9, 9, 9)))


def verdict_of(reply: Reply) -> Verdict:
    soa = [record.owner.lower().removesuffix(".") for record in reply.authority if record.rdtype == "SOA"]
    answer, additional = (
        {
            Rr(record.owner.lower().removesuffix("."), record.rdtype, record.rdata.lower().removesuffix("."))
            for record in section
        }
        for section in (reply.answer, reply.additional)
    )
    return Verdict(reply.rcode, answer, additional, "".join(soa))


class ZoneMachine(RuleBasedStateMachine):
    """Creates, updates, deletes and relists in any order; after each step everything must agree."""

    def __init__(self) -> None:
        super().__init__()
        self.population = Population()
        self.zone = ClusterZone(tuple(DOMAIN.encode().split(b".")))
        self.zone.mark_synced()
        self.federations: dict[str, str] = {}
        self.placed = False
        self.leaving = own_loop()
        self.served = Served(self.zone, self.leaving.__enter__(), outside=OUTSIDE)
        self.touched: list[Key] = []
        self.rng = Random(0)

    def teardown(self) -> None:
        self.leaving.__exit__(None, None, None)

    @rule(rng=RANDOMS)
    def change_services(self, rng: Random) -> None:
        changes = self.population.change_service(rng)
        self.zone.services.apply(changes)
        self.touched = list(changes)

    @rule(rng=RANDOMS)
    def change_slices(self, rng: Random) -> None:
        before = dict(self.population.slices)
        changes = self.population.change_slice(rng)
        self.zone.slices.apply(changes)
        states = [*changes.values(), *(before.get(key) for key in changes)]
        self.touched = [(state.namespace, state.service) for state in states if state and state.service]

    @rule(rng=RANDOMS)
    def change_several_at_once(self, rng: Random) -> None:
        services = {}
        for _ in range(3):
            services.update(self.population.change_service(rng))
        self.zone.services.apply(services)
        self.touched = list(services)

    @rule(rng=RANDOMS)
    def relist(self, rng: Random) -> None:
        """Apply the differences to a fresh list in batches of any size and order."""
        fresh = self.population.relisted(rng)
        steps: list[tuple[str, Key]] = []
        for kind, old, new in (
            ("service", self.population.services, fresh.services),
            ("slice", self.population.slices, fresh.slices),
        ):
            steps += [(kind, key) for key in {**old, **new} if old.get(key) != new.get(key)]
        rng.shuffle(steps)
        while steps:
            size = rng.randrange(1, 4)
            batch, steps = steps[:size], steps[size:]
            self.zone.services.apply(
                {key: fresh.services.get(key) for kind, key in batch if kind == "service"}
            )
            self.zone.slices.apply({key: fresh.slices.get(key) for kind, key in batch if kind == "slice"})
        self.population = fresh
        self.touched = list(fresh.services)

    @rule(rng=RANDOMS)
    def list_again_without_change(self, rng: Random) -> None:
        self.zone.services.apply(self.population.services)
        self.zone.slices.apply(self.population.slices)

    @rule(on=st.booleans(), placed=st.booleans())
    def configure_federations(self, on: bool, placed: bool) -> None:
        self.federations = FEDERATIONS if on else {}
        self.placed = placed
        self.zone.configure_federations(self.federations, Topology(*PLACE) if placed else None)

    @rule()
    def forget_what_was_made(self) -> None:
        for _ in self.zone.forget():
            pass

    @rule(rng=RANDOMS)
    def ask_anything(self, rng: Random) -> None:
        oracle = self.oracle()
        for _ in range(10):
            self.check(oracle, question_name(rng, self.population), question_types(rng))

    def oracle(self) -> Oracle:
        return Oracle(
            self.population.services.values(),
            self.population.slices.values(),
            outside=OUTSIDE,
            federations=self.federations,
            place=PLACE if self.placed else None,
        )

    def check(self, oracle: Oracle, name: str, rdtype: str) -> None:
        query = ask(name, rdtype)
        reply = read(query, self.served.ask(query, tcp=True), tcp=True)
        said, wanted = verdict_of(reply), oracle.answer(name, rdtype)
        assert said == wanted, f"{name} {rdtype}: {said}, not {wanted}"
        assert "AA" in reply.flags
        assert {record.ttl for record in (*reply.answer, *reply.additional)} <= {TTL, SOA_TTL}
        assert {record.ttl for record in reply.authority} <= {NEGATIVE_TTL}

    @invariant()
    def names_of_what_changed_are_right(self) -> None:
        oracle = self.oracle()
        for namespace, service in self.touched:
            own = f"{service}.{namespace}.svc.{DOMAIN}"
            below = sorted(name for name in oracle.names() if name.endswith(f".{own}"))
            some = self.rng.sample(below, min(3, len(below)))
            for name in (own, f"x.{own}", f"{namespace}.svc.{DOMAIN}", *some):
                self.check(oracle, name, question_types(self.rng))

    @invariant()
    def reverse_names_are_right(self) -> None:
        oracle = self.oracle()
        for address in ADDRESSES:
            found = self.zone.reverse_record(tuple(ip_address(address).reverse_pointer.encode().split(b".")))
            names = None if found is None else [b".".join(labels).decode() for labels in found]
            assert names == oracle.pointers(address_text(address)), address_text(address)

    @invariant()
    def state_is_that_of_a_fresh_start(self) -> None:
        shown = "".join(self.zone.dump())
        for fresh in (self.population.fresh_zone(), self.population.fresh_zone(self.rng)):
            assert shown == "".join(fresh.dump())
            assert set(self.zone.subtrees) == set(fresh.subtrees)
            assert self.zone.count_records() == fresh.count_records()
        json.loads(shown)


ZoneMachine.TestCase.settings = settings(
    max_examples=20, stateful_step_count=15, deadline=None, suppress_health_check=list(HealthCheck)
)
TestZoneMachine = pytest.mark.timeout(300)(ZoneMachine.TestCase)
