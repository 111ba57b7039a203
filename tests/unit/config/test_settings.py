"""What is in force: keys before flags before resolv.conf, and nothing of a bad update."""

import logging
from typing import Any

import pytest

from kubedns.config.settings import Settings
from kubedns.dns.names import parse_domain
from kubedns.shared.config import Config
from kubedns.shared.report import Refusal
from kubedns.shared.servers import ServerAddress

FLAG, RESOLV, KEY = (ServerAddress(f"192.0.2.{last}") for last in (1, 2, 3))


class Applied(list[Config]):
    """The settings as they were applied, one by one."""

    def settings(self, *, flags: Config | None = None) -> Settings:
        return Settings(parse_domain("cluster.local"), flags or Config(), lambda: (RESOLV,), self.append)


async def test_upstreams_of_the_key_beat_the_flag_which_beats_resolv_conf():
    applied = Applied()
    settings = applied.settings(flags=Config(upstream_nameservers=(FLAG,)))
    settings.start()
    await settings.update({"upstreamNameservers": b'["192.0.2.3"]'}, "test")
    await settings.update({}, "test")
    assert [state.upstream_nameservers for state in applied] == [(FLAG,), (KEY,), (FLAG,)]
    bare = Applied()
    bare.settings().start()
    assert [state.upstream_nameservers for state in bare] == [(RESOLV,)]


async def test_configuration_that_is_there_at_the_start_is_applied_once_and_first():
    applied = Applied()
    settings = applied.settings()
    await settings.update({"upstreamNameservers": b'["192.0.2.3"]'}, "test")
    assert applied == []
    settings.start()
    assert [state.upstream_nameservers for state in applied] == [(KEY,)]


async def test_bad_update_is_refused_whole_and_the_last_good_one_stays(caplog: Any):
    applied = Applied()
    settings = applied.settings()
    settings.start()
    await settings.update({"stubDomains": b'{"corp.test": ["192.0.2.9"]}'}, "directory x")
    caplog.set_level(logging.ERROR)
    bad = {"stubDomains": b'{"corp.test": ["192.0.2.8"]}', "upstreamNameservers": b'["192.0.2.1:0"]'}
    await settings.update(bad, "directory x")
    assert applied[-1].stub_domains == {"corp.test": (ServerAddress("192.0.2.9"),)}
    (line,) = [record.getMessage() for record in caplog.records]
    assert "directory x" in line
    assert "upstreamNameservers" in line
    assert "last good configuration" in line
    assert settings.reloads == {"applied": 1, "refused": 1}


async def test_bad_configuration_at_the_start_means_the_flags(caplog: Any):
    applied = Applied()
    settings = applied.settings(flags=Config(upstream_nameservers=(FLAG,)))
    await settings.update({"stubDomains": b"{"}, "test")
    settings.start()
    assert [state.upstream_nameservers for state in applied] == [(FLAG,)]
    assert "the flags' settings" in caplog.text


@pytest.mark.parametrize("same", [b'{"corp.test": ["192.0.2.9"]}', b'{ "Corp.Test.": ["192.0.2.9:53"] }\r\n'])
async def test_update_without_effect_applies_nothing(same):
    applied = Applied()
    settings = applied.settings()
    settings.start()
    await settings.update({"stubDomains": b'{"corp.test": ["192.0.2.9"]}'}, "test")
    before = len(applied)
    await settings.update({"stubDomains": same}, "test")
    assert len(applied) == before
    assert settings.reloads == {"applied": 1, "unchanged": 1}


async def test_unknown_key_is_warned_of_once(caplog: Any):
    settings = Applied().settings()
    for _ in range(3):
        await settings.update({"stubdomain": b"{}"}, "test")
    assert caplog.text.count("stubdomain") == 1


async def test_change_of_resolv_conf_is_applied_once():
    applied, host = Applied(), [RESOLV]
    settings = Settings(parse_domain("cluster.local"), Config(), lambda: tuple(host), applied.append)
    settings.start()
    host[:] = [FLAG]
    settings.refresh()
    settings.refresh()
    assert [state.upstream_nameservers for state in applied] == [(RESOLV,), (FLAG,)]


async def test_unreadable_keys_leave_what_is_in_force():
    applied = Applied()
    settings = applied.settings()
    settings.start()
    await settings.update({"federations": b'{"mesh": "fed.test"}'}, "test")
    settings.unreadable(OSError("gone"))
    assert applied[-1].federations == {"mesh": "fed.test"}
    assert settings.reloads["unreadable"] == 1


async def test_federations_of_the_flag_count_until_the_key_names_some():
    applied = Applied()
    settings = applied.settings(flags=Config(federations={"old": "old.test"}))
    settings.start()
    await settings.update({"federations": b'{"mesh": "fed.test"}'}, "test")
    assert [state.federations for state in applied] == [{"old": "old.test"}, {"mesh": "fed.test"}]


async def test_refused_from_the_start_is_told_until_it_is_mended():
    settings = Applied().settings()
    await settings.update({"stubDomains": b"corp", "upstreamNameservers": b'["192.0.2.3"]'}, "directory x")
    settings.start()
    state = settings.configuration
    assert [fault.key for fault in state.refused] == ["stubDomains"]
    assert state.last_success is None
    assert state.in_force == {"upstreamNameservers": ["192.0.2.2:53"]}

    good = {"stubDomains": b'{"corp.test": ["192.0.2.9"]}', "federations": b'{"fed": "fed.test"}'}
    await settings.update(good, "directory x")
    state = settings.configuration
    assert state.refused == ()
    assert state.last_success is not None
    assert state.source == "directory x"
    assert state.in_force == {
        "upstreamNameservers": ["192.0.2.2:53"],
        "stubDomains": {"corp.test": ["192.0.2.9:53"]},
        "federations": {"fed": "fed.test"},
    }


async def test_unreadable_directory_is_told_with_the_reason():
    settings = Applied().settings()
    settings.unreadable(OSError("x cannot be read"))
    assert settings.configuration.refused == (Refusal("", "x cannot be read"),)
