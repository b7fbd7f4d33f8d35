"""Rules about the source itself that no linter knows."""

import ast
import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "factorwise"
REFERENCE = ROOT / "tests" / "reference"
KERNELS = sorted((SOURCE / "kernels").rglob("*.py"))
MODULES = sorted(SOURCE.rglob("*.py"))
LONGEST = 450
LONGEST_FUNCTION = 80
MOST_PARAMETERS = 10
MOST_FILES = 25  # of a folder

# Modules and functions above the bars that are still to be divided, and those with settings given by name.
# Constructors and kernels may have any number of parameters. The lists may become shorter, not longer.
LONG_MODULES = {
    "apps/resolution/estimator.py",
    "apps/tagging/estimator.py",  # the settings of sklearn-crfsuite
    "cli/resolve/apply.py",
}
LONG_FUNCTIONS = {
    "apps/resolution/estimator.py: fit",
    "apps/resolution/estimator.py: resolve",
    "apps/resolution/training/fitting.py: learn",
    "apps/tagging/estimator.py: __init__",  # the settings of sklearn-crfsuite
    "inference/cross_entropy/method.py: cross_entropy",
    "kernels/chains/projected_chains.py: project_range",
    "kernels/clusterings/merge_trees.py: join_groups",
    "kernels/clusterings/tallies.py: tally_functions",
    "kernels/numeric/int_lanes.py: _lanes",  # one closure for each instruction
}
MANY_PARAMETERS = {
    "apps/resolution/blocking/candidates.py: find_candidates",
    "apps/resolution/estimator.py: resolve",
    "apps/resolution/training/fitting.py: learn",
    "apps/resolution/training/fitting.py: learn_without_labels",
    "inference/cross_entropy/method.py: cross_entropy",
    "inference/mcmc/adaptive/decoding.py: decode",
    "inference/mcmc/run.py: sample",
    "learning/chains/online.py: train_online",
}

# Plumbing without a twin of its own: `random` is the twin of `rng.Stream`, the others compute nothing.
NO_TWIN = {"cache", "compiler", "composition", "random"}
COMPILED = {"kernel", "fast_kernel", "lean_kernel"}

# Kernels that run a model: their twin is the plain form of the library itself; the test compares the two.
PLAIN_TWIN = {
    "loops": "tests/inference/mcmc/test_walk.py",
    "projected_chains": "tests/inference/message_passing/projection/test_sequences.py",
    "shifted_chains": "tests/inference/message_passing/projection/test_sequences.py",
}

# Written so that the pattern does not find itself.
MACHINE_PATH = re.compile(r"(?<![\w./])/(?:[w]ork|[r]oot|[h]ome/\w+|[U]sers/\w+)\b|\.\./[s]hared")
INDEX = re.compile(r"--(?:extra-)?[i]ndex-url|--find-[l]inks")


