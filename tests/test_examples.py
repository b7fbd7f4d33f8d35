"""The examples and what the README shows: run in this process, with their results; one as a reader does."""

import math
import re
import subprocess
import sys
from itertools import pairwise, product
from pathlib import Path

import pytest

from running import run_script

ROOT = Path(__file__).parents[1]
EXAMPLES = {path.stem: path for path in sorted((ROOT / "examples").glob("*.py"))}
OWN_MODEL = "docs/tutorials/own-model.md"
PYTHON = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
BLOCKS = {
    page: PYTHON.findall((ROOT / page).read_text(encoding="utf-8")) for page in ("README.md", OWN_MODEL)
}
LINKS = re.compile(r"\]\((?!https?:)([^)#]+)")
LONGEST = {"README block": 15, "example": 40}


def numbers(text):
    return [float(number) for number in re.findall(r"-?\d+\.\d+", text)]


def test_every_example_has_a_test():
    tested = {"chain_marginals", "clustering", "ising_grid", "own_template", "skip_chain"}
    assert set(EXAMPLES) == tested | {"adaptive_proposer"}


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_examples_are_short(name):
    assert len(EXAMPLES[name].read_text(encoding="utf-8").splitlines()) < LONGEST["example"]


def test_the_chain_agrees_with_the_sum_over_all_paths():
    """Dry is 0, rainy 1; nothing is carried on day 0 and day 3."""
    chance = [(0.8, 0.1), (0.2, 0.9), (0.2, 0.9), (0.8, 0.1), (0.2, 0.9)]
    paths = {
        path: math.prod(chance[day][path[day]] for day in range(5))
        * math.prod(0.7 if today == tomorrow else 0.3 for today, tomorrow in pairwise(path))
        for path in product((0, 1), repeat=5)
    }
    total = sum(paths.values())
    rainy = [sum(p for path, p in paths.items() if path[day]) / total for day in range(5)]
    output = run_script(EXAMPLES["chain_marginals"], ROOT)
    *found, best, log_partition = numbers(output)
    assert found == [round(p, 3) for p in rainy]
    assert best == round(math.log(max(paths.values())), 3)
    assert log_partition == round(math.log(total), 6)
    assert "most probable: dry rainy rainy dry rainy" in output


def test_an_example_runs_in_a_process_of_its_own():
    """Where nothing is imported or compiled before."""
    words = [sys.executable, "-W", "error", EXAMPLES["chain_marginals"]]
    alone = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert (alone.returncode, alone.stderr) == (0, "")
    assert alone.stdout == run_script(EXAMPLES["chain_marginals"], ROOT)


def test_belief_propagation_comes_near_the_junction_tree():
    output = run_script(EXAMPLES["ising_grid"], ROOT)
    approximate, exact, worst = numbers(output)
    assert exact == 54.6797
    assert 0 < abs(approximate - exact) < 0.5
    assert 0 < worst < 0.05
    assert "junction tree of width" in output


def test_a_trained_proposer_needs_fewer_jumps_than_a_uniform_one():
    output = run_script(EXAMPLES["adaptive_proposer"], ROOT)
    by = {name: float(weight) for name, weight in re.findall(r"merge by (.+?) +(-?\d+\.\d+)", output)}
    assert by["pairs: count of alike"] > 1 > -1 > by["pairs: count of unlike"]
    (_, trained), (_, uniform) = re.findall(r"score (\S+) after (\d+) jumps", output)
    assert int(uniform) > 3 * int(trained)  # until it is as good, or gives up


def test_clustering_finds_the_people_with_about_the_exact_probabilities():
    output = run_script(EXAMPLES["clustering"], ROOT)
    *shares, score = numbers(output)
    assert score == 5.0
    assert "[0, 0, 1, 2, 2, 3]" in output
    assert len(shares) == 8
    for sampled, exact in zip(shares[::2], shares[1::2], strict=True):
        assert abs(sampled - exact) < 0.05


def test_the_template_of_ones_own_passes_its_check():
    output = run_script(EXAMPLES["own_template"], ROOT)
    assert "difference agrees with statistics along 500 random diffs" in output
    assert numbers(output) == [-2.0]


def test_skip_edges_carry_what_a_clear_mention_says_to_the_unclear_ones():
    output = run_script(EXAMPLES["skip_chain"], ROOT)
    chain, skip_chain, by_pseudo_likelihood = numbers(output)
    assert 1 / 3 < chain < 0.8  # one mention in three is clear; the others are a guess between two tags
    assert min(skip_chain, by_pseudo_likelihood) > 0.95
    assert "skip chain by pseudo-likelihood" in output


def run_block(page, number, folder):
    """Run one block of a page from a file: compiling needs the source of functions."""
    script = folder / "block.py"
    script.write_text(BLOCKS[page][number], encoding="utf-8")
    return run_script(script, folder)


def test_the_readme_has_two_short_blocks():
    assert len(BLOCKS["README.md"]) == 2
    assert max(len(block.splitlines()) for block in BLOCKS["README.md"]) <= LONGEST["README block"]


def test_the_readme_labels_names(tmp_path):
    output = run_block("README.md", 0, tmp_path)
    assert "[['B-PER', 'O'], ['B-PER', 'O']]" in output
    assert "Span(kind='PER', start=0, end=1, confidence=0." in output
    assert (tmp_path / "names.fw").is_file()


def test_the_readme_finds_who_is_who(tmp_path):
    output = run_block("README.md", 1, tmp_path)
    assert "[0, 0, 1, 2, 2, 0]" in output
    assert "score 4.0" in output
    together, apart, unknown = (float(x) for x in re.search(r"\n\[(.*)\]", output)[1].split())
    assert apart < unknown < together
    assert together > 0.5


def test_the_tutorial_learns_what_makes_records_the_same(tmp_path):
    output = run_block(OWN_MODEL, 1, tmp_path)
    first, last, city, together = (float(x) for x in re.search(r"\[(.*?)\]", output)[1].split())
    assert min(first, last, city) > 0.5
    assert together < -0.5
    assert float(re.search(r"value=([\d.]+)", output)[1]) > 0.6


def test_the_tutorial_finds_the_rainy_days(tmp_path):
    output = run_block(OWN_MODEL, 2, tmp_path)
    dry, first, second = (float(x) for x in re.findall(r"'([\d.]+)'", output))
    assert dry < 0.5 < first < second


def test_the_tutorial_checks_a_template(tmp_path):
    assert run_block(OWN_MODEL, 3, tmp_path) == ""


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/architecture.md"])
def test_links_between_pages_lead_somewhere(name):
    page = ROOT / name
    for link in LINKS.findall(page.read_text(encoding="utf-8")):
        assert (page.parent / link).exists(), f"{name} links to {link}, which is not there"
