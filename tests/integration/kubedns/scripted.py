"""A name server that says what a script makes of each query, over UDP and TCP on one port."""

import socketserver
import threading
from collections.abc import Callable
from typing import Self

import dns.message

from tests.ports import free_port

Script = Callable[[dns.message.Message], dns.message.Message]
_LARGEST_MESSAGE = 65535


class ScriptedServer:
    """Answers until its context is left; `where` is its address, `asked` the queries in order.

    Whoever keeps a connection to it must end first: leaving waits for the connections to close.
    """

    def __init__(self, script: Script) -> None:
        self._script = script
        self.asked: list[dns.message.Message] = []
        address = ("127.0.0.1", free_port())
        self.where = f"{address[0]}:{address[1]}"
        over_udp, over_tcp = _handlers(self._answer)
        self._servers = (
            socketserver.ThreadingUDPServer(address, over_udp),
            socketserver.ThreadingTCPServer(address, over_tcp),
        )
        self._threads = [threading.Thread(target=server.serve_forever) for server in self._servers]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        for server in self._servers:
            server.shutdown()
        for thread in self._threads:
            thread.join()
        for server in self._servers:
            server.server_close()

    def asked_for(self, name: str) -> list[dns.message.Message]:
        """Return the queries for a name, given with its final dot."""
        return [query for query in self.asked if query.question[0].name.to_text() == name]

    def _answer(self, wire: bytes) -> bytes:
        query = dns.message.from_wire(wire)
        self.asked.append(query)
        return self._script(query).to_wire(max_size=_LARGEST_MESSAGE)


def _handlers(
    answer: Callable[[bytes], bytes],
) -> tuple[type[socketserver.BaseRequestHandler], type[socketserver.BaseRequestHandler]]:
    """Return what serves a datagram, and what serves a connection."""

    class OverUdp(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            wire, socket = self.request
            socket.sendto(answer(wire), self.client_address)

    class OverTcp(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            while length := self.rfile.read(2):
                reply = answer(self.rfile.read(int.from_bytes(length)))
                self.wfile.write(len(reply).to_bytes(2) + reply)

    return OverUdp, OverTcp
