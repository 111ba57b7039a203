"""Ports that are free for UDP and TCP at once.

The stream socket chooses: a connection that has ended holds its port against it for a minute, so that
a port that suits a datagram socket may not suit both.
"""

import itertools
import os
import random
import socket
from typing import Final

_NEVER_CHOSEN: Final = range(20_000, 32_000)
"""Ports below those that Linux chooses from for sockets that ask for none (`ip_local_port_range`)."""
_WORKER: Final = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
_WORKERS: Final = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
_OWN: Final = _NEVER_CHOSEN[_WORKER::_WORKERS]
"""This process's share, so that tests that run side by side never choose one port."""
_candidates = itertools.cycle(random.sample(_OWN, len(_OWN)))


def port_for_both(host: str = "127.0.0.1") -> tuple[socket.socket, socket.socket]:
    """Return a stream and a datagram socket, neither blocking, bound to one port of an address."""
    while True:
        if (bound := _bind(host, 0)) is not None:
            return bound


def free_port(host: str = "127.0.0.1") -> int:
    """Return a port for a program to be started; `::` stands for all addresses of both families.

    It stays free until then: no other call returns it, and no socket gets it that asks for none.
    """
    for port in _candidates:
        if (bound := _bind(host, port)) is not None:
            for one in bound:
                one.close()
            return port
    raise AssertionError("unreachable: the candidates have no end")


def _bind(host: str, port: int) -> tuple[socket.socket, socket.socket] | None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    stream = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    datagrams = socket.socket(family, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
    try:
        stream.bind((host, port))
        datagrams.bind(stream.getsockname())
    except OSError:
        stream.close()
        datagrams.close()
        return None
    return stream, datagrams
