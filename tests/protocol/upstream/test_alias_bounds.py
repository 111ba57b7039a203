"""ExternalName Services and what an upstream makes of their targets: how far aliases are followed."""

import itertools
import logging

import pytest

from tests.protocol.upstream.conftest import Text

ALIAS = "db.shop.svc.cluster.local."
ADDRESS = "192.0.2.77"


def chain(links: int) -> list[Text]:
    """Make the aliases from db.corp.test to an address."""
    owners = ["db.corp.test.", *(f"hop{link}.corp.test." for link in range(links))]
    aliases = [(owner, 60, "IN", "CNAME", target) for owner, target in itertools.pairwise(owners)]
    return [*aliases, (owners[-1], 60, "IN", "A", ADDRESS)]


@pytest.fixture
def complaints(caplog):
    """Return the warnings so far."""
    caplog.set_level(logging.WARNING)
    return lambda: [record.getMessage() for record in caplog.records]


@pytest.mark.parametrize("links", [0, 1, 8, 12, 31])
async def test_chain_of_an_upstream_is_taken_whole(
    name_server, forwarder, upstreams, says, complaints, links
):
    upstream = await upstreams.start(says(*chain(links)))
    forwarder.configure([upstream.address], {})
    name_server.add_alias("db", "db.corp.test")
    reply = await name_server.ask(ALIAS)
    assert (reply.rcode, reply.rdatas("A")) == ("NOERROR", {ADDRESS})
    assert len(reply.rdatas("CNAME")) == 1 + links
    assert not complaints()


@pytest.mark.parametrize("links", [32, 33, 200])
async def test_longer_chain_is_servfail_and_said_once(
    name_server, forwarder, upstreams, says, complaints, links
):
    upstream = await upstreams.start(says(*chain(links)))
    forwarder.configure([upstream.address], {})
    name_server.add_alias("db", "db.corp.test")
    for _ in range(2):
        reply = await name_server.ask(ALIAS)
        assert (reply.rcode, reply.rdatas("A")) == ("SERVFAIL", set())
    (complaint,) = complaints()
    assert complaint.startswith(ALIAS.rstrip("."))
    assert "32" in complaint


async def test_chain_that_turns_back_is_servfail_and_said(
    name_server, forwarder, upstreams, says, complaints
):
    ring = [
        ("db.corp.test.", 60, "IN", "CNAME", "hop.corp.test."),
        ("hop.corp.test.", 60, "IN", "CNAME", "db.corp.test."),
    ]
    upstream = await upstreams.start(says(*ring))
    forwarder.configure([upstream.address], {})
    name_server.add_alias("db", "db.corp.test")
    assert (await name_server.ask(ALIAS)).rcode == "SERVFAIL"
    assert len(complaints()) == 1


async def test_external_name_of_a_single_label_is_nxdomain_and_asked_of_nobody(
    name_server, forwarder, upstreams, says
):
    upstream = await upstreams.start(says(("db.", 60, "IN", "A", ADDRESS)))
    forwarder.configure([upstream.address], {})
    name_server.add_alias("db", "db")
    reply = await name_server.ask(ALIAS)
    assert (reply.rcode, reply.rdatas("CNAME"), reply.rdatas("A")) == ("NXDOMAIN", {"db."}, set())
    assert not upstream.seen