def syntax(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def docstrings(tree: ast.Module) -> list[str]:
    documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    return [ast.get_docstring(node) or "" for node in ast.walk(tree) if isinstance(node, documented)]


def functions(path: Path, decorators: set[str] | None = None) -> set[str]:
    """Public functions at the top of a module; with ``decorators``, only those that bear one of them."""
    found = set()
    for node in syntax(path).body:
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            names = {ast.unparse(decorator).split("(")[0] for decorator in node.decorator_list}
            if decorators is None or names & decorators:
                found.add(node.name)
    return found


def imported(path: Path) -> set[str]:
    """Modules that a file names in its imports."""
    return {
        node.module for node in ast.walk(syntax(path)) if isinstance(node, ast.ImportFrom) and node.module
    }


def reached_from(path: Path) -> set[str]:
    """Modules that a test imports, and those that they import in turn."""
    direct = imported(path)
    files = [SOURCE.parent / f"{module.replace('.', '/')}.py" for module in direct]
    return direct.union(*(imported(file) for file in files if file.is_file()))


def project_files() -> list[Path]:
    """Files that git tracks or would track; outside a checkout, those of the source distribution."""
    command = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\0")
        paths = [ROOT / name for name in listed if name]
    except (OSError, subprocess.CalledProcessError):
        paths = [path for folder in ("src", "tests", "docs") for path in (ROOT / folder).rglob("*")]
    return sorted(path for path in paths if path.is_file() and "__pycache__" not in path.parts)


def text_of(path: Path) -> str:
    """Content of a text file; nothing for any other."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return ""


def bibliography() -> set[str]:
    return set(re.findall(r"^@\w+\{([^,\s]+),", text_of(ROOT / "docs" / "refs.bib"), re.MULTILINE))


def citations(text: str) -> list[str]:
    """Keys in the paragraphs that begin with ``Implements:``."""
    paragraphs = re.findall(r"Implements:.*?(?=\n\s*\n|\Z)", text, re.DOTALL)
    return [key for paragraph in paragraphs for key in re.findall(r"\b[a-z]+\d{2,4}[a-z]+\b", paragraph)]


def test_the_bibliography_has_no_key_twice():
    keys = re.findall(r"^@\w+\{([^,\s]+),", text_of(ROOT / "docs" / "refs.bib"), re.MULTILINE)
    assert keys
    assert len(keys) == len(set(keys))


def test_what_a_docstring_says_it_implements_is_in_the_bibliography():
    known, cited = bibliography(), set()
    for path in MODULES:
        for text in docstrings(syntax(path)):
            keys = set(citations(text))
            assert keys or "Implements:" not in text, f"{path.name}: no key after 'Implements:'"
            assert keys <= known, f"{path.name}: {sorted(keys - known)} not in docs/refs.bib"
            cited |= keys
    assert cited


def test_the_citation_check_sees_keys_and_their_absence():
    assert citations("Implements: wick2009samplerank, Eq. 1.") == ["wick2009samplerank"]
    assert citations("Implements: a2001b, Alg. 2;\n  c2002d.\n\nSee e2003f.") == ["a2001b", "c2002d"]
    assert citations("Implements: the obvious.") == []


@pytest.mark.parametrize("path", KERNELS, ids=lambda path: f"{path.parent.name}.{path.stem}")
def test_every_kernel_has_a_twin_of_the_same_name(path):
    compiled = functions(path, COMPILED)
    if path.stem in NO_TWIN or not compiled:
        return
    if path.stem in PLAIN_TWIN:
        module = ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts)
        assert module in reached_from(ROOT / PLAIN_TWIN[path.stem])
        return
    twin = REFERENCE / path.name
    assert twin.is_file(), f"{path.name} has kernels but no twin in tests/reference/"
    assert compiled <= functions(twin), f"no twin of {sorted(compiled - functions(twin))}"


def test_the_list_of_modules_without_a_twin_is_not_longer_than_needed():
    known = {path.stem for path in KERNELS}
    assert known >= NO_TWIN | set(PLAIN_TWIN)
    assert NO_TWIN & set(PLAIN_TWIN) == set()
    listed = NO_TWIN | set(PLAIN_TWIN)
    assert {name for name in listed if (REFERENCE / f"{name}.py").exists()} == set()


def test_no_two_modules_with_kernels_have_the_same_name():
    """All twins are in one folder, where the name of a kernel's module finds them."""
    names = [path.stem for path in KERNELS if functions(path, COMPILED)]
    assert len(names) == len(set(names))


def test_every_twin_is_that_of_a_kernel():
    assert {path.stem for path in REFERENCE.glob("*.py")} <= {path.stem for path in KERNELS}


def test_no_module_is_longer_than_can_be_read_in_one_go():
    lengths = {
        str(path.relative_to(SOURCE)): len(path.read_text(encoding="utf-8").splitlines()) for path in MODULES
    }
    assert {name for name, length in lengths.items() if length > LONGEST} == LONG_MODULES


def every_function():
    """Yield the name of every function, with its file, and its syntax."""
    for path in MODULES:
        for node in ast.walk(syntax(path)):
            if isinstance(node, ast.FunctionDef):
                yield f"{path.relative_to(SOURCE)}: {node.name}", node


def test_no_function_is_longer_than_a_page():
    long = {name for name, node in every_function() if node.end_lineno - node.lineno >= LONGEST_FUNCTION}
    assert long <= LONG_FUNCTIONS


def test_no_function_has_more_parameters_than_can_be_kept_in_mind():
    many = set()
    for name, node in every_function():
        given = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        count = len(given) - (bool(given) and given[0].arg in ("self", "cls"))
        if count > MOST_PARAMETERS and node.name != "__init__" and not name.startswith("kernels/"):
            many.add(name)
    assert many <= MANY_PARAMETERS


def test_no_folder_has_more_files_than_can_be_looked_over():
    files = Counter(path.parent.relative_to(SOURCE) for path in MODULES)
    assert {str(folder): count for folder, count in files.items() if count > MOST_FILES} == {}


def test_no_file_names_a_folder_of_one_machine():
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in project_files()
        if path != ROOT / ".ci" / "run"  # says where the data lies on the machine that runs it
        for number, line in enumerate(text_of(path).splitlines(), 1)
        if MACHINE_PATH.search(line)
    ]
    assert found == []


def test_the_locked_versions_name_no_package_index():
    for path in (ROOT / "requirements").glob("*.lock"):
        content = text_of(path)
        assert "--hash=sha256:" in content
        assert INDEX.search(content) is None
