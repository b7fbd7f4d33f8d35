"""The recipes of CONTRIBUTING: their examples run, and the files that they name exist."""

import json
import re
import runpy
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from factorwise.apps.resolution.comparisons import measures, plan
from factorwise.apps.resolution.normalize.forms import Numbers
from factorwise.apps.resolution.schema.fields import KINDS

ROOT = Path(__file__).parents[1]
RECIPES = dict(
    re.findall(
        r"^### ([^\n]+)\n(.*?)(?=^###|\Z)",
        (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"),
        re.MULTILINE | re.DOTALL,
    )
)


def run_example(recipe, folder):
    """Run the example of a recipe as a script and return its names."""
    script = folder / "example.py"
    script.write_text(re.search(r"```python\n(.*?)```", RECIPES[recipe], re.DOTALL)[1], encoding="utf-8")
    return runpy.run_path(str(script))


def test_there_is_a_recipe_for_each_thing_that_people_add():
    wanted = {
        "A template",
        "A move",
        "A preference",
        "A measure of two values",
        "A kind of column",
        "A verb",
    }
    assert wanted <= set(RECIPES)


@pytest.mark.parametrize("recipe", RECIPES)
def test_the_files_of_a_recipe_exist(recipe):
    for path in re.findall(r"`((?:[\w]+/)+[\w]*\.?(?:py)?)`", RECIPES[recipe]):
        roots = (ROOT, ROOT / "src/factorwise", ROOT / "src/factorwise/apps/resolution")
        assert any((root / path).exists() for root in roots), path


@pytest.mark.parametrize("recipe", ["A template", "A move", "A preference"])
def test_the_example_of_a_part_passes_its_own_checks(recipe, tmp_path):
    run_example(recipe, tmp_path)


def test_a_measure_is_prepared_with_a_form_and_compares_rows(tmp_path, monkeypatch):
    monkeypatch.setitem(
        measures._OF_NUMBERS, "parity", run_example("A measure of two values", tmp_path)["SameParity"]
    )
    measure = measures.number_measure(Numbers(np.array([1.0, 3.0, 4.0, np.nan])), "parity")
    assert measure(np.array([0, 0]), np.array([1, 2])).tolist() == [1.0, 0.0]


def test_every_kind_of_column_says_how_it_is_compared():
    assert set(KINDS) - {"ignore"} <= set(plan.COMPARED)


def test_a_verb_gets_the_shared_options(tmp_path):
    command = run_example("A verb", tmp_path)["command"]
    assert json.loads(CliRunner().invoke(command, ["21", "--json"]).output)["result"] == 42
    assert CliRunner().invoke(command, ["21"]).output == "42\n"
