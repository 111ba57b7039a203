"""The file with the lines of the hosts key."""

import pytest

from nanny.hosts import open_hosts


def test_the_file_is_there_from_the_start_and_replaced_whole(tmp_path):
    hosts = open_hosts(tmp_path)
    assert hosts is not None
    assert hosts.path.read_text() == ""
    before = hosts.path.stat().st_ino
    assert hosts.write("192.0.2.1 a\n")
    assert hosts.path.read_text() == "192.0.2.1 a\n"
    assert hosts.path.stat().st_ino != before
    assert [entry.name for entry in hosts.path.parent.iterdir()] == ["hosts"]


def test_the_same_lines_are_no_change(tmp_path):
    hosts = open_hosts(tmp_path)
    assert hosts is not None
    assert not hosts.write("")
    assert hosts.write("192.0.2.1 a\n")
    assert not hosts.write("192.0.2.1 a\n")


def test_a_given_directory_stays_and_the_file_goes(tmp_path):
    hosts = open_hosts(tmp_path)
    assert hosts is not None
    hosts.close()
    assert list(tmp_path.iterdir()) == []


def test_a_temporary_directory_is_made_where_tmpdir_says_and_goes(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    hosts = open_hosts(None)
    assert hosts is not None
    assert hosts.path.parent.parent == tmp_path
    hosts.close()
    assert list(tmp_path.iterdir()) == []


def test_a_tmpdir_that_is_missing_is_passed_over(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path / "missing"))
    hosts = open_hosts(None)
    assert hosts is not None
    hosts.close()


def test_a_given_directory_that_is_missing_is_an_error_and_is_not_made(tmp_path):
    with pytest.raises(FileNotFoundError):
        open_hosts(tmp_path / "missing")
    assert list(tmp_path.iterdir()) == []


def test_a_given_directory_that_is_a_file_is_an_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(NotADirectoryError):
        open_hosts(tmp_path / "file")
