"""Small changes of formulas, one at a time, and whether the tests notice: which formulas no test guards.

The files are those that carry ``Implements:``. An operator, a comparison, a sign, a number or the choice of
``min`` and ``max`` is changed, and the tests that name what the file defines are run. Where nothing is
compiled, each change is made to the code of functions that are already loaded, in a child of a process that
has run those tests before; what goes unnoticed is tried again with more tests. Changes of kernels are made to
the text, in a copy of the sources with a cache of its own, from which what the file is compiled into is
removed, and tests are run in a new process. What nothing notices is explained in ``tests/mutations.txt``,
else the run fails::

    python tests/mutations.py --each 8
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import copy
import importlib
import inspect
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType

import pytest

from factorwise.kernels.compile.dependencies import reached_modules

ROOT = Path(__file__).parents[1]
SOURCES = ROOT / "src"
EXPLAINED = Path(__file__).with_suffix(".txt")
SWAPS = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Pow: ast.Mult,
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip
NAMES = {
    "min": "max",
    "max": "min",
    "minimum": "maximum",
    "maximum": "minimum",
    "exp": "expm1",
    "log1p": "log",
}
WORDS = [
    "-x",
    "-q",
    "--no-header",
    "-p",
    "no:cacheprovider",
    "-p",
    "no:xdist",
    "-m",
    "not slow and not cluster",
]
LONGEST = 30.0  # seconds beyond what the tests took before; a loop without end is noticed too
COMPILING = 240.0  # seconds for what is compiled anew


# --- changes ------------------------------------------------------------------------------------------


def formula_files():
    """Return the files that say which formulas they implement."""
    return sorted(path for path in SOURCES.rglob("*.py") if "Implements:" in path.read_text())


def places_in(tree):
    """Yield the nodes that can be changed: what is in functions and is not an error, a check or a text."""

    def visit(node, inside):
        if isinstance(node, ast.Raise | ast.Assert | ast.JoinedStr | ast.arguments):
            return
        if isinstance(node, ast.Call) and getattr(node.func, "id", "").startswith(
            ("require", "check", "as_")
        ):
            return
        if isinstance(node, ast.AnnAssign):
            children = [node.value] if node.value is not None else []
        elif isinstance(node, ast.FunctionDef):
            children, inside = node.body, node.name not in ("__repr__", "__post_init__")
        else:
            children = ast.iter_child_nodes(node)
        if inside and is_changeable(node):
            yield node
        for child in children:
            yield from visit(child, inside)

    return list(visit(tree, False))


def is_changeable(node):
    if isinstance(node, ast.BinOp | ast.BoolOp):
        return type(node.op) in SWAPS and not isinstance(
            getattr(node, "left", None), ast.Constant | ast.JoinedStr
        )
    if isinstance(node, ast.Compare):
        return type(node.ops[0]) in SWAPS
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, ast.USub)
    if isinstance(node, ast.Constant):
        return isinstance(node.value, int | float) and not isinstance(node.value, bool)
    return isinstance(node, ast.Call) and called(node) in NAMES


def called(node):
    return getattr(node.func, "id", None) or getattr(node.func, "attr", None)


def change(node):
    """Change a node where it stands; return what was done, in words."""
    before = ast.unparse(node)
    if isinstance(node, ast.BinOp | ast.BoolOp):
        node.op = SWAPS[type(node.op)]()
    elif isinstance(node, ast.Compare):
        node.ops[0] = SWAPS[type(node.ops[0])]()
    elif isinstance(node, ast.UnaryOp):
        node.op = ast.UAdd()
    elif isinstance(node, ast.Constant):
        node.value = node.value * 2 if node.value not in (0, 1) else node.value + 1
    elif isinstance(node.func, ast.Name):
        node.func.id = NAMES[node.func.id]
    else:
        node.func.attr = NAMES[node.func.attr]
    return f"{before} -> {ast.unparse(node)}"


def changes_of(path, each, seed):
    """Return the line, words and changed tree of up to ``each`` changes of a file."""
    tree = ast.parse(path.read_text())
    count = len(places_in(tree))
    for number in sorted(random.Random(f"{seed} {path.name}").sample(range(count), min(each, count))):
        changed = copy.deepcopy(tree)
        node = places_in(changed)[number]
        place = surroundings(changed, node)
        yield node.lineno, f"{change(node)} in {place}", ast.fix_missing_locations(changed)


def surroundings(tree, node):
    """Say where a node stands: its function, and the first line of its statement."""
    around = [
        one
        for one in ast.walk(tree)
        if isinstance(one, ast.stmt) and any(inner is node for inner in ast.walk(one))
    ]
    functions = [one.name for one in around if isinstance(one, ast.FunctionDef | ast.ClassDef)]
    return f"{'.'.join(functions)}: {ast.unparse(around[-1]).splitlines()[0][:120]}"


# --- putting them into loaded functions ---------------------------------------------------------------


def put(module, code):
    """Give the functions of a loaded module the code that a changed text of it has."""
    changed = dict(codes_in(code))
    for function in functions_of(module):
        new = changed.get((function.__code__.co_qualname, function.__code__.co_firstlineno))
        if new is not None and new.co_freevars == function.__code__.co_freevars:
            function.__code__ = new


def codes_in(code):
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield (constant.co_qualname, constant.co_firstlineno), constant
            yield from codes_in(constant)


def functions_of(owner, seen=None):
    """Yield the plain functions in a module and its classes, also those that are wrapped."""
    seen = set() if seen is None else seen
    for value in list(vars(owner).values()):
        for part in (
            value,
            *(getattr(value, name, None) for name in ("__func__", "fget", "func", "py_func")),
        ):
            with contextlib.suppress(ValueError):
                part = inspect.unwrap(part) if callable(part) else part
            if isinstance(part, FunctionType) and part.__code__ not in seen:
                seen.add(part.__code__)
                yield part
        if inspect.isclass(value) and value.__module__ == getattr(owner, "__module__", owner.__name__):
            yield from functions_of(value, seen)


# --- tests ---------------------------------------------------------------------------------------------


def tests_of(path):
    """Return the test files that name what a file, or one that imports it, defines.

    Rare names count more, and so do test files that lie near.
    """
    module = module_of(path)
    texts = test_texts()
    weights = dict.fromkeys((rf"\b{re.escape(module)}\b", *patterns_in(path)), 1.0)
    for other in imports():
        if module in imports()[other]:
            for pattern in patterns_in(other):
                weights.setdefault(pattern, 0.1)
    found = dict.fromkeys(texts, 0.0)
    for pattern, weight in weights.items():
        named = [test for test, text in texts.items() if re.search(pattern, text)]
        for test in named:
            found[test] += weight / len(named)
    folder = ROOT / "tests" / path.relative_to(SOURCES / "factorwise").parent
    near = {test: sum(a == b for a, b in zip(test.parts, folder.parts, strict=False)) for test in found}
    score = {
        test: value * 4.0 ** (near[test] + (test.stem == f"test_{path.stem}"))
        for test, value in found.items()
    }
    return sorted(filter(found.get, found), key=score.get, reverse=True)


def module_of(path):
    return ".".join(path.relative_to(SOURCES).with_suffix("").parts)


def patterns_in(path):
    """Return what finds the public names that a file defines: plain words and methods only where called."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            plain = node.name == node.name.lower() and "_" not in node.name
            yield rf"\b{node.name}\(" if plain else rf"\b{node.name}\b"


