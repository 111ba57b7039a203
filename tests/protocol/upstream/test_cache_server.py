"""A caching server in front of the configuration's own: when it is asked, and what happens while it is away."""

import asyncio

import dns.flags
import dns.message
import dns.rcode
import pytest

from kubedns.shared.servers import ServerAddress
from kubedns.upstream.forward import Forwarder
from tests.later import forwarded
from tests.ports import free_port

NAME = "www.example.org."
CACHED = (NAME, 300, "IN", "A", "192.0.2.1")
OWN = (NAME, 300, "IN", "A", "192.0.2.2")
VERSION = b"\7version\4bind\0"


async def ask(forwarder: Forwarder, name: str = NAME, **options) -> dns.message.Message:
    return dns.message.from_wire(
        await forwarded(forwarder, dns.message.make_query(name, "A").to_wire(), **options)
    )


def addresses(reply: dns.message.Message) -> list[str]:
    return [rdata.address for rrset in reply.answer for rdata in rrset]


async def test_names_elsewhere_are_asked_there_only(forwarder, upstreams, says):
    cache, own = await upstreams.start(says(CACHED)), await upstreams.start(says(OWN))
    forwarder.use_cache(cache.address)
    forwarder.configure([own.address], {(b"org",): [own.address]})
    assert addresses(await ask(forwarder)) == ["192.0.2.1"]
    assert addresses(await ask(forwarder, tcp=True)) == ["192.0.2.1"]
    assert not own.seen + own.seen_tcp


@pytest.mark.parametrize("rcode", [dns.rcode.SERVFAIL, dns.rcode.REFUSED, dns.rcode.NXDOMAIN])
async def test_its_refusal_is_an_answer(forwarder, upstreams, says, rcode):
    cache, own = await upstreams.start(says(rcode=rcode)), await upstreams.start(says(OWN))
    forwarder.use_cache(cache.address)
    forwarder.configure([own.address], {})
    assert (await ask(forwarder)).rcode() == rcode
    assert (len(cache.seen), len(own.seen)) == (1, 0)


async def test_refused_port_means_the_own_servers_at_once_and_it_is_tried_again(forwarder, upstreams, says):
    own = await upstreams.start(says(OWN))
    address = ServerAddress("127.0.0.1", free_port())
    forwarder.use_cache(address)
    forwarder.configure([own.address], {})
    for _ in range(5):
        assert addresses(await ask(forwarder)) == ["192.0.2.2"]
    assert not forwarder.cache.is_up


async def test_silent_server_is_left_for_all_questions_and_taken_back_when_it_answers(
    forwarder, upstreams, says
):
    cache, own = await upstreams.silent(), await upstreams.start(says(OWN))
    forwarder.use_cache(cache.address)
    forwarder.configure([own.address], {})
    names = [f"n{number}.example.org." for number in range(20)]
    own.script = says()
    replies = await asyncio.gather(*(ask(forwarder, name) for name in names))
    assert {reply.rcode() for reply in replies} == {dns.rcode.NOERROR}
    assert not forwarder.cache.is_up
    asked = len([wire for wire in cache.seen if VERSION not in wire])
    assert asked == len(names)
    await ask(forwarder)
    assert len([wire for wire in cache.seen if VERSION not in wire]) == asked
    cache.script = says(CACHED)
    async with asyncio.timeout(10):
        while not forwarder.cache.is_up:
            await asyncio.sleep(0)
    assert addresses(await ask(forwarder)) == ["192.0.2.1"]


async def test_slow_name_of_a_server_that_is_well_is_waited_for(forwarder, upstreams, says):
    cache, own = await upstreams.silent(), await upstreams.start(says(OWN))
    versions = 0

    def script(wire, tcp):
        nonlocal versions
        if VERSION not in wire:
            return None
        versions += 1
        if versions == 5:
            cache.send(says(CACHED)(cache.seen[0], False), cache.peers[0])
        return says(rcode=dns.rcode.REFUSED)(wire, tcp)

    cache.script = script
    forwarder.use_cache(cache.address)
    forwarder.configure([own.address], {})
    assert addresses(await ask(forwarder)) == ["192.0.2.1"]
    assert not own.seen


async def test_reverse_names_and_the_servers_own_questions_go_to_the_own_servers(forwarder, upstreams, says):
    cache, own = await upstreams.start(says(CACHED)), await upstreams.start(says())
    forwarder.use_cache(cache.address)
    forwarder.configure([own.address], {})
    await ask(forwarder, "9.2.0.192.in-addr.arpa.")
    await ask(forwarder, client=(cache.address.host, cache.address.port))
    assert (len(cache.seen), len(own.seen)) == (0, 2)


async def test_cache_server_that_is_this_server_is_refused(counters):
    forwarder = Forwarder(counters, domain=(b"cluster", b"local"), own=[("0.0.0.0", 10053)])
    with pytest.raises(ValueError, match="is this server itself"):
        forwarder.use_cache(ServerAddress("127.0.0.1", 10053))
