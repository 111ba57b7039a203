"""Ports that are free for UDP and TCP at once.

The stream socket chooses: a connection that has ended holds its port against it for a minute, so that
a port that suits a datagram socket may not suit both.
"""

import socket


def port_for_both(host: str = "127.0.0.1") -> tuple[socket.socket, socket.socket]:
    """Return a stream and a datagram socket, neither blocking, bound to one port of an address."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    while True:
        stream = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        datagrams = socket.socket(family, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        stream.bind((host, 0))
        try:
            datagrams.bind(stream.getsockname())
        except OSError:
            stream.close()
            datagrams.close()
            continue
        return stream, datagrams


def free_port(host: str = "127.0.0.1") -> int:
    """Return a port that is free now; `::` stands for all addresses of both families."""
    stream, datagrams = port_for_both(host)
    with stream, datagrams:
        return int(stream.getsockname()[1])
