"""The command lines of the local add-on."""

from pathlib import Path

import pytest

from kubedns.local.options import ApiOptions, UpOptions, Wish, from_argv, help_text
from kubedns.shared.flags import UsageError


def test_files_may_stand_between_flags_and_after_two_dashes():
    options = from_argv(["api", "a.yaml", "--port", "0", "b.yaml", "--v=2", "--", "--c.yaml"])
    assert isinstance(options, ApiOptions)
    assert options.files == (Path("a.yaml"), Path("b.yaml"), Path("--c.yaml"))
    assert (options.port, options.verbosity) == (0, 2)


def test_denials_add_up():
    options = from_argv(["api", "--deny", "list:services", "--deny=*:nodes"])
    assert isinstance(options, ApiOptions)
    assert options.denied == {("list", "services"), ("*", "nodes")}


def test_up_takes_every_port_and_normalizes_the_domain():
    options = from_argv(["up", "--dnsmasq-port=5353", "--domain", "Corp.Local.", "m.yaml"])
    assert isinstance(options, UpOptions)
    assert (options.ports.dnsmasq, options.ports.kubedns, options.domain) == (5353, 10053, "corp.local")
    assert not options.demo


def test_the_demo_checks_when_told_to():
    options = from_argv(["demo", "--check"])
    assert isinstance(options, UpOptions)
    assert options.demo
    assert options.check


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ([], "no command given"),
        (["serve"], "unknown command 'serve'"),
        (["api", "--prot=1"], "unknown flag: --prot"),
        (["api", "--port"], "flag needs a value"),
        (["api", "--tls-key=k"], "one is missing"),
        (["api", "--deny=list"], "not VERB:RESOURCE"),
        (["api", "--deny=list:pods"], "not VERB:RESOURCE"),
        (["api", "--anonymous-auth"], "without --token-file"),
        (["api", "--logtostderr"], "unknown flag: --logtostderr"),
        (["up", "--domain=a..b"], "invalid value for --domain"),
        (["demo", "--domain=a.b"], "unknown flag: --domain"),
    ],
)
def test_a_wrong_command_line_is_named(argv, message):
    with pytest.raises(UsageError, match=message):
        from_argv(argv)


@pytest.mark.parametrize("command", ["", "api", "up", "demo"])
def test_help_is_there_for_each_command(command):
    argv = [command, "--help"] if command else ["--help"]
    assert from_argv(argv) == Wish(help_text(command))
    assert "Usage: python -m kubedns.local" in help_text(command)
