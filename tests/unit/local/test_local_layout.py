"""Where the parts of the add-on listen."""

import socket
from dataclasses import astuple, replace
from pathlib import Path

import pytest

from kubedns.local.failure import StartError
from kubedns.local.layout import HOST, claim_ports, door, health_program, server_programs
from kubedns.local.options import Ports, UpOptions, from_argv
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


@pytest.mark.parametrize(("wiring", "at_the_door"), [("classic", "dnsmasq"), ("kubedns-first", "kubedns")])
def test_the_wiring_says_whom_clients_and_the_check_of_the_whole_way_ask(wiring, at_the_door):
    options = from_argv(["up", f"--wiring={wiring}", "--dnsmasq-port=1", "--kubedns-port=2"])
    assert isinstance(options, UpOptions)
    port = getattr(options.ports, at_the_door)
    assert door(options, options.ports) == port
    (check,) = [it for it in health_program(options, options.ports).command if "cluster," in it]
    assert f",{HOST}:{port}," in check
    kubedns, nanny = server_programs(options, options.ports, Path("config"), "dnsmasq")
    cached = [it for it in kubedns.command if it.startswith("--cache-server=")]
    assert cached == ([f"--cache-server={HOST}:1"] if wiring == "kubedns-first" else [])
    assert f"--server=/cluster.local/{HOST}#2" in nanny.command
