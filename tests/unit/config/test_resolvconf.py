"""resolv.conf as glibc reads it, without what a pod cannot use."""

import logging
import os
from pathlib import Path

import pytest

from kubedns.config.resolvconf import ResolvConf


def servers(tmp_path: Path, content: str | bytes) -> list[str]:
    path = tmp_path / "resolv.conf"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return [server.host for server in ResolvConf(path).read()]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("nameserver 192.0.2.1\nnameserver 2001:DB8::1\n", ["192.0.2.1", "2001:db8::1"]),
        ("search corp.test\noptions ndots:5\nnameserver\t192.0.2.1", ["192.0.2.1"]),
        (
            "nameserver 192.0.2.1 # the first\nnameserver 192.0.2.2;x\nnameserver 192.0.2.3#y\n",
            ["192.0.2.1", "192.0.2.2", "192.0.2.3"],
        ),
        ("".join(f"nameserver 192.0.2.{n}\n" for n in range(1, 6)), ["192.0.2.1", "192.0.2.2", "192.0.2.3"]),
        ("nameserver 192.0.2.1\r\nnameserver 192.0.2.2\r\n", ["192.0.2.1", "192.0.2.2"]),
        ("nameserver fe80::1%eth0\n", ["fe80::1%eth0"]),
        (" nameserver 192.0.2.1\n#nameserver 192.0.2.2\nnameservers 192.0.2.3\n", []),
        (b"nameserver 192.0.2.1\n\xff\xfe\x00garbage\n", ["192.0.2.1"]),
        ("", []),
    ],
)
def test_nameservers_are_read_as_glibc_does(tmp_path, content, expected):
    assert servers(tmp_path, content) == expected


@pytest.mark.parametrize("host", ["127.0.0.53", "::1", "0.0.0.0", "::", "::ffff:127.0.0.1"])
def test_own_host_is_left_out_with_a_warning(tmp_path, caplog, host):
    with caplog.at_level(logging.WARNING):
        assert servers(tmp_path, f"nameserver {host}\nnameserver 192.0.2.1\n") == ["192.0.2.1"]
    assert "is left out, it is this host itself" in caplog.text


@pytest.mark.parametrize("line", ["nameserver", "nameserver resolver.example", "nameserver 192.0.2.256"])
def test_line_without_an_address_is_left_out_with_a_warning(tmp_path, caplog, line):
    assert servers(tmp_path, f"{line}\nnameserver 192.0.2.1\n") == ["192.0.2.1"]
    assert "names no IP address" in caplog.text


def test_missing_file_has_no_servers_and_warns(tmp_path, caplog):
    assert ResolvConf(tmp_path / "absent").read() == ()
    assert "absent: No such file or directory" in caplog.text


def test_file_is_read_again_only_when_it_changed(tmp_path):
    path = tmp_path / "resolv.conf"
    path.write_text("nameserver 192.0.2.1\n")
    conf = ResolvConf(path)
    assert len(conf.read()) == 1
    assert not conf.has_changed()
    other = tmp_path / "new"
    other.write_text("nameserver 192.0.2.2\n")
    os.replace(other, path)
    assert conf.has_changed()
    assert [server.host for server in conf.read()] == ["192.0.2.2"]
    assert not conf.has_changed()
    path.unlink()
    assert conf.has_changed()
    assert conf.read() == ()
    assert not conf.has_changed()
