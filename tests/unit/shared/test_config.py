"""Configuration keys: what is taken, what it means, and what refuses the update."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kubedns.shared.config import LARGEST_VALUE, Config, InvalidConfigError, parse_config
from kubedns.shared.servers import ServerAddress

DOMAIN = "Cluster.Local."


def config(**values: str | bytes) -> Config:
    data = {key: value.encode() if isinstance(value, str) else value for key, value in values.items()}
    return parse_config(data, DOMAIN)[0]


def test_no_key_is_the_default():
    assert parse_config({}, DOMAIN) == (Config(), ())


def test_keys_are_taken_in_canonical_form():
    assert config(
        federations='{"Prod": "Fed.Example.Test."}',
        stubDomains='{"Corp_x.Test.": ["192.0.2.1", "[2001:DB8::1]:5353", "ns.Infra.test", "192.0.2.1:53"]}',
        upstreamNameservers='["192.0.2.2", "192.0.2.3:54", "2001:db8::2", "192.0.2.2:53"]',
    ) == Config(
        federations={"prod": "fed.example.test"},
        stub_domains={
            "corp_x.test": (
                ServerAddress("192.0.2.1"),
                ServerAddress("2001:db8::1", 5353),
                ServerAddress("ns.infra.test"),
            )
        },
        upstream_nameservers=(
            ServerAddress("192.0.2.2"),
            ServerAddress("192.0.2.3", 54),
            ServerAddress("2001:db8::2"),
        ),
    )


def test_two_spellings_of_one_configuration_are_equal():
    assert config(stubDomains='{"b.test":["192.0.2.1"],"a.test":["::1"]}') == config(
        stubDomains='\r\n{\r\n"A.test.": ["0:0::1"],\r\n"b.TEST": ["192.0.2.1:53"]}\r\n'
    )


@pytest.mark.parametrize(
    ("key", "empty"), [("federations", "{}"), ("stubDomains", "{}"), ("upstreamNameservers", "[]")]
)
@pytest.mark.parametrize("value", ["", " \r\n", "null", " null\n", None])
def test_an_empty_value_is_an_absent_key(key, empty, value):
    assert config(**{key: empty if value is None else value}) == Config()


def test_a_stub_domain_without_servers_has_no_effect_and_a_warning():
    parsed, warnings = parse_config({"stubDomains": b'{"a.test": [], "b.test": ["::1"]}'}, DOMAIN)
    assert set(parsed.stub_domains) == {"b.test"}
    assert "'a.test'" in warnings[0]


def test_unknown_keys_make_one_warning():
    parsed, warnings = parse_config({"stubdomains": b"{}", "b": b"\xff"}, DOMAIN)
    assert parsed == Config()
    assert len(warnings) == 1
    assert "'b', 'stubdomains'" in warnings[0]


JSON_KEYS = ("federations", "stubDomains", "upstreamNameservers")
WRONG_FOR_ALL = [
    (b"{", "not JSON"),
    (b'["192.0.2.1",]', "not JSON"),
    (b'{"a": 1,}', "not JSON"),
    (b"NaN", "not JSON"),
    (b"[1e999999, Infinity]", "not JSON"),
    (b'{"a": "b"} x', "not JSON"),
    (b"9" * 5000, "digits"),
    (b"true", "a boolean"),
    (b'""', "a string"),
    (b"0", "a number"),
    (b"\xef\xbb\xbf{}", "byte order mark"),
    (b'["\xff"]', "not UTF-8"),
    ('"x"'.encode("utf-16"), "not UTF-8"),
    (b"[" * 200_000, "nested too deeply"),
    (b'{"a":' * 200_000, "nested too deeply"),
    (b" " * (LARGEST_VALUE + 1), "larger than 1 MiB"),
]


@pytest.mark.parametrize("key", JSON_KEYS)
@pytest.mark.parametrize(("value", "reason"), WRONG_FOR_ALL, ids=range(len(WRONG_FOR_ALL)))
def test_what_is_wrong_for_every_key_is_refused(key, value, reason):
    with pytest.raises(InvalidConfigError, match=f"{key}: .*{reason}"):
        config(**{key: value})


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("stubDomains", '["192.0.2.1"]', "must be a JSON object"),
        ("stubDomains", '{"a.test": "192.0.2.1"}', "must be a JSON array"),
        ("stubDomains", '{"a.test": null}', "not null"),
        ("stubDomains", '{"a.test": [1]}', "must be a string"),
        ("stubDomains", '{"a.test": ["::1"], "a.test": ["::1"]}', "twice"),
        ("stubDomains", '{"a.test": ["::1"], "A.test": ["::1"]}', "twice"),
        ("stubDomains", '{"a.test": ["::1"], "a.test.": ["::1"]}', "twice"),
        ("stubDomains", '{"*": ["::1"]}', "not a DNS label"),
        ("stubDomains", '{"*.test": ["::1"]}', "not a DNS label"),
        ("stubDomains", '{"": ["::1"]}', "empty label"),
        ("stubDomains", '{".": ["::1"]}', "empty label"),
        ("stubDomains", '{".test": ["::1"]}', "empty label"),
        ("stubDomains", '{"a..test": ["::1"]}', "empty label"),
        ("stubDomains", '{"a/b": ["::1"]}', "not a DNS label"),
        ("stubDomains", '{"a\\u0000b": ["::1"]}', "not a DNS label"),
        ("stubDomains", '{"\\ud800": ["::1"]}', "not ASCII"),
        ("stubDomains", '{"cluster.local": ["::1"]}', "is the cluster domain"),
        ("stubDomains", '{"CLUSTER.LOCAL.": ["::1"]}', "is the cluster domain"),
        ("stubDomains", '{"svc.cluster.local": ["::1"]}', "inside the cluster domain"),
        ("stubDomains", '{"a.b.svc.Cluster.Local.": ["::1"]}', "inside the cluster domain"),
        ("stubDomains", '{"consul.cluster.local": ["::1"]}', "inside the cluster domain"),
        ("stubDomains", "[]", "must be a JSON object, not an array"),
        ("federations", "[]", "must be a JSON object, not an array"),
        ("upstreamNameservers", "{}", "must be a JSON array, not an object"),
        ("stubDomains", '{"a.test": {}}', "must be a JSON array, not an object"),
        ("stubDomains", '{"a.test": ["0x7f000001"]}', "is not an IP address"),
        ("stubDomains", '{"a.test": ["0X7F.1:53"]}', "is not an IP address"),
        ("stubDomains", '{"a.test": ["2130706433"]}', "is not an IP address"),
        ("stubDomains", '{"a.test": ["127.1"]}', "is not an IP address"),
        ("stubDomains", '{"a.test": ["010.0.0.1"]}', "is not an IP address"),
        ("stubDomains", '{"a.test": ["10.0.0.1."]}', "is not an IP address"),
        ("stubDomains", '{"a.test": ["192.0.2.1:0"]}', "not a port"),
        ("stubDomains", '{"a.test": ["fe80::1%eth0"]}', "zone id"),
        ("upstreamNameservers", '{"a": 1}', "must be a JSON array"),
        ("upstreamNameservers", '["ns.test"]', "not an IP address"),
        ("upstreamNameservers", "[null]", "must be a string"),
        ("upstreamNameservers", '["::1","::2","::3","::4"]', "at most 3"),
        ("federations", '{"a.b": "x.test"}', "not one DNS-1123 label"),
        ("federations", '{"a_b": "x.test"}', "not one DNS-1123 label"),
        ("federations", '{"a": "x..test"}', "empty label"),
        ("federations", '{"a": 1}', "must be a string"),
        ("federations", '{"a": "x.test", "A": "y.test"}', "twice"),
    ],
)
def test_a_wrong_value_is_refused_with_key_and_reason(key, value, reason):
    with pytest.raises(InvalidConfigError, match=f"{key}: .*{reason}"):
        config(**{key: value})


def test_a_domain_above_the_cluster_domain_may_be_a_stub():
    parsed = config(stubDomains='{"local": ["::1"], "uster.local": ["::1"], "notcluster.local": ["::1"]}')
    assert set(parsed.stub_domains) == {"local", "uster.local", "notcluster.local"}


@pytest.mark.parametrize(
    ("text", "federations"),
    [
        ("myfederation=example.com", {"myfederation": "example.com"}),
        (" a = x.test , B=Y.test.\n", {"a": "x.test", "b": "y.test"}),
        ("a=x.test,a=y.test", {"a": "y.test"}),
    ],
)
def test_federations_are_taken_in_the_form_of_the_original(text, federations):
    assert config(federations=text).federations == federations


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a=x.test,", "name=domain"),
        ("a=x.test,b", "'b' is not name=domain"),
        ("a=", "empty label"),
        ("a.b=x.test", "not one DNS-1123 label"),
        ("a", "write .*name=domain"),
        ("a: x.test", "write .*name=domain"),
    ],
)
def test_federations_in_a_form_that_nobody_takes_are_refused(text, reason):
    with pytest.raises(InvalidConfigError, match=f"federations: .*{reason}"):
        config(federations=text)


@pytest.mark.parametrize(
    ("key", "text", "advice"),
    [
        ("upstreamNameservers", "192.0.2.1", '["192.0.2.1"]'),
        ("upstreamNameservers", '"192.0.2.1"', '["192.0.2.1"]'),
        ("upstreamNameservers", "192.0.2.1, 192.0.2.2:54", '["192.0.2.1", "192.0.2.2:54"]'),
        ("upstreamNameservers", "- 192.0.2.1\n- '[2001:db8::1]:54'\n", '["192.0.2.1", "[2001:db8::1]:54"]'),
        ("upstreamNameservers", "['192.0.2.1']", '["192.0.2.1"]'),
        ("upstreamNameservers", '["192.0.2.1",]', '["192.0.2.1"]'),
        ("upstreamNameservers", "[192.0.2.1]", '["192.0.2.1"]'),
        ("upstreamNameservers", '["192.0.2.1,192.0.2.2"]', '["192.0.2.1", "192.0.2.2"]'),
        ("upstreamNameservers", "servers:\n- 192.0.2.1", '["192.0.2.53", "[2001:db8::53]:5353"]'),
        ("upstreamNameservers", '{"a": "192.0.2.1"}', '["192.0.2.53", "[2001:db8::53]:5353"]'),
        ("stubDomains", "{'a.test': ['192.0.2.1',],}", '{"a.test": ["192.0.2.1"]}'),
        ("stubDomains", '{"a.test": ["192.0.2.1"],}', '{"a.test": ["192.0.2.1"]}'),
        ("stubDomains", '{"a.test": "192.0.2.1"}', '["192.0.2.1"]'),
        ("stubDomains", '{"a.test": "192.0.2.1 192.0.2.2"}', '["192.0.2.1", "192.0.2.2"]'),
        ("stubDomains", "a.test:\n- 192.0.2.1\n", '{"corp.example": ["192.0.2.53"]}'),
        ("stubDomains", "a.test: 192.0.2.1", '{"corp.example": ["192.0.2.53"]}'),
        ("stubDomains", "192.0.2.1", '{"corp.example": ["192.0.2.53"]}'),
    ],
)
def test_what_people_write_instead_is_refused_with_the_form_to_write(key, text, advice):
    with pytest.raises(InvalidConfigError) as caught:
        config(**{key: text})
    assert str(caught.value).endswith(f"; write {advice}")


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("['192.0.2.1']", "double quotes"),
        ('["192.0.2.1",]', "a comma too many"),
        ("- 192.0.2.1", "it is YAML"),
    ],
)
def test_the_usual_slips_are_called_by_their_name(text, cause):
    with pytest.raises(InvalidConfigError, match=cause):
        config(upstreamNameservers=text)


@pytest.mark.parametrize("text", ["2001:db8::53:5353", "fd00::1:53", "::1:853"])
def test_port_that_is_taken_for_a_part_of_an_ipv6_address_is_warned_of(text):
    parsed, warnings = parse_config({"upstreamNameservers": f'["{text}"]'.encode()}, DOMAIN)
    assert parsed.upstream_nameservers == (ServerAddress(text),)
    (warning,) = warnings
    host, _, port = text.rpartition(":")
    assert "one IPv6 address" in warning
    assert f"[{host}]:{port}" in warning


@pytest.mark.parametrize(
    "text", ["2001:db8::53", "2001:4860:4860::8888", "fd00::10:2", "[::1:2]:53", "192.0.2.1:53"]
)
def test_ordinary_addresses_raise_no_doubt(text):
    assert parse_config({"upstreamNameservers": f'["{text}"]'.encode()}, DOMAIN)[1] == ()


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("stubdomains", "{}", "unknown key .*did you mean stubDomains"),
        ("else", "", "unknown key"),
        ("stubDomains", '{"a.test": []}', "'a.test' has no servers"),
    ],
)
def test_what_has_no_effect_is_an_error_for_who_is_strict(key, value, reason):
    data = {key: value.encode()}
    parse_config(data, DOMAIN)
    with pytest.raises(InvalidConfigError, match=f"{key}: .*{reason}"):
        parse_config(data, DOMAIN, strict=True)


def test_every_fault_of_an_update_is_named():
    with pytest.raises(InvalidConfigError) as caught:
        config(
            stubDomains='{"*": ["x:0"], "a.test": ["y:0", "z:0"]}', upstreamNameservers='["q"]', hosts="x y"
        )
    assert [error.key for error in caught.value.errors] == [
        "stubDomains",
        "stubDomains",
        "stubDomains",
        "upstreamNameservers",
        "hosts",
    ]
    for word in ("'*'", "'y:0'", "'z:0'", "'q'", "line 1"):
        assert word in str(caught.value)


def test_the_message_about_many_faults_stays_short():
    with pytest.raises(InvalidConfigError, match="and 99990 more") as caught:
        config(hosts="x\n" * 100_000)
    assert len(str(caught.value)) < 2000


def test_hosts_are_taken_in_canonical_form_and_order():
    text = "# head\r\n192.0.2.1\tWeb.Test. web.test  www # tail\n\n2001:DB8::1 six\n192.0.2.1 web.test www\n"
    assert config(hosts=text).hosts == "192.0.2.1 web.test www\n2001:db8::1 six\n"


def test_hosts_without_lines_are_an_absent_key():
    assert config(hosts="# nothing\n\n") == Config()


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("web.test 192.0.2.1", "'web.test' is not an IP address"),
        ("192.0.2.1", "has no name"),
        ("192.0.2.1 # web", "has no name"),
        ("192.0.2.1 192.0.2.2", "is not a name"),
        ("192.0.2.1 a..b", "empty label"),
        ("192.0.2.1 *.test", "not a DNS label"),
        ("fe80::1%lo web", "zone id"),
        ("192.0.2.1 web.default.svc.CLUSTER.local", "inside the cluster domain"),
        ("192.0.2.1 cluster.local.", "inside the cluster domain"),
        ("192.0.2.1 a\0b", "not a DNS label"),
    ],
)
def test_a_wrong_line_of_hosts_is_refused_with_its_number(line, reason):
    with pytest.raises(InvalidConfigError, match=f"hosts: line 2: .*{reason}"):
        config(hosts=f"192.0.2.9 ok\n{line}\n")


def test_without_a_known_cluster_domain_nothing_is_inside_it():
    parsed, _ = parse_config({"hosts": b"192.0.2.1 a.cluster.local", "stubDomains": b'{"local":["::1"]}'}, "")
    assert parsed.hosts == "192.0.2.1 a.cluster.local\n"
    assert "local" in parsed.stub_domains


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(
    st.dictionaries(
        st.sampled_from([*JSON_KEYS, "hosts", "x"]), st.binary(max_size=60) | st.text().map(str.encode)
    )
)
def test_any_octets_make_a_configuration_or_a_refusal(data):
    try:
        parsed, _ = parse_config(data, DOMAIN)
    except InvalidConfigError:
        return
    assert isinstance(parsed, Config)


def test_unknown_key_in_another_spelling_comes_with_the_right_one():
    _, warnings = parse_config({"stubdomains": b"{}", "else": b""}, "cluster.local.")
    assert warnings == (
        "unknown keys, which have no effect: 'else', 'stubdomains' (did you mean stubDomains?)",
    )
