"""Code that another user planted in a cache is not run: tried as two users, which only root can."""

import os
import pickle
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import llvmlite
import numba
import numpy as np
import pytest

from factorwise.kernels.compile.cache import composed_name

pytestmark = pytest.mark.skipif(
    not hasattr(os, "getuid") or os.getuid() != 0, reason="only root can be two users"
)
VICTIM, ATTACKER = 65_534, 65_533
TEXT = """from factorwise.kernels.compile.compiler import kernel


@kernel
def answer(number):
    return number + 1
"""
NAME = composed_name(TEXT, numba=numba.__version__, numpy=np.__version__, llvmlite=llvmlite.__version__)
VICTIMS_RUN = f"""
import os, sys, warnings
import numba, factorwise.kernels.compile.composition as composition
numba.njit(lambda x: x + 1)(1)  # what is imported late is imported before the rights are gone
os.setgroups([]); os.setgid({VICTIM}); os.setuid({VICTIM})
assert os.getuid() == os.geteuid() == {VICTIM}
warnings.simplefilter("ignore")
module = composition.composed_module({TEXT!r})
print(os.path.dirname(module.__file__), module.answer(41))
"""


class Evil:
    """What runs a command when it is unpickled."""

    def __init__(self, command):
        self.command = command

    def __reduce__(self):
        return os.system, (self.command,)


@pytest.fixture
def shared():
    """A folder that all users can write, as the temporary one: sticky, and outside of the test's own."""
    folder = Path(tempfile.mkdtemp(prefix="factorwise-two-users-"))
    folder.chmod(0o1777)
    yield folder
    shutil.rmtree(folder)


def give(path, user):
    os.chown(path, user, user, follow_symlinks=False)
    return path


def make_cache(shared, owner, mode=0o755):
    cache = shared / "cache"
    for folder in (cache, cache / "__pycache__"):
        folder.mkdir()
        folder.chmod(mode)
        give(folder, owner)
    return cache


def plant(path, mark, owner=ATTACKER):
    """Write a module that leaves a mark when it is imported."""
    path.write_text(f"open({str(mark)!r}, 'w').close()\n{TEXT}")
    return give(path, owner)


def foreign_cache(shared, mark):
    plant(make_cache(shared, ATTACKER) / f"{NAME}.py", mark)


def cache_that_others_can_write(shared, mark):
    plant(make_cache(shared, VICTIM, 0o777) / f"{NAME}.py", mark)


def own_cache_with_a_foreign_module(shared, mark):
    plant(make_cache(shared, VICTIM) / f"{NAME}.py", mark)


def link_out_of_the_cache(shared, mark):
    cache = make_cache(shared, VICTIM)
    (cache / f"{NAME}.py").symlink_to(plant(shared / "planted.py", mark))
    give(cache / f"{NAME}.py", VICTIM)


def cache_that_is_a_link(shared, mark):
    plant(make_cache(shared, ATTACKER) / f"{NAME}.py", mark)
    (shared / "cache").rename(shared / "elsewhere")
    (shared / "cache").symlink_to(shared / "elsewhere")
    give(shared / "cache", VICTIM)


def module_that_was_changed(shared, mark):
    plant(make_cache(shared, VICTIM) / f"{NAME}.py", mark, VICTIM)


def compiled_code(shared, mark):
    """The module is as it should be; numba would unpickle the index beside it."""
    cache = make_cache(shared, VICTIM, 0o777)
    (cache / f"{NAME}.py").write_text(TEXT)
    give(cache / f"{NAME}.py", VICTIM)
    python = f"py{sys.version_info[0]}{sys.version_info[1]}"
    index = cache / "__pycache__" / f"{NAME}.answer-4.{python}.nbi"
    index.write_bytes(pickle.dumps(numba.__version__) + pickle.dumps(Evil(f"touch {mark}")))
    give(index, ATTACKER)


@pytest.mark.parametrize(
    "trap",
    [
        foreign_cache,
        cache_that_others_can_write,
        own_cache_with_a_foreign_module,
        link_out_of_the_cache,
        cache_that_is_a_link,
        module_that_was_changed,
        compiled_code,
    ],
)
def test_what_another_user_planted_is_not_run(shared, trap):
    mark = shared / "mark"
    trap(shared, mark)
    found = victims_run(shared)
    assert not mark.exists(), "the planted code ran"
    assert found[0] != str(shared / "cache")
    assert found[1] == "42"


def test_a_cache_of_ones_own_is_used(shared):
    cache = make_cache(shared, VICTIM, 0o700)
    assert victims_run(shared) == [str(cache), "42"]
    assert (cache / f"{NAME}.py").stat().st_uid == VICTIM


def victims_run(shared):
    """Compose the module as the victim, with the cache and a temporary folder there."""
    (shared / "tmp").mkdir()
    (shared / "tmp").chmod(0o1777)
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    environment |= {
        "FACTORWISE_CACHE": str(shared / "cache"),
        "TMPDIR": str(shared / "tmp"),
        "HOME": str(shared),
    }
    command = [sys.executable, "-c", VICTIMS_RUN]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()
