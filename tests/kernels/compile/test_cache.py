"""Where compiled code is kept: the place asked for, or one that is safe to load code from."""

import os
import stat
import tempfile

import pytest

from factorwise.kernels.compile import cache
from factorwise.kernels.compile.cache import cache_directory, usable_cache_directory


@pytest.fixture(autouse=True)
def surroundings(tmp_path, monkeypatch):
    """Home and temporary folder of the test's own, and no variables set."""
    for name in ("home", "tmp"):
        (tmp_path / name).mkdir()
    monkeypatch.delenv("FACTORWISE_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    cache._private_temporary_directory.cache_clear()
    yield
    cache._private_temporary_directory.cache_clear()


@pytest.fixture
def blocked(tmp_path, monkeypatch):
    """A cache folder that nobody can create, because its parent is a file."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("FACTORWISE_CACHE", str(tmp_path / "file" / "cache"))


def test_the_folder_is_in_the_users_cache(tmp_path):
    assert cache_directory() == tmp_path / "home" / ".cache" / "factorwise"


def test_the_users_cache_may_be_elsewhere(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_directory() == tmp_path / "xdg" / "factorwise"


@pytest.mark.parametrize("value", ["", "relative/path"])
def test_a_users_cache_that_is_not_absolute_is_ignored(tmp_path, monkeypatch, value):
    monkeypatch.setenv("XDG_CACHE_HOME", value)
    assert cache_directory() == tmp_path / "home" / ".cache" / "factorwise"


def test_the_own_variable_wins(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.setenv("FACTORWISE_CACHE", "relative")
    monkeypatch.chdir(tmp_path)
    assert cache_directory() == tmp_path / "relative"


def test_asking_creates_nothing_and_using_creates_a_private_folder(tmp_path):
    folder = cache_directory()
    assert not folder.exists()
    assert usable_cache_directory() == folder
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert list(folder.iterdir()) == []
    assert list((tmp_path / "tmp").iterdir()) == []


@pytest.mark.usefixtures("blocked")
def test_without_a_writable_cache_a_private_temporary_folder_is_used_again_and_again(tmp_path):
    folder = usable_cache_directory()
    assert folder == tmp_path / "tmp" / f"factorwise-{os.getuid()}"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    cache._private_temporary_directory.cache_clear()
    assert usable_cache_directory() == folder


def test_a_cache_on_a_read_only_disk_is_replaced(tmp_path, monkeypatch):
    genuine = tempfile.TemporaryFile

    def read_only(*args, **kwargs):
        if "home" in str(kwargs["dir"]):
            raise OSError(30, "Read-only file system")
        return genuine(*args, **kwargs)

    monkeypatch.setattr(tempfile, "TemporaryFile", read_only)
    assert usable_cache_directory().parent == tmp_path / "tmp"


@pytest.mark.usefixtures("blocked")
@pytest.mark.parametrize("trap", ["open to others", "link", "of another user"])
def test_a_temporary_folder_that_others_could_fill_is_not_trusted(tmp_path, monkeypatch, trap):
    if trap == "of another user":
        myself = os.getuid() + 1
        monkeypatch.setattr(os, "getuid", lambda: myself)
    planted = tmp_path / "tmp" / f"factorwise-{os.getuid()}"
    if trap == "link":
        (tmp_path / "elsewhere").mkdir(mode=0o700)
        planted.symlink_to(tmp_path / "elsewhere")
    else:
        planted.mkdir(mode=0o700)
    if trap == "open to others":
        planted.chmod(0o777)
    folder = usable_cache_directory()
    assert folder != planted
    assert folder.parent == tmp_path / "tmp"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
