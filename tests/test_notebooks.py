"""The notebooks: every code cell runs, what it shows has an HTML view; stored without outputs."""

import ast
import json
import re
from pathlib import Path

import pytest

from running import run_script

FOLDER = Path(__file__).parents[1] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
SHOW = """
def show(value):
    view = getattr(value, "_repr_html_", None)
    print("HTML" if view else "TEXT", type(value).__name__, len(view() if view else repr(value)))
"""


def code_cells(path):
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return [cell for cell in cells if cell["cell_type"] == "code"]


def as_script(path):
    """The cells as one script, in which the value of a cell's last line is shown."""
    parts = [SHOW]
    for cell in code_cells(path):
        tree = ast.parse("".join(cell["source"]))
        *_, last = tree.body
        if isinstance(last, ast.Expr) and not (
            isinstance(last.value, ast.Call) and getattr(last.value.func, "id", "") == "print"
        ):
            last.value = ast.Call(ast.Name("show", ast.Load()), [last.value], [])
        parts.append(ast.unparse(ast.fix_missing_locations(tree)))
    return "\n\n".join(parts) + "\n"


def run(name, folder):
    script = folder / f"{name}.py"
    script.write_text(as_script(FOLDER / f"{name}.ipynb"), encoding="utf-8")
    return run_script(script, folder)


def numbers(text):
    return [float(number) for number in re.findall(r"-?\d+\.\d+", text)]


def test_there_are_three():
    assert [path.stem for path in NOTEBOOKS] == ["clustering", "labels", "networks"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_they_are_stored_without_outputs(path):
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code_cells(path))


def test_networks(tmp_path):
    output = run("networks", tmp_path)
    assert [
        kind in output for kind in ("HTML Network", "HTML Answer", "HTML DataFrame", "HTML DataArray")
    ] == [True] * 4
    assert "HTML FactorGraph" in output
    searched, optimal, bound = numbers(output)
    assert optimal * 1.001 >= searched * 1.001 >= optimal
    assert bound >= optimal


def test_clustering(tmp_path):
    output = run("clustering", tmp_path)
    assert [
        kind in output for kind in ("HTML Model", "HTML Samples", "HTML Partition", "HTML DataFrame")
    ] == [True] * 4
    first, exact_first, second, exact_second, *_ = numbers(output)
    assert abs(first - exact_first) < 0.05
    assert abs(second - exact_second) < 0.05


def test_labels(tmp_path):
    output = run("labels", tmp_path)
    assert [
        kind in output for kind in ("HTML Model", "HTML FactorGraph", "HTML Assignment", "HTML Dataset")
    ] == [True] * 4
    assert numbers(output)[0] < 0.05
