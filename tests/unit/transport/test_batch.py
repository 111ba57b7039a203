"""Datagrams taken and sent many at a time: every kind of reply, bounds of time, sockets that fail."""

import asyncio
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter

import pytest

from kubedns.shared.datagrams import SIZE, is_available
from kubedns.shared.reply import Peer, Sink
from kubedns.transport.batch import LARGEST_QUERY, Batch

FOREVER = float("inf")


@contextmanager
def connected(family: socket.AddressFamily = socket.AF_INET) -> Iterator[tuple[socket.socket, socket.socket]]:
    """A listener and a client that is connected to it."""
    with (
        socket.socket(family, socket.SOCK_DGRAM) as listener,
        socket.socket(family, socket.SOCK_DGRAM) as client,
    ):
        listener.bind(("::1" if family == socket.AF_INET6 else "127.0.0.1", 0))
        client.connect(listener.getsockname())
        client.settimeout(5)
        yield listener, client


def echo(message: bytes, _tcp: bool) -> bytes:
    return b"re:" + message


class Late:
    """A reply whose sink and peer are kept for the test."""

    by = ""

    def __init__(self) -> None:
        self.begun: list[tuple[Sink, Peer]] = []

    def begin(self, sink: Sink, peer: Peer) -> None:
        self.begun.append((sink, peer))


def test_linux_has_the_calls():
    with connected() as (listener, _):
        assert is_available(listener)


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
def test_more_datagrams_than_a_batch_holds_are_answered_in_order(family):
    with connected(family) as (listener, client):
        messages = [b"%d" % number * (number + 1) for number in range(3 * SIZE + 1)]
        for message in messages:
            client.send(message)
        batch = Batch(listener, echo)
        batch.answer(FOREVER)
        assert batch.is_empty
        assert [client.recv(4096) for _ in messages] == [b"re:" + message for message in messages]


def test_short_datagram_after_a_long_one_is_seen_alone():
    with connected() as (listener, client):
        batch = Batch(listener, echo)
        for message in (b"a" * 500, b"b", b""):
            client.send(message)
            batch.answer(FOREVER)
            assert client.recv(4096) == b"re:" + message


def test_longest_query_is_seen_whole_and_a_longer_one_cut():
    with connected() as (listener, client):
        batch = Batch(listener, lambda message, _: b"%d" % len(message))
        for octets in (LARGEST_QUERY, LARGEST_QUERY + 1):
            client.send(bytes(octets))
            batch.answer(FOREVER)
            assert client.recv(64) == b"%d" % LARGEST_QUERY


def test_silent_late_and_oversized_replies_leave_the_others_in_place():
    replies = {b"none": None, b"long": b"l" * 3000}
    late = Late()

    def respond(message: bytes, _tcp: bool):
        return late if message == b"late" else replies.get(message, b"re:" + message)

    with connected() as (listener, client):
        batch = Batch(listener, respond)
        for message in (b"none", b"1", b"late", b"2", b"3", b"long", b"none", b"4"):
            client.send(message)
        batch.answer(FOREVER)
        assert [client.recv(4096) for _ in range(5)] == [b"re:1", b"re:2", b"re:3", b"l" * 3000, b"re:4"]
        ((sink, peer),) = late.begun
        assert sink is batch
        assert sink.address(peer) == client.getsockname()


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
async def test_late_reply_finds_its_peer_when_others_came_since(family):
    late = Late()
    with connected(family) as (listener, client):
        batch = Batch(listener, lambda message, _: late if message == b"late" else message)
        client.send(b"late")
        batch.answer(FOREVER)
        with socket.socket(family, socket.SOCK_DGRAM) as other:
            other.connect(listener.getsockname())
            other.send(b"other")
            batch.answer(FOREVER)
        ((sink, peer),) = late.begun
        sink.deliver(peer, b"x" * 5000)
        assert client.recv(9000) == b"x" * 5000
        for number in range(SIZE + 1):
            sink.deliver(peer, b"%d" % number)
        sink.deliver(peer, None)
        await asyncio.sleep(0)
        assert [client.recv(64) for _ in range(SIZE + 1)] == [b"%d" % number for number in range(SIZE + 1)]


def test_time_that_is_over_leaves_the_rest_for_the_next_call():
    with connected() as (listener, client):
        batch = Batch(listener, echo)
        for number in range(5):
            client.send(b"%d" % number)
        for number in range(5):
            assert batch.is_empty is (number == 0)
            batch.answer(perf_counter())
            assert client.recv(64) == b"re:%d" % number
        assert batch.is_empty


def test_nothing_to_read_is_no_fault():
    with connected() as (listener, _):
        Batch(listener, echo).answer(FOREVER)


def test_replies_that_cannot_be_sent_are_counted():
    with connected() as (listener, client):
        batch = Batch(listener, echo)
        for message in (b"1", b"2", b"3"):
            client.send(message)
        listener.connect(client.getsockname())
        listener.shutdown(socket.SHUT_WR)
        batch.answer(FOREVER)
        assert batch.dropped == 3


def test_closed_socket_raises_oserror():
    with connected() as (listener, _):
        batch = Batch(listener, echo)
        listener.close()
        with pytest.raises(OSError, match="Bad file descriptor"):
            batch.answer(FOREVER)
