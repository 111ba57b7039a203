"""Where the parts of the add-on listen."""

import socket
from dataclasses import astuple, replace

import pytest

from kubedns.local.failure import StartError
from kubedns.local.layout import HOST, claim_ports
from kubedns.local.options import Ports
from tests.ports import free_port

ANY = Ports(*[0] * 7)


def test_each_0_becomes_a_port_of_its_own():
    assert len({*astuple(claim_ports(ANY)), 0}) == 8


def test_a_port_that_is_given_stays():
    port = free_port()
    assert claim_ports(replace(ANY, nanny_metrics=port)).nanny_metrics == port


@pytest.mark.parametrize(("kind", "family"), [(socket.SOCK_STREAM, "TCP"), (socket.SOCK_DGRAM, "UDP")])
def test_a_port_in_use_is_named_with_its_flag(kind, family):
    port = free_port()
    with socket.socket(socket.AF_INET, kind) as taken:
        taken.bind((HOST, port))
        if kind == socket.SOCK_STREAM:
            taken.listen()
        with pytest.raises(StartError, match=rf"{family} port {port} is in use .*--dnsmasq-port"):
            claim_ports(replace(ANY, dnsmasq=port))
