"""Users' functions in compiled modules: everything they refer to comes along, and nothing stale."""

import importlib
import json
import linecache
import math
import os
import pickle
import stat
import subprocess
import sys
import textwrap
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from factorwise.errors import TemplateError
from factorwise.kernels.compile import cache
from factorwise.kernels.compile.composition import composed_module, source_of
from factorwise.kernels.compile.primitives import overlap

SOURCE = Path(__file__).parents[3] / "src"
FORM = """
from numba import cfunc, types
from factorwise.kernels.compile.compiler import inlined

{text}


@cfunc(types.float64(types.float64, types.float64), cache=True, error_model="numpy")
def answer(p, q):
    return float({name}(p, q))
"""


def module_of(function):
    source = source_of(function)
    return composed_module(FORM.format(text=source.text, name=source.name))


def compiled(function):
    """The function of two numbers, compiled and callable."""
    return module_of(function).answer.ctypes


SCALE = 2.5
PAIR = (1.5, (2, True))
TABLE = np.array([0.5, 0.25, 4.0])
ENDLESS = np.array([[np.inf, 1.0], [-np.inf, 2.0]])
NOTHING = math.nan
p = 99.0  # the same name as an argument of the functions below
answer = 17.0  # the same name as a function of the generated module
types = 3.0  # and as a module that it imports


def helper(value):
    return value * SCALE


def deeper(value):
    return helper(value) + PAIR[1][0]


def with_helpers(p, q):
    return deeper(p) - helper(q)


def with_constants(p, q):
    return p * SCALE + q * PAIR[0] + (1.0 if PAIR[1][1] else 0.0)


def with_array(p, q):
    return TABLE[int(p)] + TABLE.sum() * q


def with_infinities(p, q):
    inside = ENDLESS[1, 0] < q and p < ENDLESS[0, 0] and NOTHING != NOTHING
    return ENDLESS[:, 1].sum() if inside else 0.0


def with_numpy(p, q):
    return np.sqrt(p * p + q * q) + np.abs(p - q) + np.pi


def with_math(p, q):
    return math.exp(-abs(p - q)) + math.log1p(p) + math.tau


def with_names_like_ours(p, q):
    return answer * p + types * q


def with_primitive(p, q):
    return overlap((int(p), int(q), 0), (int(q), 7, 8))


def with_loop(p, q):
    total = 0.0
    for k in range(4):
        total += helper(p) if k % 2 else q
    return total


def with_comprehension(p, q):
    return sum([helper(value) for value in (p, q)])


def with_itself(p, q):
    return q if p < 1.0 else with_itself(p - 1.0, q + 1.0)


def attribute_and_argument(row, p):
    """Python lists ``p`` among the outside names because of the attribute; the argument is meant."""
    return row.p * p


class Row:
    p = 2.0


def with_defaults(p, q, scale=3.0):
    return p * scale + q


def made(factor):
    """A function that remembers where it was made."""

    def inside(p, q):
        return factor * p + helper(q)

    return inside


short = lambda p, q: p * SCALE - q  # noqa: E731

PLAIN = {
    function.__name__: function
    for function in (
        with_helpers,
        with_constants,
        with_array,
        with_infinities,
        with_numpy,
        with_math,
        with_names_like_ours,
        with_primitive,
        with_loop,
        with_comprehension,
        with_itself,
        with_defaults,
    )
} | {"a closure": made(7.0), "a lambda": short}


@pytest.mark.parametrize("name", PLAIN)
def test_the_compiled_function_gives_what_the_plain_one_gives(name):
    function = PLAIN[name]
    fast = compiled(function)
    for p, q in ((0.0, 1.0), (1.0, 2.0), (2.0, 0.5)):
        assert fast(p, q) == pytest.approx(float(function(p, q)), rel=1e-12)


def test_an_argument_is_not_taken_for_the_global_of_the_same_name():
    source = source_of(attribute_and_argument)
    scope = {"inlined": lambda function: function}
    exec(source.text, scope)
    assert scope[source.name](Row(), 5.0) == attribute_and_argument(Row(), 5.0) == 10.0


def test_closures_over_other_values_become_other_functions():
    assert compiled(made(2.0))(1.0, 0.0) == 2.0
    assert compiled(made(3.0))(1.0, 0.0) == 3.0


