"""Which name servers dnsmasq asks, from its arguments and resolv.conf."""

from kubedns.shared.servers import ServerAddress
from nanny.upstreams import upstream_servers

KUBEDNS = ServerAddress("127.0.0.1", 10053)
GIVEN = ("-k", "--server=/cluster.local/127.0.0.1#10053", "--server=/in-addr.arpa/127.0.0.1#10053")


def test_servers_of_the_configuration_alone_with_no_resolv():
    added = (
        "--server=/corp.test/192.0.2.9",
        "--server=192.0.2.1#5353",
        "--server=2001:db8::1",
        "--no-resolv",
    )
    assert upstream_servers((*GIVEN, *added), KUBEDNS) == [
        (ServerAddress("192.0.2.9"), "corp.test"),
        (ServerAddress("192.0.2.1", 5353), "."),
        (ServerAddress("2001:db8::1"), "."),
    ]


def test_servers_of_resolv_conf_without_no_resolv(tmp_path):
    path = tmp_path / "resolv.conf"
    path.write_text(
        "# none\nsearch x.test\nnameserver 192.0.2.7\nnameserver nonsense\nnameserver 2001:db8::7\n"
    )
    assert upstream_servers((*GIVEN, f"--resolv-file={path}"), KUBEDNS) == [
        (ServerAddress("192.0.2.7"), "."),
        (ServerAddress("2001:db8::7"), "."),
    ]


def test_resolv_conf_that_is_missing_names_none(tmp_path):
    assert upstream_servers(("-r", str(tmp_path / "none")), KUBEDNS) == []
