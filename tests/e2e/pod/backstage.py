"""What a pod meets in its cluster: the API server over TLS, and the node's resolver.

In: the node's address.  Out: a CA, an account's token, objects that change, questions counted.
Both servers run on one event loop in a thread of their own, so that tests may block.
"""

import asyncio
import threading
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable
from pathlib import Path
from typing import Any, TypeVar, cast

from dnslib import QTYPE, RR, A, DNSRecord

from kubedns.local.api.server import LocalApi
from tests.e2e.pod.network import run

T = TypeVar("T")
UPSTREAM_ADDRESS = "192.0.2.53"
STUB_ADDRESS = "192.0.2.99"


class Resolver(asyncio.DatagramProtocol):
    """Answers every A question with one address, TTL 1, anything else with nothing; counts names."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._transport: asyncio.DatagramTransport | None = None
        self.asked: Counter[str] = Counter()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.DatagramTransport", transport)

    def datagram_received(self, data: bytes, addr: tuple[str | Any, int]) -> None:
        question = DNSRecord.parse(data)
        self.asked[str(question.q.qname).rstrip(".").lower()] += 1
        reply = question.reply()
        if question.q.qtype == QTYPE.A:
            reply.add_answer(RR(question.q.qname, QTYPE.A, rdata=A(self._address), ttl=1))
        assert self._transport is not None
        self._transport.sendto(reply.pack(), addr)


class Backstage:
    """API server and resolvers at one address; `start` before use, `close` at the end."""

    def __init__(self, address: str, directory: Path) -> None:
        self.address = address
        self.authority, certificate, key = _certificates(address, directory)
        self._token_file = directory / "tokens"
        self.accept_tokens("first-token")
        self.api = LocalApi(host=address, tls=(certificate, key), token_file=self._token_file)
        self.upstream, self.stub = Resolver(UPSTREAM_ADDRESS), Resolver(STUB_ADDRESS)
        self.upstream_port = self.stub_port = 0
        self._transports: list[asyncio.DatagramTransport] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="backstage")

    def start(self) -> None:
        """Listen; the ports are known afterwards."""
        self._thread.start()
        self._await(self.api.start())
        self.upstream_port = self._await(self._listen(self.upstream))
        self.stub_port = self._await(self._listen(self.stub))

    def accept_tokens(self, *tokens: str) -> None:
        """Let these tokens in, and no other, from now on."""
        self._token_file.write_text("\n".join(tokens) + "\n")

    def apply(self, *objects: dict[str, Any]) -> None:
        """Create or replace objects."""
        self._call(lambda: self.api.apply_all(objects))

    def apply_many(self, objects: Iterable[dict[str, Any]], batch: int = 500) -> None:
        """Create or replace many objects, with turns of the loop between."""
        rest = list(objects)
        while rest:
            self.apply(*rest[:batch])
            del rest[:batch]

    def delete(self, kind: str, name: str, namespace: str) -> None:
        """Delete an object."""
        self._call(lambda: self.api.delete(kind, name, namespace))

    def stop_api(self) -> None:
        """Take the API server down; its objects stay."""
        self._await(self.api.stop())

    def start_api(self) -> None:
        """Bring it back, on the same port."""
        self._await(self.api.start())

    def close(self) -> None:
        """Stop everything."""
        self._await(self.api.stop())
        for transport in self._transports:
            self._call(transport.abort)
        self._await(asyncio.sleep(0))
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _listen(self, resolver: Resolver) -> int:
        transport, _ = await self._loop.create_datagram_endpoint(
            lambda: resolver, local_addr=(self.address, 0)
        )
        self._transports.append(transport)
        port: int = transport.get_extra_info("sockname")[1]
        return port

    def _await(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(timeout=60)

    def _call(self, function: Callable[[], None]) -> None:
        async def called() -> None:
            function()

        self._await(called())


def _certificates(address: str, directory: Path) -> tuple[str, Path, Path]:
    """Return a CA's certificate as text, and files of a certificate for `address` and its key."""
    ca, ca_key, certificate, key = (directory / name for name in ("ca.crt", "ca.key", "api.crt", "api.key"))
    new_key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2")
    run(
        "openssl", "req", "-x509", *new_key, "-subj", "/CN=kubernetes-ca", "-keyout", str(ca_key), "-out", str(ca),
        "-addext", "keyUsage=critical,keyCertSign",
    )  # fmt: skip
    run(
        "openssl", "req", "-x509", *new_key, "-subj", "/CN=kube-apiserver", "-CA", str(ca), "-CAkey", str(ca_key),
        "-addext", f"subjectAltName=IP:{address}", "-addext", "basicConstraints=critical,CA:FALSE",
        "-keyout", str(key), "-out", str(certificate),
    )  # fmt: skip
    return ca.read_text(), certificate, key
