"""What each factor contributes, against the score of whole clusterings from the definition."""

import math
from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest

from factorwise.apps.resolution.blocking import Part, Rule, find_candidates
from factorwise.apps.resolution.comparisons import Comparer, planned
from factorwise.apps.resolution.knowledge import Knowledge
from factorwise.apps.resolution.normalize.normal_forms import normalize
from factorwise.apps.resolution.results.explaining import Explainer, are_candidates
from factorwise.apps.resolution.schema.fields import FieldSpec
from factorwise.errors import InvalidArgumentError
from factorwise.kernels.compile.threads import Team
from factorwise.model.clusterings.level_weights import LevelWeights
from record_cases import people
from resolution_cases import link_score

FIELDS = (FieldSpec("first_name", "name", {"part": "first"}), FieldSpec("surname", "name", {"part": "last"}),
          FieldSpec("town", "category"))  # fmt: skip
RULES = (Rule((Part("surname", "last", "prefix", 3),)),)
TEMPERATURE = 0.7


@pytest.fixture(scope="module")
def case():
    """A table, what is known of it with weights made up, its candidates and their levels."""
    records = people(30)
    table = pa.table({name: [record[name] or None for record in records] for name in records[0]})
    normal = normalize(table, FIELDS)
    candidates = find_candidates(normal, RULES, threads=1)
    comparisons = tuple(planned(normal, candidates.first, candidates.second))
    sizes = tuple(one.cuts.size for one in comparisons)
    weights = np.random.default_rng(5).normal(size=len(LevelWeights.zeros(sizes).values))
    knowledge = Knowledge(FIELDS, RULES, comparisons, LevelWeights(sizes, weights), TEMPERATURE)
    levels = Comparer(normal, comparisons, candidates).levels(candidates.first, candidates.second)
    return table, knowledge, candidates, levels


@pytest.fixture(scope="module")
def explainer(case):
    return Explainer(case[0], case[1], team=Team(1))


def score(case, labels):
    _, knowledge, candidates, levels = case
    return link_score(knowledge.weights, labels, candidates.first, candidates.second, levels)


def alone(case):
    return np.arange(case[0].num_rows)


def test_the_gain_of_a_pair_is_that_of_putting_two_records_together(case, explainer):
    kinds = set()
    for first, second in combinations(range(12), 2):
        together = alone(case)
        together[second] = first
        found = explainer.pair(first, second)
        kinds.add(found.candidates)
        assert found.gain == pytest.approx(score(case, together) - score(case, alone(case)), abs=1e-5)
        assert found.log_odds == pytest.approx(found.gain / TEMPERATURE)
        odds = found.probability / (1.0 - found.probability)
        assert math.log(odds) == pytest.approx(found.log_odds, abs=1e-6)
        assert bool(found.rules) == found.candidates
    assert kinds == {True, False}


def test_how_far_a_pair_leads_the_other_candidates_of_its_records_is_explained_too(case, explainer):
    _, knowledge, candidates, levels = case
    place = [one.measure for one in knowledge.comparisons].index("smaller lead")
    for pair in range(10):
        found = explainer.pair(int(candidates.first[pair]), int(candidates.second[pair])).weighed[place]
        assert (found.field, found.form, found.measure) == ("whole record", "grams", "smaller lead")
        assert found.level == levels[pair, place]
        assert found.weight == knowledge.weights.tables()[place][found.level]
        assert 0.0 <= found.value <= 1.0


def test_the_order_of_the_two_does_not_matter(explainer):
    assert explainer.pair(1, 4) == explainer.pair(4, 1)


def test_what_is_missing_weighs_nothing(case, explainer):
    assert case[0].column("town")[1].as_py() is None
    towns = [one for one in explainer.pair(0, 1).weighed if one.field == "town"]
    assert towns
    assert all((one.value, one.level, one.meaning, one.weight) == (None, 0, "missing", 0.0) for one in towns)


def test_a_relation_of_names_is_said_in_words(explainer):
    relation = next(one for one in explainer.pair(0, 1).weighed if one.measure == "given names")
    assert relation.meaning == "one is an initial of the other"


@pytest.mark.parametrize("inside", [False, True])
def test_the_gain_in_an_entity_is_that_of_joining_it(case, explainer, inside):
    candidates = case[2]
    kinds = set()
    for row in (0, 7, 20):
        members = np.array([2, 5, 9, 31, 33, 40])
        apart = alone(case)
        apart[members] = 2
        joined = apart.copy()
        joined[row] = 2
        found = explainer.placing(row, np.append(members, row) if inside else members)
        assert found.gain == pytest.approx(score(case, joined) - score(case, apart), abs=1e-4)
        linked = are_candidates(candidates, row, members)
        assert {mate for mate, _ in found.linked} == set(members[linked].tolist())
        assert found.others == int((~linked).sum())
        scores = [value for _, value in found.linked]
        assert scores == sorted(scores, reverse=True)
        kinds |= set(linked.tolist())
    assert kinds == {True, False}


def test_a_record_gains_nothing_where_nobody_is(explainer):
    found = explainer.placing(3, np.array([3]))
    assert (found.gain, found.log_odds, found.probability) == (0.0, 0.0, 0.5)


@pytest.mark.parametrize("rows", [(1, 1), (-1, 2), (0, 10_000)])
def test_other_than_two_different_rows_are_refused(explainer, rows):
    with pytest.raises(InvalidArgumentError, match="give two different ones from 0 to"):
        explainer.pair(*rows)
