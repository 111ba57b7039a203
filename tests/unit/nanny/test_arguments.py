"""From configuration to the words after `dnsmasq`."""

import pytest

from kubedns.shared.config import Config, parse_config
from kubedns.shared.servers import ServerAddress
from nanny.arguments import (
    changed_user,
    cluster_domains,
    config_servers,
    conflicts,
    fixed_arguments,
    hosts_servers,
    names_servers_file,
    resolver_arguments,
    server_arguments,
    server_names,
)

KUBEDNS = ServerAddress("127.0.0.1", 10053)
ADDED = ("--keep-in-foreground", "--log-facility=-", "--pid-file=", "--local-ttl=30")


def config(stubs: str = "", upstreams: str = "") -> Config:
    return parse_config({"stubDomains": stubs.encode(), "upstreamNameservers": upstreams.encode()}, "")[0]


def test_given_arguments_come_first_and_stay_as_they_are():
    given = ("--cache-size=1000", "-p", "5300", "--server=/x/")
    assert fixed_arguments(given, root=False, files=()) == (*given, *ADDED)


def test_root_stays_root_so_that_the_parent_death_signal_holds():
    assert fixed_arguments((), root=True, files=()) == (*ADDED, "--user=root", "--group=root")


@pytest.mark.parametrize(
    "given",
    [
        ("-k", "--local-ttl=5", "--log-facility=/x", "--pid-file=/y", "--user=nobody", "--group=nobody"),
        ("--no-daemon", "--local-ttl=0", "-8", "-", "-x/y", "-unobody", "-g", "nobody"),
        ("-d", "--local-ttl", "7", "--log-facility", "-", "-x", "/y", "-u", "nobody", "-gnobody"),
    ],
)
def test_what_is_given_is_not_added(given):
    assert fixed_arguments(given, root=True, files=()) == given


def test_a_servers_file_that_is_given_is_found():
    assert names_servers_file(("--port=53", "--servers-file=/x"))
    assert names_servers_file(("--servers-file", "/x"))
    assert not names_servers_file(("--server=/x/", "-S"))


def test_names_of_hosts_are_kept_to_their_lines_but_not_those_of_stub_domains():
    hosts = b"192.0.2.7 www.test w\n192.0.2.8 www.test x.corp.test corp.test notcorp.test\n"
    config, _ = parse_config({"hosts": hosts, "stubDomains": b'{"corp.test": ["192.0.2.1"]}'}, "")
    names = ("www.test", "w", "notcorp.test")
    assert hosts_servers(config) == tuple(word for name in names for word in (f"/{name}/", f"/*.{name}/#"))


def test_resolver_arpa_goes_where_the_cluster_domain_goes():
    route = "--server=/resolver.arpa/127.0.0.1#10053"
    assert resolver_arguments(("--server=/corp.local/127.0.0.1#10053",), KUBEDNS) == (route,)
    assert resolver_arguments(("--server=/corp.local/127.0.0.1#10053", route), KUBEDNS) == ()
    assert resolver_arguments(("--server=/in-addr.arpa/127.0.0.1#10053",), KUBEDNS) == ()


def test_servers_are_arguments_without_a_place_for_a_file():
    assert server_arguments(("/a.test/192.0.2.1#53",)) == ("--server=/a.test/192.0.2.1#53",)


def test_the_hosts_file_is_named():
    assert fixed_arguments((), root=False, files=("--addn-hosts=/x/hosts",))[-1] == "--addn-hosts=/x/hosts"


def test_servers_of_stub_domains_come_before_upstreams():
    assert config_servers(
        config(
            '{"b.test": ["192.0.2.1:5353", "2001:db8::1"], "a.test": ["192.0.2.2"]}',
            '["192.0.2.3", "[::1]:54"]',
        ),
        {},
    ) == (
        "/a.test/192.0.2.2#53",
        "/b.test/192.0.2.1#5353",
        "/b.test/2001:db8::1#53",
        "192.0.2.3#53",
        "::1#54",
    )


def test_no_keys_make_no_servers():
    assert config_servers(Config(), {}) == ()


def test_names_of_servers_never_reach_dnsmasq():
    named = config('{"a.test": ["ns.test:5353", "192.0.2.9"], "b.test": ["gone.test"]}')
    assert server_names(named) == {"ns.test": ("a.test",), "gone.test": ("b.test",)}
    assert config_servers(named, {"ns.test": ("192.0.2.7", "192.0.2.8")}) == (
        "/a.test/192.0.2.7#5353",
        "/a.test/192.0.2.8#5353",
        "/a.test/192.0.2.9#53",
    )


def test_an_address_that_two_names_share_stands_once():
    named = config('{"a.test": ["one.test", "two.test"]}')
    assert len(config_servers(named, {"one.test": ("192.0.2.7",), "two.test": ("192.0.2.7",)})) == 1


@pytest.mark.parametrize(
    ("given", "domains"),
    [
        (("--server=/corp.local/127.0.0.1#10053",), ("corp.local",)),
        (("--server", "/Corp.Local./127.0.0.1#10053"), ("corp.local",)),
        (("-S", "/corp.local/127.0.0.1#10053"), ("corp.local",)),
        (("-S/corp.local/127.0.0.1#10053@lo",), ("corp.local",)),
        (("--local=/corp.local/in-addr.arpa/ip6.arpa/127.0.0.1#10053",), ("corp.local",)),
        (("--server=/corp.local/127.0.0.1",), ()),
        (("--server=/corp.local/",), ()),
        (("--server=127.0.0.1#10053",), ()),
        (("--server=/in-addr.arpa/127.0.0.1#10053",), ()),
        (("--server",), ()),
        (("--servers-file=/corp.local/127.0.0.1#10053",), ()),
    ],
)
def test_the_cluster_domain_is_what_is_sent_to_kube_dns(given, domains):
    assert cluster_domains(given, KUBEDNS) == domains


def test_a_given_server_for_all_names_competes_with_upstreams():
    given = ("--server=127.0.0.1#10053", "--server=/corp.local/127.0.0.1#10053")
    (warning,) = conflicts(given, config(upstreams='["192.0.2.3"]'))
    assert "--server=127.0.0.1:10053" in warning
    assert conflicts(given, Config()) == ()


def test_a_stub_domain_that_is_routed_already_is_warned_about():
    given = ("--server=/in-addr.arpa/127.0.0.1#10053",)
    (warning,) = conflicts(given, config('{"in-addr.arpa": ["192.0.2.3"], "a.test": ["192.0.2.3"]}'))
    assert "in-addr.arpa is also routed" in warning


@pytest.mark.parametrize(
    ("given", "user"),
    [
        ((), None),
        (("--user=root",), None),
        (("--user=nobody",), "nobody"),
        (("-u", "x"), "x"),
        (("-ux",), "x"),
    ],
)
def test_a_changed_user_is_noticed(given, user):
    assert changed_user(given) == user
