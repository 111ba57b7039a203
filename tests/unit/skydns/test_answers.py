"""Aliases: followed inside, handed out, taken up again."""

import pytest

from kubedns.dns import numbers
from kubedns.dns.names import Labels, to_wire
from kubedns.dns.records import UNRESOLVED, Resolution, UpstreamRecord
from kubedns.objects import Service
from kubedns.skydns.answers import Policy, ZoneAnswers
from kubedns.skydns.chain import Chain
from kubedns.skydns.response import Answer
from kubedns.zone.clusterzone import ClusterZone

D: Labels = (b"cluster", b"local")
EXT: Labels = (b"ext", b"shop", b"svc", *D)
UP: Labels = (b"up", b"example")
WWW: Labels = (b"www", b"example")


def alias(owner: Labels, target: Labels, ttl: int = 300) -> UpstreamRecord:
    return UpstreamRecord(owner, numbers.CNAME, ttl, to_wire(target))


def address(owner: Labels, ttl: int = 300, last: int = 1) -> UpstreamRecord:
    return UpstreamRecord(owner, numbers.A, ttl, bytes((192, 0, 2, last)))


SOA = UpstreamRecord((b"example",), numbers.SOA, 900, b"\0\0" + bytes(20))


@pytest.fixture
def answers():
    zone = ClusterZone(D)
    zone.services.apply(
        {
            ("shop", "ext"): Service("shop", "ext", external_name="up.example"),
            ("shop", "web"): Service("shop", "web", cluster_ips=(bytes((10, 0, 0, 1)),)),
        }
    )
    zone.mark_synced()
    return ZoneAnswers(zone, Policy())


@pytest.fixture
def chain(answers):
    found = answers.resolve(EXT, numbers.A)
    assert isinstance(found, Chain)
    assert found.target == UP
    return found


def shape(answer: Answer) -> list[tuple[Labels, int, int]]:
    return [(rrset.owner, rrset.rtype, rrset.ttl) for rrset in answer.answer]


def test_records_of_the_target_follow_the_alias_with_their_ttl_capped(answers, chain):
    found = answers.absorb(chain, Resolution(numbers.NOERROR, (address(UP), address(UP, ttl=10, last=2))))
    assert shape(found) == [(EXT, numbers.CNAME, 30), (UP, numbers.A, 10)]
    assert len(found.answer[1].rdatas) == 2
    assert found.rcode == numbers.NOERROR


def test_aliases_of_the_upstream_stay_in_the_chain_with_their_owners(answers, chain):
    found = answers.absorb(chain, Resolution(numbers.NOERROR, (alias(UP, WWW), address(WWW, ttl=5))))
    assert shape(found) == [(EXT, numbers.CNAME, 30), (UP, numbers.CNAME, 30), (WWW, numbers.A, 5)]


def test_foreign_records_of_the_upstream_are_left_out(answers, chain):
    said = (address((b"evil", b"example")), UpstreamRecord(UP, numbers.TXT, 30, b"\1x"), address(UP))
    found = answers.absorb(chain, Resolution(numbers.NOERROR, said))
    assert shape(found) == [(EXT, numbers.CNAME, 30), (UP, numbers.A, 30)]


@pytest.mark.parametrize("rcode", [numbers.NOERROR, numbers.NXDOMAIN])
def test_negative_answer_keeps_the_alias_and_the_upstreams_soa(answers, chain, rcode):
    found = answers.absorb(chain, Resolution(rcode, (), SOA))
    assert found.rcode == rcode
    assert shape(found) == [(EXT, numbers.CNAME, 30)]
    assert [(rrset.owner, rrset.rtype, rrset.ttl) for rrset in found.authority] == [
        ((b"example",), numbers.SOA, 30)
    ]


@pytest.mark.parametrize("said", [UNRESOLVED, Resolution(numbers.REFUSED), Resolution(numbers.FORMERR)])
def test_target_that_cannot_be_resolved_is_servfail_with_the_alias(answers, chain, said):
    found = answers.absorb(chain, said)
    assert found.rcode == numbers.SERVFAIL
    assert shape(found) == [(EXT, numbers.CNAME, 30)]


def test_alias_back_into_the_zone_is_followed_there(answers, chain):
    web = (b"WEB", b"shop", b"svc", *D)
    again = answers.absorb(chain, Resolution(numbers.NOERROR, (alias(UP, web),)))
    assert isinstance(again, Chain)
    found = answers.follow(again)
    assert [rtype for _, rtype, _ in shape(found)] == [numbers.CNAME, numbers.CNAME, numbers.A]


def test_alias_to_a_name_the_server_says_nothing_of_is_asked_for_on_its_own(answers, chain):
    again = answers.absorb(chain, Resolution(numbers.NOERROR, (alias(UP, WWW),)))
    assert isinstance(again, Chain)
    assert again.target == WWW
    found = answers.absorb(again, Resolution(numbers.NOERROR))
    assert isinstance(found, Answer)
    assert found.rcode == numbers.NOERROR
    assert [rtype for _, rtype, _ in shape(found)] == [numbers.CNAME, numbers.CNAME]


def test_aliases_of_the_upstream_in_a_ring_are_servfail_without_records(answers, chain):
    found = answers.absorb(chain, Resolution(numbers.NOERROR, (alias(UP, WWW), alias(WWW, UP))))
    assert (found.rcode, found.answer) == (numbers.SERVFAIL, [])


def test_aliases_back_and_forth_end(answers, chain):
    found: Answer | Chain = chain
    for _ in range(20):
        if isinstance(found, Answer):
            break
        target = EXT if found.target == UP else UP
        said = Resolution(numbers.NOERROR, (alias(found.target, target),))
        found = answers.absorb(found, said)
        if isinstance(found, Chain):
            found = answers.follow(found)
    assert isinstance(found, Answer)
    assert (found.rcode, found.answer) == (numbers.SERVFAIL, [])


def test_chain_given_up_is_servfail_with_the_aliases_so_far(answers, chain):
    found = answers.unresolved(chain)
    assert found.rcode == numbers.SERVFAIL
    assert shape(found) == [(EXT, numbers.CNAME, 30)]