def test_the_same_text_is_the_same_module():
    assert module_of(with_helpers) is module_of(with_helpers)
    assert module_of(with_helpers) is not module_of(with_constants)
    assert source_of(with_helpers) == source_of(with_helpers)


def test_attributes_that_are_read_are_listed_through_helpers():
    def inner(row):
        return row.year

    def outer(a, b):
        return inner(a) - b.month

    assert {"year", "month"} <= source_of(outer).attributes


@pytest.fixture
def written(tmp_path, monkeypatch):
    """Write a module into a folder of its own and import it afresh."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def write(name, text):
        (tmp_path / f"{name}.py").write_text(textwrap.dedent(text))
        importlib.invalidate_caches()
        linecache.checkcache()
        sys.modules.pop(name, None)
        return importlib.import_module(name)

    yield write
    for name in ("far_helpers", "near_functions"):
        sys.modules.pop(name, None)


def test_editing_a_helper_in_another_file_is_noticed(written):
    use = "from far_helpers import far\ndef near(p, q):\n    return far(p) + q\n"
    written("far_helpers", "FACTOR = 2.0\ndef far(x):\n    return x * FACTOR\n")
    first = module_of(written("near_functions", use).near)
    assert first.answer.ctypes(3.0, 1.0) == 7.0
    for edited, result in (
        ("FACTOR = 10.0\ndef far(x):\n    return x * FACTOR\n", 31.0),
        ("FACTOR = 2.0\ndef far(x):\n    return x - FACTOR\n", 2.0),
    ):
        written("far_helpers", edited)
        second = module_of(written("near_functions", use).near)
        assert second is not first
        assert second.answer.ctypes(3.0, 1.0) == result


WORKER = """
import json, sys, pathlib
sys.path.insert(0, {folder!r})
from factorwise.kernels.compile.composition import composed_module, source_of
from user_functions import near
source = source_of(near)
module = composed_module({form!r}.format(text=source.text, name=source.name))
stats = module.answer.cache_hits
print(json.dumps([module.answer.ctypes(3.0, 1.0), stats, module.__file__]))
"""
USER = "import math\ndef far(x):\n    return x * 2.0\ndef near(p, q):\n    return far(p) + math.sqrt(q)\n"


def worker(folder, cache, more=()):
    (folder / "user_functions.py").write_text(USER)
    environment = {k: v for k, v in os.environ.items() if k != "NUMBA_CACHE_DIR"}
    environment |= {"FACTORWISE_CACHE": str(cache), "PYTHONPATH": str(SOURCE), "PYTHONDONTWRITEBYTECODE": "1"}
    environment.update(more)
    script = WORKER.format(folder=str(folder), form=FORM)
    command = [sys.executable, "-c", script]
    return subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def result_of(process):
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    return json.loads(out)


def test_two_processes_at_once_both_succeed_and_the_next_finds_it_compiled(tmp_path):
    cache = tmp_path / "cache"
    both = [worker(tmp_path, cache) for _ in range(2)]
    results = [result_of(process) for process in both]
    assert [result[0] for result in results] == [7.0, 7.0]
    assert results[0][2] == results[1][2]
    kept = {path: path.stat().st_mtime_ns for path in cache.rglob("*") if path.is_file()}
    assert [path.suffix for path in kept].count(".nbc") >= 1
    assert not [path for path in kept if path.suffix == ".tmp"]
    answer, hits, _ = result_of(worker(tmp_path, cache))
    assert (answer, hits) == (7.0, 1)
    assert {path: path.stat().st_mtime_ns for path in cache.rglob("*") if path.is_file()} == kept


def test_a_cache_folder_that_cannot_be_written_is_no_hindrance(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    (tmp_path / "file").write_text("")
    answer, _, file = result_of(worker(tmp_path, tmp_path / "file" / "cache"))
    assert answer == 7.0
    assert Path(file).is_relative_to(tmp_path)
    assert stat.S_IMODE(Path(file).parent.stat().st_mode) == 0o700


def test_a_module_that_was_written_once_is_not_written_again(tmp_path, monkeypatch):
    monkeypatch.setenv("FACTORWISE_CACHE", str(tmp_path))
    text = "VALUE = 5\n"
    first = composed_module(text)
    written_at = Path(first.__file__).stat().st_mtime_ns
    monkeypatch.delitem(sys.modules, first.__name__)
    second = composed_module(text)
    assert second is not first
    assert (second.VALUE, second.__file__) == (5, first.__file__)
    assert Path(second.__file__).stat().st_mtime_ns == written_at


def test_a_new_version_of_the_library_gives_another_module(tmp_path, monkeypatch):
    monkeypatch.setenv("FACTORWISE_CACHE", str(tmp_path))
    first = composed_module("VALUE = 6\n")
    monkeypatch.setattr(cache, "__version__", "another version")
    assert composed_module("VALUE = 6\n").__name__ != first.__name__


def test_planted_code_is_not_executed(tmp_path, monkeypatch):
    """The module is written and imported elsewhere, and what was planted stays as it is."""
    monkeypatch.setenv("FACTORWISE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(cache, "_private_temporary_directory", lambda: tmp_path / "private")
    (tmp_path / "private").mkdir()
    first = composed_module("VALUE = 7\n")
    planted = Path(first.__file__)
    planted.write_text("VALUE = 8\n")
    monkeypatch.delitem(sys.modules, first.__name__)
    with pytest.warns(cache.UnsafeCacheWarning, match="is not what factorwise wrote"):
        second = composed_module("VALUE = 7\n")
    assert second.VALUE == 7
    assert second.__name__ == first.__name__
    assert Path(second.__file__).parent == tmp_path / "private"
    assert planted.read_text() == "VALUE = 8\n"


def test_compiled_code_that_others_could_have_planted_is_not_loaded(tmp_path):
    """numba unpickles an index, which executes what the index says."""
    folder, temporary = tmp_path / "cache", tmp_path / "tmp"
    temporary.mkdir()
    environment = {"TMPDIR": str(temporary)}
    result_of(worker(tmp_path, folder, environment))
    (index,) = folder.rglob("factorwise_composed_*.answer-*.nbi")
    with index.open("rb") as file:
        version = pickle.load(file)
    index.write_bytes(pickle.dumps(version) + pickle.dumps(Creates(tmp_path / "executed")))
    for path, mode in ((folder, 0o755), (index.parent, 0o755), (index, 0o666)):
        path.chmod(mode)
    answer, hits, module = result_of(worker(tmp_path, folder, environment))
    assert (answer, hits) == (7.0, 0)
    assert Path(module).is_relative_to(temporary)
    assert not (tmp_path / "executed").exists()


class Creates:
    """Something that creates a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def far_away(p, q):
    return os.getpid() + p


