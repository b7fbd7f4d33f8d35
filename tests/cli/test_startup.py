"""Help of every verb, and a model that is applied, load no more than they need."""

import json
import subprocess
import sys
from typing import get_args

import pytest

from factorwise.cli import samplerank_options
from factorwise.cli.main import VERBS
from factorwise.cli.tag import fit as tag_fit
from factorwise.cli.verbs import GROUPS

HEAVY = ("numba", "scipy", "scipy.optimize", "scipy.stats", "sklearn", "pandas")
SCRIPT = """
import json, sys
sys.argv[1:] = {words}
from factorwise.cli.main import main
try:
    main()
except SystemExit as end:
    loaded = [name for name in {heavy} if sys.modules.get(name)]
    print(json.dumps([end.code, loaded]), file=sys.stderr)
"""


def every_verb() -> list[tuple[str, ...]]:
    """Return the words of every verb, of groups those inside."""
    found: list[tuple[str, ...]] = []
    for name in VERBS:
        found += [(name, inside) for inside in GROUPS[name].verbs] if name in GROUPS else [(name,)]
    return found


def loaded_by(*words: str) -> list[str]:
    """Return which heavy packages a command loads, in a process of its own."""
    script = SCRIPT.format(words=list(words), heavy=HEAVY)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    told = next(line for line in done.stderr.splitlines() if line.startswith("["))
    code, loaded = json.loads(told)
    assert code == 0, done.stderr
    return loaded


def test_no_help_loads_the_compiler_or_scientific_packages():
    names = [
        GROUPS[words[0]].verbs[words[1]][0] if len(words) > 1 else VERBS[words[0]][0]
        for words in every_verb()
    ]
    code = f"import json, sys, {', '.join(names)}; print([n for n in {HEAVY} if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("words", [("resolve", "apply"), ("tag", "fit")])
def test_help_is_shown_without_them(words):
    assert loaded_by(*words, "--help") == []


def test_a_model_is_applied_without_scikit_learn_and_pandas(tmp_path):
    people = tmp_path / "people.csv"
    names = ["ada king", "ada kong", "bo li", "bo lie", "cy dune", "cy dunne"]
    people.write_text("id,name\n" + "".join(f"{k},{name}\n" for k, name in enumerate(names)))
    loaded = loaded_by(
        "resolve", "apply", str(people), "--id", "id", "-o", str(tmp_path / "out.csv"), "--quiet"
    )
    assert not {"scipy.optimize", "scipy.stats", "sklearn", "pandas"} & set(loaded)


def test_names_listed_for_help_are_those_that_the_learners_know():
    from factorwise.apps.tagging.config import ALGORITHMS
    from factorwise.apps.tagging.constraints import SCHEMES
    from factorwise.apps.tagging.cross_fitting import FOLDS
    from factorwise.inference.mcmc.acceptances import AcceptanceName
    from factorwise.learning.samplerank.preferences import MetricName
    from factorwise.learning.updates import RULES

    assert tuple(RULES) == samplerank_options.UPDATES
    assert get_args(AcceptanceName) == samplerank_options.ACCEPTANCES
    assert get_args(MetricName) == samplerank_options.METRICS
    assert (ALGORITHMS, SCHEMES, FOLDS) == (tag_fit.ALGORITHMS, tag_fit.SCHEMES, tag_fit.FOLDS)
