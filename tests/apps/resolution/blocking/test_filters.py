"""Filters of candidate pairs: what they keep, what they lose, and what is brought back."""

from dataclasses import replace

import numpy as np
import pytest

from apps.resolution.blocking.tables import lists, numbers, strings, table
from factorwise.apps.resolution.blocking import Part, Rule, find_candidates
from factorwise.apps.resolution.blocking.filters import PairFilter, learn_filter, signatures
from factorwise.apps.resolution.constraints import Constraints
from factorwise.apps.resolution.linking import score_candidates, score_pairs
from factorwise.apps.resolution.normalize.normal_forms import normalize
from factorwise.distributed import LocalExecutor
from factorwise.errors import InvalidArgumentError
from factorwise.kernels.compile.threads import Team
from reference.pair_joins import levels_of
from resolution_cases import FIELDS, known_of, people_table

RULE = Rule((Part("block", "text"),))
ALONE = Team(1)


def records(count=400, seed=0):
    """Two records of each entity; they share three of four columns, others by chance."""
    draws = np.random.default_rng(seed)
    entity = np.repeat(np.arange(count // 2), 2)
    columns = draws.integers(0, 30, (count // 2, 3))[entity]
    spoiled = draws.random(columns.shape) < 0.1
    columns[spoiled] = draws.integers(0, 30, int(spoiled.sum()))
    texts = [[None if draws.random() < 0.05 else f"v{value}" for value in column] for column in columns.T]
    words = [[f"w{number}", f"w{draws.integers(0, 20)}"] for number in entity]
    normal = table(
        count,
        block=("category", {"text": strings([f"b{number % 8}" for number in entity])}),
        one=("category", {"text": strings(texts[0])}),
        two=("category", {"text": strings(texts[1])}),
        year=("number", {"number": numbers(columns[:, 2].astype(float).tolist())}),
        words=("text", {"tokens": lists(words)}),
    )
    return normal, entity


NORMAL, ENTITY = records()
ALL = find_candidates(NORMAL, [RULE], threads=1)
SAME = ALL.of_one_entity(ENTITY)
SCORES = np.where(SAME, 4.0, -4.0)
LEARNED = learn_filter(NORMAL, ALL.first, ALL.second, SCORES, SAME, 1.0)


def passes(pair_filter, normal, one, two):
    levels = levels_of(*signatures(normal, pair_filter.columns, pair_filter.masks), one, two)
    tables = [*pair_filter.weights, *pair_filter.mask_weights]
    return sum(table[level] for table, level in zip(tables, levels, strict=True)) >= pair_filter.least[0]


def pairs(candidates):
    return list(zip(candidates.first.tolist(), candidates.second.tolist(), strict=True))


def test_most_pairs_are_spared_and_hardly_a_true_one_is_lost():
    report = LEARNED.report
    assert (report.pairs, report.true_pairs) == (len(ALL), int(SAME.sum()))
    assert report.kept < 0.1 * report.pairs
    assert report.lost <= 1
    other, entity = records(seed=1)
    found = find_candidates(other, [RULE], pair_filter=LEARNED, threads=1)
    assert len(found) < 0.1 * len(ALL)
    assert found.of_one_entity(entity).sum() >= 0.98 * SAME.sum()


@pytest.mark.parametrize("given", [{"threads": 1}, {"threads": 2}, {"executor": LocalExecutor(2)}])
def test_pairs_kept_are_those_that_pass_and_the_others_come_back_inside_groups(given):
    found = find_candidates(NORMAL, [RULE], pair_filter=LEARNED, **given)
    assert pairs(found) == [pair for pair in pairs(ALL) if passes(LEARNED, NORMAL, *pair)]
    groups = np.arange(NORMAL.n_rows) % 5
    inside = found.pairs_inside(groups)
    kept = set(pairs(found))
    assert pairs(inside) == [
        (one, two) for one, two in pairs(ALL) if (one, two) not in kept and groups[one] == groups[two]
    ]
    assert len(ALL.pairs_inside(groups)) == 0


def test_signatures_tell_missing_values_and_never_part_equal_ones():
    made = signatures(NORMAL, LEARNED.columns, LEARNED.masks)
    for place, (field, form) in enumerate(LEARNED.columns):
        missing = NORMAL[field][form].missing
        assert ((made.columns[:, place] == 0) == missing).all()
        values = NORMAL[field][form].to_list()
        by_value = {value: made.columns[row, place] for row, value in enumerate(values)}
        assert all(made.columns[row, place] == by_value[value] for row, value in enumerate(values))
    assert made.masks.dtype == np.uint64
    assert {bin(int(mask)).count("1") for mask in made.masks[:, 0]} <= {1, 2}


def test_a_filter_is_not_learned_where_it_spares_little_or_there_is_little_to_learn_from():
    def learned(scores, some=slice(None)):
        return learn_filter(NORMAL, ALL.first[some], ALL.second[some], scores[some], SAME[some], 1.0)

    assert learned(np.ones(len(ALL))) is None
    assert learned(SCORES, slice(500)) is None
    assert learned(np.random.default_rng(0).normal(size=len(ALL))) is None


def test_more_is_asked_for_where_scores_are_lower():
    graded = np.where(SAME, np.linspace(0.0, 8.0, len(ALL)), -4.0)
    learned = learn_filter(NORMAL, ALL.first, ALL.second, graded, SAME, 1.0)
    assert list(learned.least) == sorted(learned.least)
    kept = [
        len(find_candidates(NORMAL, [RULE], pair_filter=replace(learned, offset=offset), threads=1))
        for offset in (0.0, 0.9, 5.5, 99.0)
    ]
    assert kept[0] == kept[1] >= kept[2] >= kept[3] > 0


def test_a_filter_comes_back_from_plain_values_and_bad_ones_are_refused():
    saved = LEARNED.as_dict()
    assert PairFilter.from_dict(saved) == LEARNED
    with pytest.raises(InvalidArgumentError, match="3 weights for each of"):
        PairFilter.from_dict({**saved, "weights": saved["weights"][1:]})
    with pytest.raises(InvalidArgumentError, match="ascending"):
        PairFilter.from_dict({**saved, "least": []})
    with pytest.raises(InvalidArgumentError, match="looks for lists"):
        signatures(NORMAL, [], [("one", "text")])


def test_what_was_filtered_is_scored_between_records_that_positive_links_bring_together():
    people = people_table(60)
    knowledge = known_of(people)
    normal = normalize(people, FIELDS)
    names = (("first_name", "first"), ("surname", "last"))
    either = PairFilter(names, (), ((0, 0, 1), (0, 0, 1)), (), (1,), LEARNED.report)
    filtered = replace(knowledge, pair_filter=either)
    candidates = filtered.candidates(normal, filtered=True, threads=1)
    found, scores = score_candidates(normal, candidates, filtered, Constraints(), ALONE)
    assert len(candidates) < len(found) < len(filtered.candidates(normal, threads=1))
    assert pairs(found) == sorted(pairs(found))
    assert (
        scores.tolist()
        == score_pairs(normal, knowledge, found.first, found.second, ALONE, among=candidates).tolist()
    )
    assert filtered.candidates(normal, threads=1).tested is None
