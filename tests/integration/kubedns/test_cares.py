"""A c-ares client, which holds a server that has sent an EDNS cookie to sending them for ever (RFC 7873 5.3)."""

from concurrent.futures import Future
from typing import Any

import dns.edns
import dns.message
import dns.rrset
import pycares
import pytest

from tests.integration.kubedns.programs import PATIENCE_SECONDS
from tests.integration.kubedns.scripted import ScriptedServer

pytestmark = pytest.mark.integration
OUTSIDE, OUTSIDE_ADDRESS = "www.corp.test", "192.0.2.1"
CLUSTER, CLUSTER_ADDRESS = "web.default.svc.cluster.local", "10.96.10.1"


def with_cookies_outside(query: dns.message.Message) -> dns.message.Message:
    """Answer with one address, and for the outside name with a cookie to the client's."""
    reply = dns.message.make_response(query, recursion_available=True)
    name = query.question[0].name
    reply.answer = [dns.rrset.from_text(name, 60, "IN", "A", OUTSIDE_ADDRESS)]
    if name.to_text(omit_final_dot=True) == OUTSIDE:
        theirs = next((bytes(it.to_wire()) for it in query.options if it.otype == dns.edns.COOKIE), bytes(8))
        cookie = dns.edns.GenericOption(dns.edns.COOKIE, theirs[:8] + b"our half")
        reply.use_edns(0, payload=1232, options=[cookie])
    return reply


class Client:
    """A channel of c-ares that sends each question once; an answer that it does not take is a time-out."""

    def __init__(self, server: str, patience: float) -> None:
        flags = pycares.ARES_FLAG_EDNS
        self._channel = pycares.Channel(flags=flags, servers=[server], tries=1, timeout=patience)

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self._channel.close()

    def addresses(self, name: str) -> list[str] | str:
        """Return the addresses of a name, or the error's name."""
        done: Future[list[str] | str] = Future()

        def called(found: Any, error: int | None) -> None:
            if error is not None:
                done.set_result(pycares.errno.errorcode[error])
            else:
                done.set_result([record.data.addr for record in found.answer])

        self._channel.query(name, pycares.QUERY_TYPE_A, callback=called)
        return done.result(PATIENCE_SECONDS)


def test_cluster_name_is_taken_after_an_outside_name_of_an_upstream_with_cookies(start, cases_api):
    with ScriptedServer(with_cookies_outside) as upstream:
        flags = f"--kube-master-url={cases_api.url}", f"--nameservers={upstream.where}"
        server = start(*flags).synced()
        with Client(f"127.0.0.1:{server.dns_port}", PATIENCE_SECONDS / 3) as client:
            assert client.addresses(OUTSIDE) == [OUTSIDE_ADDRESS]
            assert client.addresses(CLUSTER) == [CLUSTER_ADDRESS]


def test_client_gives_up_on_a_server_that_stops_sending_cookies():
    with ScriptedServer(with_cookies_outside) as server, Client(server.where, 2.0) as client:
        assert client.addresses(OUTSIDE) == [OUTSIDE_ADDRESS]
        assert client.addresses(CLUSTER) == "ARES_ETIMEOUT"
        assert len(server.asked) == 2