@cache
def imports():
    """Return the modules that each source file imports from."""
    return {
        path: {
            node.module for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ImportFrom)
        }
        for path in sorted(SOURCES.rglob("*.py"))
        if path.name != "__init__.py"
    }


@cache
def test_texts():
    return {
        test: test.read_text()
        for test in sorted((ROOT / "tests").rglob("test_*.py"))
        if test.parts[len(ROOT.parts) + 1] not in ("cli", "cluster", "testing")
        and test.parent != ROOT / "tests"
    }


def run_tests(tests):
    """Run tests here; return whether all passed."""
    with Path(os.devnull).open("w") as nowhere, contextlib.redirect_stdout(nowhere):
        return pytest.main([*WORDS, *map(str, tests)]) == 0


def not_started(*_, **__):
    pytest.skip("the other process would not have the change")


def is_noticed(module, code, tests, seconds):
    """Whether tests fail, or take far longer, with the changed code; in a child process."""
    child = os.fork()
    if child == 0:
        try:
            os.setsid()
            # processor time: a machine that is busy with other work must not pass for a loop without end
            signal.setitimer(signal.ITIMER_PROF, 2 * seconds + LONGEST)
            subprocess.Popen = not_started
            put(module, code)
            os._exit(0 if run_tests(tests) else 1)
        except BaseException:
            os._exit(1)
    return os.waitpid(child, 0)[1] != 0


