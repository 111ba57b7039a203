"""One port for DNS, over UDP and TCP."""

from collections.abc import Callable
from typing import Final

from kubedns.shared.listeners import PortBusyError
from kubedns.transport.tcp import TcpServer
from kubedns.transport.udp import UdpServer

_ATTEMPTS: Final = 10


async def listen(udp: UdpServer, tcp: TcpServer, host: str, port: int, ready: Callable[[int], None]) -> int:
    """Listen at one port, and return it; where 0 was asked for, one that is free for both.

    `ready` is called with the port before the first question can come.  Raises PortBusyError, and
    OSError.
    """
    for attempt in range(1, _ATTEMPTS + 1):
        found = udp.start(host, port)
        ready(found)
        try:
            return await tcp.start(host, found)
        except PortBusyError:
            udp.stop()
            if port or attempt == _ATTEMPTS:
                raise
    raise AssertionError
