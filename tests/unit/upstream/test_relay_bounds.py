"""The bounds of the relay's table, at a server that never answers."""

import socket
from collections.abc import AsyncIterator

import pytest

from kubedns.shared.servers import ServerAddress
from kubedns.upstream.cacheserver import CacheServer
from kubedns.upstream.relay import MOST_ROWS, MOST_WAITERS, Relay, open_relay
from kubedns.upstream.servers import Upstream


class Client:
    """A waiter that keeps what it was told."""

    def __init__(self) -> None:
        self.told = ""

    def answered(self, reply: bytes, found: object) -> None:
        self.told += "answered"

    def unanswered(self) -> None:
        self.told += "unanswered"

    def ask_elsewhere(self, *, truncated: bool) -> None:
        self.told += "elsewhere"


@pytest.fixture
async def relay() -> AsyncIterator[Relay]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.1", 0))
        cache = CacheServer(Upstream(ServerAddress(*silent.getsockname())))
        relay = open_relay(cache, 60.0)
        assert relay is not None
        yield relay
        relay.close()
        await cache.close()


def ask(relay: Relay, number: int) -> Client:
    client = Client()
    question = b"\4" + f"{number:04x}".encode() + b"\0\0\1\0\1"
    relay.ask(b"\0\0\1\0\0\1" + bytes(6) + question, 12 + len(question), client)
    return client


async def test_full_table_gives_up_its_oldest_row_for_a_new_question(relay):
    clients = [ask(relay, number) for number in range(MOST_ROWS)]
    assert not any(client.told for client in clients)
    later = [ask(relay, MOST_ROWS), ask(relay, MOST_ROWS + 1)]
    assert [client.told for client in clients[:3]] == ["unanswered", "unanswered", ""]
    assert not any(client.told for client in later)
    assert relay.overloads == 2


async def test_clients_beyond_the_limit_are_told_at_once(relay):
    waiting = [ask(relay, 1) for _ in range(MOST_WAITERS)]
    assert ask(relay, 1).told == ask(relay, 2).told == "unanswered"
    assert not any(client.told for client in waiting)
    assert relay.overloads == 2


async def test_server_that_is_left_sends_everybody_elsewhere_once(relay):
    clients = [ask(relay, number % 10) for number in range(100)]
    relay._cache.fail("killed by the test")
    relay._cache.fail("and once more")
    assert {client.told for client in clients} == {"elsewhere"}


async def test_cache_server_beyond_loopback_has_no_relay():
    assert open_relay(CacheServer(Upstream(ServerAddress("192.0.2.1"))), 2.0) is None
