"""Where compiled code is kept: the place asked for, or one that is safe to load code from."""

import os
import stat
import tempfile

import pytest

from factorwise.kernels.compile import cache
from factorwise.kernels.compile.cache import UnsafeCacheWarning, cache_directory, usable_cache_directory

NAME, TEXT = "factorwise_composed_some", "VALUE = 1\n"
USER = os.getuid() if hasattr(os, "getuid") else None
needs_owners = pytest.mark.skipif(USER is None, reason="files have no owner here")
needs_root = pytest.mark.skipif(USER != 0, reason="only root can give files away")


@pytest.fixture(autouse=True)
def surroundings(tmp_path, monkeypatch):
    """Home and temporary folder of the test's own, and no variables set."""
    for name in ("home", "tmp"):
        (tmp_path / name).mkdir()
    monkeypatch.delenv("FACTORWISE_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    forget_folders()
    yield
    forget_folders()


def forget_folders():
    cache._private_temporary_directory.cache_clear()
    cache._fresh_temporary_directory.cache_clear()
    cache._WARNED.clear()


def usable():
    return usable_cache_directory(NAME, TEXT)


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
    assert usable() == folder
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert list(folder.rglob("*")) == [folder / "__pycache__"]
    assert stat.S_IMODE((folder / "__pycache__").stat().st_mode) == 0o700
    assert list((tmp_path / "tmp").iterdir()) == []


@pytest.mark.usefixtures("blocked")
def test_without_a_writable_cache_a_private_temporary_folder_is_used_again_and_again(tmp_path):
    folder = usable()
    assert folder == tmp_path / "tmp" / f"factorwise-{os.getuid()}"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    forget_folders()
    assert usable() == folder


def test_a_cache_on_a_read_only_disk_is_replaced(tmp_path, monkeypatch):
    genuine = tempfile.TemporaryFile

    def read_only(*args, **kwargs):
        if "home" in str(kwargs["dir"]):
            raise OSError(30, "Read-only file system")
        return genuine(*args, **kwargs)

    monkeypatch.setattr(tempfile, "TemporaryFile", read_only)
    assert usable().parent == tmp_path / "tmp"


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
    folder = usable()
    assert folder != planted
    assert folder.parent == tmp_path / "tmp"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@pytest.fixture
def filled(tmp_path, monkeypatch):
    """A cache that others may read, but not write, with a module and its compiled code."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("FACTORWISE_CACHE", str(folder))
    for path in (folder, folder / "__pycache__"):
        path.mkdir()
        path.chmod(0o755)
    for path in (folder / f"{NAME}.py", index_of(folder), index_of(folder).with_suffix(".1.nbc")):
        path.write_text(TEXT)
        path.chmod(0o644)
    return folder


def index_of(folder):
    return folder / "__pycache__" / f"{NAME}.f-1.py311.nbi"


def test_what_only_this_user_can_have_written_is_used(filled):
    assert usable() == filled


@needs_owners
@pytest.mark.parametrize("mode", [0o700, 0o777])
def test_modes_inside_a_folder_that_nobody_else_can_enter_do_not_matter(filled, mode):
    """With a umask of 002, numba's files can be written by the group."""
    index_of(filled).chmod(0o664)
    (filled / "__pycache__").chmod(mode)
    filled.chmod(0o700)
    assert usable() == filled


def _folder_of_the_group(folder):
    folder.chmod(0o775)
    return "cache can be written by other users \\(mode 775\\)"


def _folder_of_all(folder):
    folder.chmod(0o757)
    return "cache can be written by other users \\(mode 757\\)"


def _folder_that_is_a_link(folder):
    folder.rename(folder.with_name("elsewhere"))
    folder.symlink_to(folder.with_name("elsewhere"))
    return "cache is a symbolic link"


def _folder_that_others_can_replace(folder):
    folder.parent.chmod(0o777)
    return "other users can replace it"


def _module_of_the_group(folder):
    (folder / f"{NAME}.py").chmod(0o664)
    return f"{NAME}.py can be written by other users"


def _module_that_is_a_link(folder):
    (folder / f"{NAME}.py").rename(folder / "elsewhere.py")
    (folder / f"{NAME}.py").symlink_to(folder / "elsewhere.py")
    return f"{NAME}.py is a symbolic link"


def _module_that_is_a_folder(folder):
    (folder / f"{NAME}.py").unlink()
    (folder / f"{NAME}.py").mkdir()
    return f"{NAME}.py is not a file"


def _module_that_was_changed(folder):
    (folder / f"{NAME}.py").write_text("VALUE = 2\n")
    return f"{NAME}.py is not what factorwise wrote"


def _compiled_folder_of_all(folder):
    (folder / "__pycache__").chmod(0o777)
    return "__pycache__ can be written by other users"


def _compiled_folder_that_is_a_link(folder):
    (folder / "__pycache__").rename(folder / "elsewhere")
    (folder / "__pycache__").symlink_to(folder / "elsewhere")
    return "__pycache__ is a symbolic link"


def _index_of_all(folder):
    index_of(folder).chmod(0o666)
    return "nbi can be written by other users"


def _index_that_is_a_link(folder):
    index_of(folder).rename(folder / "elsewhere")
    index_of(folder).symlink_to(folder / "elsewhere")
    return "nbi is a symbolic link"


def _given_away(name):
    def change(folder):
        path = index_of(folder) if name == "index" else folder / name
        os.chown(path, USER + 1, -1)
        return f"belongs to user {USER + 1}, and this is user {USER}"

    return pytest.param(change, marks=needs_root, id=f"another user's {name or 'folder'}")


TRAPS = [
    _folder_of_the_group,
    _folder_of_all,
    _folder_that_is_a_link,
    _folder_that_others_can_replace,
    _module_of_the_group,
    _module_that_is_a_link,
    _module_that_is_a_folder,
    _module_that_was_changed,
    _compiled_folder_of_all,
    _compiled_folder_that_is_a_link,
    _index_of_all,
    _index_that_is_a_link,
    *map(_given_away, ["", f"{NAME}.py", "__pycache__", "index"]),
]


@needs_owners
@pytest.mark.parametrize("trap", TRAPS)
def test_what_others_could_have_written_is_not_used_and_the_warning_says_what_to_do(filled, tmp_path, trap):
    fault = trap(filled)
    with pytest.warns(UnsafeCacheWarning, match=f"{fault}.*chmod 700 .*FACTORWISE_CACHE"):
        folder = usable()
    assert usable() == folder, "and nobody is warned twice"
    assert folder.parent == tmp_path / "tmp"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert not (folder / f"{NAME}.py").exists()


@needs_owners
def test_a_parent_that_the_users_own_group_may_write_is_accepted(filled):
    filled.parent.chmod(0o775)
    os.chown(filled.parent, -1, os.getgid())
    assert usable() == filled


@needs_owners
def test_files_of_other_modules_are_not_looked_at(filled):
    for path in (filled / "factorwise_composed_other.py", filled / "__pycache__" / "other.f-1.py311.nbi"):
        path.touch()
        path.chmod(0o666)
    assert usable() == filled


@needs_owners
@pytest.mark.usefixtures("blocked")
def test_a_module_that_was_changed_in_the_temporary_folder_is_not_used_either(tmp_path):
    folder = usable()
    (folder / f"{NAME}.py").write_text("VALUE = 2\n")
    fresh = usable()
    assert fresh != folder
    assert fresh.parent == tmp_path / "tmp"
    assert list(fresh.rglob("*.py")) == []


def test_without_owners_a_writable_cache_is_used_as_it_is(filled, monkeypatch):
    """As on Windows."""
    filled.chmod(0o777)
    (filled / f"{NAME}.py").write_text("VALUE = 2\n")
    monkeypatch.delattr(os, "getuid", raising=False)
    assert usable() == filled
