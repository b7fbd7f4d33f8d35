"""Small changes of formulas, one at a time, and whether the tests notice: which formulas no test guards.

The files are those that carry ``Implements:``. An operator, a comparison, a sign, a number or the choice of
``min`` and ``max`` is changed, and the tests that name what the file defines are run. Each change is made to
the code of functions that are already loaded, in a child of a process that has run those tests before:
nothing is compiled again. What nothing notices is explained in ``tests/mutations.txt``, else the run fails::

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
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import CodeType, FunctionType

import pytest

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
LONGEST = 60.0  # seconds beyond what the tests took before; a loop without end is noticed too


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
    """Return the number, line, words and changed code of up to ``each`` changes of a file."""
    tree = ast.parse(path.read_text())
    count = len(places_in(tree))
    chosen = sorted(random.Random(f"{seed} {path.name}").sample(range(count), min(each, count)))
    made = []
    for number in chosen:
        changed = copy.deepcopy(tree)
        node = places_in(changed)[number]
        line, words = node.lineno, change(node)
        made.append((number, line, words, compile(ast.fix_missing_locations(changed), str(path), "exec")))
    return made


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
    """Return the test files that name what a file defines, those of the same folder first."""
    tree = ast.parse(path.read_text())
    names = [node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    known = re.compile("|".join(rf"\b{name}\b" for name in names if not name.startswith("_")))
    module = ".".join(path.relative_to(SOURCES).with_suffix("").parts)
    folder = ROOT / "tests" / path.relative_to(SOURCES / "factorwise").parent
    found = {}
    for test in sorted((ROOT / "tests").rglob("test_*.py")):
        if test.parts[len(ROOT.parts) + 1] in ("cli", "cluster", "testing"):
            continue
        text = test.read_text()
        hits = len(known.findall(text)) + 100 * (module in text)
        near = sum(a == b for a, b in zip(test.parts, folder.parts, strict=False))
        if hits:
            found[test] = (near, hits)
    return sorted(found, key=found.get, reverse=True)


def run_tests(tests):
    """Run tests here; return whether all passed."""
    words = [
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
    with Path(os.devnull).open("w") as nowhere, contextlib.redirect_stdout(nowhere):
        return pytest.main([*words, *map(str, tests)]) == 0


def is_noticed(module, code, tests, seconds):
    """Whether tests fail, or take far longer, with the changed code; in a child process."""
    child = os.fork()
    if child == 0:
        try:
            os.setsid()
            # processor time: a machine that is busy with other work must not pass for a loop without end
            signal.setitimer(signal.ITIMER_PROF, 2 * seconds + LONGEST)
            put(module, code)
            os._exit(0 if run_tests(tests) else 1)
        except BaseException:
            os._exit(1)
    return os.waitpid(child, 0)[1] != 0


def explained():
    """Return the changes that are known to go unnoticed: the words before the tab, after the file."""
    lines = EXPLAINED.read_text().splitlines() if EXPLAINED.exists() else []
    return {line.split("\t")[0] for line in lines if line and not line.startswith("#")}


def try_file(path, each, seed, files):
    """Make changes of one file; print what the tests say of each."""
    name = str(path.relative_to(SOURCES / "factorwise"))
    tests = tests_of(path)[:files]
    begun = time.process_time()
    if not tests or not run_tests(tests):
        print(f"{name}: no tests, or they fail without a change: {tests}", flush=True)
        return
    seconds = time.process_time() - begun
    module = importlib.import_module(".".join(path.relative_to(SOURCES).with_suffix("").parts))
    known = explained()
    for _, line, words, code in changes_of(path, each, seed):
        shown = f"{name}: {words}"
        noticed = is_noticed(module, code, tests, seconds)
        outcome = "killed" if noticed else "explained" if shown in known else "survived"
        print(f"{outcome}\t{name}:{line}\t{words}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--each", type=int, default=8, help="changes of each file")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--files", type=int, default=3, help="test files for each source file")
    parser.add_argument("--only", nargs="*", default=(), help="parts of file names")
    parser.add_argument("--here", action="store_true", help="in this process")
    options = parser.parse_args()
    chosen = [
        path
        for path in formula_files()
        if not options.only or any(part in str(path) for part in options.only)
    ]
    if options.here:
        for path in chosen:
            try_file(path, options.each, options.seed, options.files)
        return
    outcomes = {"killed": 0, "explained": 0, "survived": 0}
    for path in chosen:
        numbers = ["--each", str(options.each), "--seed", str(options.seed), "--files", str(options.files)]
        command = [sys.executable, __file__, "--here", *numbers, "--only", str(path)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
        print(done.stdout, end="", flush=True)
        for line in done.stdout.splitlines():
            outcomes[line.split("\t")[0]] = outcomes.get(line.split("\t")[0], 0) + 1
    print(outcomes)
    sys.exit(outcomes["survived"] > 0)


if __name__ == "__main__":
    main()
