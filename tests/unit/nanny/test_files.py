"""The files that dnsmasq reads again on SIGHUP."""

import pytest

from nanny.files import open_files


def test_the_file_is_there_from_the_start_and_replaced_whole(tmp_path):
    files = open_files(tmp_path, servers=True)
    assert files is not None
    assert files.hosts.path.read_text() == ""
    before = files.hosts.path.stat().st_ino
    assert files.hosts.write("192.0.2.1 a\n")
    assert files.hosts.path.read_text() == "192.0.2.1 a\n"
    assert files.hosts.path.stat().st_ino != before
    assert sorted(entry.name for entry in files.hosts.path.parent.iterdir()) == ["hosts", "servers"]


def test_the_same_lines_are_no_change(tmp_path):
    files = open_files(tmp_path, servers=True)
    assert files is not None
    assert not files.hosts.write("")
    assert files.hosts.write("192.0.2.1 a\n")
    assert not files.hosts.write("192.0.2.1 a\n")


def test_the_arguments_name_the_files_and_a_servers_file_of_others_is_left_alone(tmp_path):
    both, one = open_files(tmp_path, servers=True), open_files(tmp_path, servers=False)
    assert both is not None
    assert one is not None
    assert both.arguments == (f"--addn-hosts={tmp_path}/hosts", f"--servers-file={tmp_path}/servers")
    assert one.arguments == (f"--addn-hosts={tmp_path}/hosts",)


def test_a_given_directory_stays_and_the_file_goes(tmp_path):
    files = open_files(tmp_path, servers=True)
    assert files is not None
    files.close()
    assert list(tmp_path.iterdir()) == []


def test_a_temporary_directory_is_made_where_tmpdir_says_and_goes(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    files = open_files(None, servers=True)
    assert files is not None
    assert files.hosts.path.parent.parent == tmp_path
    files.close()
    assert list(tmp_path.iterdir()) == []


def test_a_tmpdir_that_is_missing_is_passed_over(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path / "missing"))
    files = open_files(None, servers=True)
    assert files is not None
    files.close()


def test_a_given_directory_that_is_missing_is_an_error_and_is_not_made(tmp_path):
    with pytest.raises(FileNotFoundError):
        open_files(tmp_path / "missing", servers=True)
    assert list(tmp_path.iterdir()) == []


def test_a_given_directory_that_is_a_file_is_an_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(NotADirectoryError):
        open_files(tmp_path / "file", servers=True)