class Copy:
    """A copy of the sources, in which texts are changed, and caches that tests fill, also for later files."""

    def __init__(self, folder, tests):
        self.sources, self.tests = folder / "src", tests
        shutil.rmtree(self.sources, ignore_errors=True)
        self.kernels, self.changed = folder / "kernels", folder / "kernels-changed"
        shutil.copytree(SOURCES, self.sources, ignore=shutil.ignore_patterns("__pycache__"))
        self.generated = folder / "generated"
        self.generated.mkdir(mode=0o700, exist_ok=True)
        before = children_seconds()
        self.passes = self._run(self.kernels, 10_000)
        self.seconds = children_seconds() - before

    def is_noticed(self, path, text):
        """Whether tests fail, or take far longer, with another text of a file."""
        place = self.sources / path.relative_to(SOURCES)
        shutil.rmtree(self.changed, ignore_errors=True)
        if self.kernels.exists():
            shutil.copytree(self.kernels, self.changed, copy_function=os.link)
        for stem in {other.stem for other in depending_on(path)}:
            for file in self.changed.glob(f"*/{stem}.*.nbi"):
                file.unlink()
        place.write_text(text)
        try:
            return not self._run(self.changed, 2 * self.seconds + COMPILING)
        finally:
            place.write_text(path.read_text())

    def _run(self, kernels, seconds):
        places = {
            "PYTHONPATH": self.sources,
            "FACTORWISE_CACHE": self.generated,
            "NUMBA_CACHE_DIR": kernels,
            "PYTHONDONTWRITEBYTECODE": "1",  # a text may change twice within a second
        }
        limit = (resource.RLIMIT_CPU, (int(seconds), int(seconds)))
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *WORDS, *self.tests],
            cwd=ROOT,
            env={**os.environ, **{name: str(value) for name, value in places.items()}},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=lambda: resource.setrlimit(*limit),
            check=False,
        )
        return done.returncode == 0


def children_seconds():
    used = os.times()
    return used.children_user + used.children_system


def depending_on(path):
    """Return the files that a change of one may change the compiled code of."""
    module = module_of(path)
    return [path] + [other for other in imports() if module in reached_modules(f"import {module_of(other)}")]


def explained():
    """Return the changes that are known to go unnoticed: the words before the tab, after the file."""
    lines = EXPLAINED.read_text().splitlines() if EXPLAINED.exists() else []
    return {line.split("\t")[0] for line in lines if line and not line.startswith("#")}


def outcomes_of(path, options):
    """Make changes of one file; yield the line and words of each, and whether the tests noticed it."""
    tests, changes = tests_of(path), list(changes_of(path, options.each, options.seed))
    if "kernels" in path.parts:
        tried = Copy(options.here, tests[: options.more])
        if not tried.passes:
            raise SystemExit(f"{path}: tests fail without a change: {tests[: options.more]}")
        for line, words, tree in changes:
            yield line, words, tried.is_noticed(path, ast.unparse(tree))
        return
    module = None
    for some in (tests[: options.files], tests[options.files : options.more]):
        begun, unnoticed = time.process_time(), []
        if not changes or not some:
            break
        if not run_tests(some):
            raise SystemExit(f"{path}: no tests, or they fail without a change: {some}")
        seconds, module = time.process_time() - begun, module or importlib.import_module(module_of(path))
        for line, words, tree in changes:
            if is_noticed(module, compile(tree, str(path), "exec"), some, seconds):
                yield line, words, True
            else:
                unnoticed.append((line, words, tree))
        changes = unnoticed
    for line, words, _ in changes:
        yield line, words, False


def try_file(path, options):
    """Print what the tests say of changes of one file."""
    name, known = path.relative_to(SOURCES / "factorwise"), explained()
    for line, words, noticed in outcomes_of(path, options):
        outcome = "killed" if noticed else "explained" if f"{name}: {words}" in known else "survived"
        print(f"{outcome}\t{name}:{line}\t{words}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--each", type=int, default=8, help="changes of each file")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--files", type=int, default=2, help="test files for each source file at first")
    parser.add_argument("--more", type=int, default=5, help="test files for what those do not notice")
    parser.add_argument("--only", nargs="*", default=(), help="parts of file names")
    parser.add_argument("--here", type=Path, metavar="FOLDER", help="in this process; a place for copies")
    options = parser.parse_args()
    chosen = [
        path
        for path in formula_files()
        if not options.only or any(part in str(path) for part in options.only)
    ]
    if options.here:
        for path in chosen:
            try_file(path, options)
        return
    outcomes = {"killed": 0, "explained": 0, "survived": 0}
    folder = tempfile.mkdtemp()
    for path in chosen:
        numbers = [f"--{name}={getattr(options, name)}" for name in ("each", "seed", "files", "more")]
        command = [sys.executable, __file__, "--here", folder, *numbers, "--only", str(path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
            for line in child.stdout:
                print(line, end="", flush=True)
                outcomes[line.split("\t")[0]] += 1
        outcomes["survived"] += child.returncode != 0
    shutil.rmtree(folder)
    print(outcomes)
    sys.exit(outcomes["survived"] > 0)


if __name__ == "__main__":
    main()
