"""Addresses of servers as written by people."""

import pytest

from kubedns.dns.names import parse_name
from kubedns.shared.servers import ServerAddress, parse_server


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("192.0.2.1", "192.0.2.1", 53),
        ("192.0.2.1:5353", "192.0.2.1", 5353),
        (" 192.0.2.1 ", "192.0.2.1", 53),
        ("2001:DB8:0::1", "2001:db8::1", 53),
        ("[2001:db8::1]", "2001:db8::1", 53),
        ("[2001:db8::1]:65535", "2001:db8::1", 65535),
        ("::1", "::1", 53),
    ],
)
def test_an_address_is_taken_in_every_spelling(text, host, port):
    server = parse_server(text, hostnames=False)
    assert server == ServerAddress(host, port)
    assert server.is_ip


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("NS.Example.Test.", "ns.example.test", 53),
        ("ns.example.test:5353", "ns.example.test", 5353),
        ("_dns.example", "_dns.example", 53),
    ],
)
def test_a_hostname_is_taken_where_names_are_allowed(text, host, port):
    server = parse_server(text, hostnames=True)
    assert server == ServerAddress(host, port)
    assert not server.is_ip
    with pytest.raises(ValueError, match="is not an IP address"):
        parse_server(text, hostnames=False)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "empty"),
        ("192.0.2.1:0", "not a port"),
        ("192.0.2.1:65536", "not a port"),
        ("192.0.2.1:abc", "not a port"),
        ("192.0.2.1:", "not a port"),
        ("192.0.2.1:٣", "not a port"),
        (":53", "no address"),
        ("192.0.2.1#5353", "'#'"),
        ("192.0.2.256", "not an IP address"),
        ("192.0.2.01", "not an IP address"),
        ("192.0.2", "not an IP address"),
        ("fe80::1%eth0", "zone id"),
        ("[fe80::1%eth0]:53", "zone id"),
        ("[192.0.2.1]:53", "not of the form"),
        ("[2001:db8::1", "not of the form"),
        ("[2001:db8::1]53", "not of the form"),
        ("2001:db8::1::", "not an IP address"),
        ("0.0.0.0", "can have"),
        ("::", "can have"),
        ("224.0.0.251", "can have"),
        ("ns..test", "empty label"),
        ("-ns.test", "not a DNS label"),
        ("ns.test/x", "not a DNS label"),
        ("*.test", "not a DNS label"),
        ("bücher.test", "xn--"),
        (f"{'a' * 64}.test", "not a DNS label"),
        ("a." * 127 + "test", "longer than 253"),
    ],
)
def test_a_wrong_server_is_refused_with_the_reason(text, reason):
    with pytest.raises(ValueError, match=reason):
        parse_server(text, hostnames=True)


@pytest.mark.parametrize(
    ("server", "text"),
    [
        (ServerAddress("192.0.2.1"), "192.0.2.1:53"),
        (ServerAddress("2001:db8::1", 54), "[2001:db8::1]:54"),
        (ServerAddress("ns.test", 54), "ns.test:54"),
    ],
)
def test_the_text_of_a_server_names_the_same_server(server, text):
    assert str(server) == text
    assert parse_server(text, hostnames=True) == server


def test_a_long_wrong_name_is_cut_in_the_message():
    with pytest.raises(ValueError, match="longer than 253") as caught:
        parse_name("x" * 1_000_000)
    assert len(str(caught.value)) < 200
