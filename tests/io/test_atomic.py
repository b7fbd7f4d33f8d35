"""Atomic writing: the new file whole, or the old one untouched and nothing else."""

import os
import stat

import pytest

from factorwise.io.atomic import atomic_binary, atomic_text


def names(folder):
    return sorted(entry.name for entry in folder.iterdir())


def test_bytes_and_text_arrive_whole(tmp_path):
    with atomic_binary(tmp_path / "bytes") as stream:
        stream.write(b"\x00\r\n")
    with atomic_text(tmp_path / "text") as stream:
        stream.write("größer\n")
    assert (tmp_path / "bytes").read_bytes() == b"\x00\r\n"
    assert (tmp_path / "text").read_bytes() == "größer\n".encode()
    assert names(tmp_path) == ["bytes", "text"]


def test_text_can_have_another_encoding(tmp_path):
    with atomic_text(tmp_path / "text", encoding="latin-1") as stream:
        stream.write("ä")
    assert (tmp_path / "text").read_bytes() == b"\xe4"


def test_the_name_appears_only_at_the_end(tmp_path):
    target = tmp_path / "file"
    with atomic_text(target) as stream:
        stream.write("new")
        assert not target.exists()
    assert target.read_text() == "new"


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit, GeneratorExit])
@pytest.mark.parametrize("opened", [atomic_binary, atomic_text])
def test_any_exception_leaves_the_old_file_and_nothing_else(tmp_path, error, opened):
    target = tmp_path / "file"
    target.write_text("old")

    def fail():
        with opened(target) as stream:
            stream.write("new" if opened is atomic_text else b"new")
            raise error

    with pytest.raises(error):
        fail()
    assert target.read_text() == "old"
    assert names(tmp_path) == ["file"]


@pytest.mark.parametrize("function", ["fsync", "replace"])
def test_a_failure_of_the_system_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch, function):
    target = tmp_path / "file"
    target.write_text("old")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, function, full)
    with pytest.raises(OSError, match="No space left"), atomic_text(target) as stream:
        stream.write("new")
    assert target.read_text() == "old"
    assert names(tmp_path) == ["file"]


def test_text_that_cannot_be_encoded_leaves_nothing(tmp_path):
    with pytest.raises(UnicodeEncodeError), atomic_text(tmp_path / "file") as stream:
        stream.write("\ud800")
    assert names(tmp_path) == []


def test_permissions_of_a_replaced_file_are_kept(tmp_path):
    target = tmp_path / "file"
    target.write_text("old")
    target.chmod(0o640)
    with atomic_text(target) as stream:
        stream.write("new")
    assert stat.S_IMODE(target.stat().st_mode) == 0o640


def test_a_new_file_has_the_permissions_of_any_new_file(tmp_path):
    (tmp_path / "plain").write_text("")
    with atomic_text(tmp_path / "atomic") as stream:
        stream.write("")
    assert (tmp_path / "atomic").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_a_link_is_followed(tmp_path):
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    with atomic_text(tmp_path / "link") as stream:
        stream.write("new")
    assert (tmp_path / "real").read_text() == "new"
    assert (tmp_path / "link").is_symlink()


def test_what_is_not_a_regular_file_is_not_replaced(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for target in (tmp_path, pipe):
        with pytest.raises(OSError, match="not a regular file"), atomic_text(target) as stream:
            stream.write("new")
    assert names(tmp_path) == ["pipe"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="none"), atomic_text(tmp_path / "none" / "file") as stream:
        stream.write("new")
