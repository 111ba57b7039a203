"""Listening TCP sockets on both families, for DNS and for HTTP."""

import errno
import socket
from typing import Final

BACKLOG: Final = 1024
_WITHOUT_IPV6: Final = {errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL}


class PortBusyError(OSError):
    """The port of a listener is taken; the text names it and what it was for."""


def tcp_listeners(host: str, port: int, what: str) -> list[socket.socket]:
    """Return sockets that listen at an IP address; `::` stands for all addresses of both families.

    With port 0 both families get the same free port; a host without IPv6 gets IPv4 alone.  Raises
    PortBusyError, which begins with `what`, when the port is taken, and OSError for any other reason.
    """
    if host != "::":
        return [_listener(host, port, what)]
    four = _listener("0.0.0.0", port, what)
    try:
        return [four, _listener("::", four.getsockname()[1], what)]
    except OSError as error:
        if error.errno in _WITHOUT_IPV6:
            return [four]
        four.close()
        raise


def _listener(host: str, port: int, what: str) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listener.bind((host, port))
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise PortBusyError(f"{what} is in use by another process") from error
        raise
    return listener