class Thing:
    """Something that cannot become a constant."""


THING = Thing()
HUGE = np.zeros(5_000)


def with_thing(p, q):
    return p if THING else q


def with_huge(p, q):
    return HUGE[int(p)]


def with_unknown(p, q):
    return p + not_defined_anywhere  # noqa: F821


def ping(p, q):
    return pong(p, q)


def pong(p, q):
    return ping(p, q)


def uncompilable(p, q):
    return float(str(p).strip())


two_on_a_line = (lambda p, q: p, lambda p, q: q)
from_nowhere = eval("lambda p, q: p")

REFUSED = {
    "a module": (far_away, "uses module 'os': import the function it needs by name"),
    "an object": (with_thing, "refers to 'THING', a Thing, which cannot become a constant"),
    "a large array": (with_huge, "at most 4096 numbers, or make it a field"),
    "a name that is not there": (with_unknown, "'not_defined_anywhere', which is not defined there"),
    "functions in a ring": (
        ping,
        "calls itself through another function, which cannot be compiled: use a loop",
    ),
    "a built-in": (len, "is not a plain Python function: define it with def"),
    "a partial": (partial(with_math, 1.0), "define it with def"),
    "two lambdas on a line": (two_on_a_line[0], "on lines of its own"),
    "no source": (from_nowhere, "cannot be read.*define it in a file or a notebook cell"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_composed_is_refused_with_a_remedy(name):
    function, message = REFUSED[name]
    with pytest.raises(TemplateError, match=message):
        source_of(function)


def test_a_function_that_cannot_be_compiled_is_refused_with_the_cause():
    with pytest.raises(TemplateError, match=r"cannot be compiled; it can still run with engine='plain'.*str"):
        module_of(uncompilable)
