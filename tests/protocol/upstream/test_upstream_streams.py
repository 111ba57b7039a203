"""Idle connections to an upstream: how many are kept and which are handed out."""

import socket

from kubedns.upstream.streams import MOST_IDLE, IdleStreams


def pair() -> tuple[socket.socket, socket.socket]:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    return ours, theirs


async def test_last_connection_given_is_taken_first():
    streams = IdleStreams()
    pairs = [pair() for _ in range(2)]
    for ours, _ in pairs:
        streams.give(ours)
    assert streams.take() is pairs[1][0]
    assert streams.take() is pairs[0][0]
    assert streams.take() is None
    streams.close()
    for ours, theirs in pairs:
        ours.close()
        theirs.close()


async def test_no_more_than_the_most_are_kept():
    streams = IdleStreams()
    pairs = [pair() for _ in range(MOST_IDLE + 3)]
    for ours, _ in pairs:
        streams.give(ours)
    assert [ours.fileno() == -1 for ours, _ in pairs] == [True] * 3 + [False] * MOST_IDLE
    streams.close()
    assert all(ours.fileno() == -1 for ours, _ in pairs)
    for _, theirs in pairs:
        theirs.close()


async def test_connection_closed_or_spoken_on_by_the_server_is_not_handed_out():
    streams = IdleStreams()
    closed, spoken = pair(), pair()
    streams.give(closed[0])
    streams.give(spoken[0])
    closed[1].close()
    spoken[1].send(b"x")
    assert streams.take() is None
    assert closed[0].fileno() == spoken[0].fileno() == -1
    spoken[1].close()
    streams.close()
