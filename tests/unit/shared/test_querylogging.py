"""The key `logQueries`."""

import pytest

from kubedns.shared.config import Config, InvalidConfigError, parse_config
from kubedns.shared.querylogging import QueryLogging


def key(text: str) -> Config:
    return parse_config({"logQueries": text.encode()}, "cluster.local")[0]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("10m", QueryLogging(600.0)),
        ("corp.example", QueryLogging(600.0, ("corp.example",))),
        ("1h30m Corp.Example. cluster.local", QueryLogging(5400.0, ("corp.example", "cluster.local"))),
        ("shop.svc.cluster.local, 90s\n", QueryLogging(90.0, ("shop.svc.cluster.local",))),
        ('"10m"', QueryLogging(600.0)),
        ("1h.example", QueryLogging(600.0, ("1h.example",))),
        ("", None),
        ("null", None),
        ("0", None),
        ("0s corp.example", None),
    ],
)
def test_words_are_a_duration_and_domains(text, wanted):
    config = key(text)
    assert config.log_queries == wanted
    if wanted is not None:
        assert key(config.as_keys()["logQueries"]) == config


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("10min", "not a duration"),
        ("10", "not a duration"),
        ("1m 2m", "two durations"),
        ("25h", "longer than 24h"),
        ("true", "neither a duration nor a domain"),
        ("-10m", "neither a duration nor a domain"),
        ('{"a": 1}', "neither a duration nor a domain"),
        ("*.example", "not a DNS label"),
    ],
)
def test_other_words_are_refused_with_the_reason(text, reason):
    with pytest.raises(InvalidConfigError, match=f"logQueries: .*{reason}"):
        key(text)
