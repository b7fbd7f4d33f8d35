"""Learning from tables: with entities, with labelled pairs, and without labels."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from factorwise.apps.resolution.blocking import find_candidates
from factorwise.apps.resolution.labelled import LabelledPairs, labelled_pairs
from factorwise.apps.resolution.normalize.normal_forms import normalize
from factorwise.apps.resolution.training import (
    entity_column,
    entity_numbers,
    fitting,
    learn,
    learn_without_labels,
    sampled,
)
from factorwise.apps.resolution.training.ladder import IN_CONTEXT, RUNGS
from factorwise.apps.resolution.training.link_learning import LinkTraining
from factorwise.errors import DataFileError, InvalidArgumentError, ShapeError
from factorwise.inference.mcmc.shards.search import LinkSearch
from factorwise.kernels.compile.threads import Team
from resolution_cases import FIELDS, RULES, people_table

ALONE = Team(1)
PEOPLE = people_table(60)
ENTITY = entity_numbers(PEOPLE, "person")


def taught(entity=ENTITY, table=PEOPLE, **more):
    told = []
    knowledge = learn(
        table,
        FIELDS,
        entity,
        rules=RULES,
        learner=LinkTraining(passes=1, steps=2, fewest=500),
        search=LinkSearch(rounds=4),
        seed=1,
        team=ALONE,
        tell=told.append,
        **more,
    )
    return knowledge, told


def untaught(table=PEOPLE, **more):
    return learn_without_labels(
        table, FIELDS, rules=RULES, seed=1, team=ALONE, tell=lambda text: None, **more
    )


def judged(count, seed=2):
    """Candidate pairs with what is true of them."""
    found = find_candidates(normalize(PEOPLE, FIELDS), RULES, threads=1)
    rows = np.random.default_rng(seed).choice(len(found.first), count, replace=False)
    first, second = found.first[rows].astype(np.int64), found.second[rows].astype(np.int64)
    return LabelledPairs(first, second, ENTITY[first] == ENTITY[second])


def test_what_is_learned_fits_together_and_says_how_it_was_come_by():
    blocks = []
    knowledge, told = taught(blocked=lambda *found: blocks.append(found))
    assert (knowledge.fields, knowledge.rules) == (FIELDS, RULES)
    assert knowledge.weights.sizes == tuple(one.cuts.size for one in knowledge.comparisons)
    record = knowledge.training
    assert (record["labelled"], record["records"], record["labelled_pairs"]) == (len(ENTITY), len(ENTITY), 0)
    assert record["method"].removesuffix(IN_CONTEXT) in {rung.name for rung in RUNGS}
    assert record["b_cubed"] == record["methods"][record["method"]] > 0.8
    assert record["held_out"] > 0
    assert knowledge.temperature > 0.0
    (candidates, normal, entity), = blocks  # fmt: skip
    assert entity.tolist() == list(ENTITY)
    assert normal.n_rows == len(ENTITY)
    assert told[0] == f"{len(candidates.first):,} candidate pairs by {len(RULES)} rules"


def test_the_same_seed_learns_the_same():
    one, two = taught()[0], taught()[0]
    assert one.weights.values.tolist() == two.weights.values.tolist()
    assert one.temperature == two.temperature


def test_labelled_pairs_change_what_entities_teach():
    pairs = judged(100)
    told = taught(pairs=pairs._replace(same=~pairs.same))[0]
    assert told.training["labelled_pairs"] == 100
    assert told.weights.values.tolist() != taught()[0].weights.values.tolist()


def test_labelled_pairs_change_what_is_found_without_entities():
    pairs = judged(100)
    plain, told, wrong = untaught(), untaught(pairs=pairs), untaught(pairs=pairs._replace(same=~pairs.same))
    assert (plain.training["labelled_pairs"], told.training["labelled_pairs"]) == (0, 100)
    assert (plain.unlabelled is None, told.unlabelled is None) == (False, True)
    assert wrong.comparisons == told.comparisons
    assert wrong.weights.values.tolist() != told.weights.values.tolist()
    assert plain.temperature == told.temperature == 1.0


@pytest.mark.parametrize(
    ("entity", "said"),
    [
        (np.arange(len(ENTITY), dtype=np.int32), "no two labelled records are of one entity"),
        (np.full(len(ENTITY), -1, np.int32), "no two labelled records are of one entity"),
        (np.where(ENTITY == 0, 0, -1).astype(np.int32), "all labelled records are of one entity"),
    ],
)
def test_entities_from_which_nothing_can_be_learned_are_refused(entity, said):
    with pytest.raises(InvalidArgumentError, match=rf"{said}.*resolve without a model"):
        taught(entity)


def test_records_without_anything_in_common_teach_nothing():
    apart = pa.table({name: [None, None] if name != "town" else ["x", "y"] for name in PEOPLE.column_names})
    table = pa.concat_tables([apart, apart]).slice(0, 3)
    with pytest.raises(InvalidArgumentError, match="have anything in common"):
        taught(np.array([0, 0, 1], np.int32), table)
    assert len(untaught(table).comparisons) == 0


@pytest.mark.parametrize(
    "given",
    [
        ["x", None, "y", ""],
        pa.chunked_array([["x", None], ["y", ""]]),
        pa.array(["x", None, "y", ""], pa.large_string()),
        np.array([3.0, np.nan, 1.0, np.nan]),
        pd.Series(["x", None, "y", None]),
        [7, None, 8, None],
    ],
    ids=["list", "chunks", "large", "floats", "series", "integers"],
)
def test_entities_are_numbered_and_missing_ones_have_none(given):
    table = pa.table({"a": [1, 2, 3, 4]})
    assert entity_numbers(table, given).tolist() == [0, -1, 1, -1]
    assert entity_column(table, given).null_count == 2


def test_entities_must_be_a_column_or_one_for_each_record():
    table = pa.table({"a": [1, 2], "e": ["x", ""]})
    assert entity_numbers(table, "e").tolist() == [0, -1]
    with pytest.raises(InvalidArgumentError, match="no column 'f' with entities; there are a, e"):
        entity_numbers(table, "f")
    with pytest.raises(ShapeError, match="2 records need an entity each, but 3 were given"):
        entity_numbers(table, [1, 2, 3])


def test_of_very_many_candidates_a_sample_says_where_levels_are_cut(monkeypatch):
    candidates = find_candidates(normalize(PEOPLE, FIELDS), RULES, threads=1)
    assert sampled(candidates, 1)[0] is candidates.first
    monkeypatch.setattr(fitting, "SAMPLE", 20)
    pairs = list(zip(candidates.first.tolist(), candidates.second.tolist(), strict=True))
    some = list(zip(*(side.tolist() for side in sampled(candidates, 1)), strict=True))
    assert len(set(some)) == len(some) == 20
    assert [pair for pair in pairs if pair in set(some)] == some
    assert len(untaught(pairs=judged(20)).comparisons) > 0


# labelled pairs

IDS = pa.array(["a", "b", "c"])


@pytest.mark.parametrize(
    "given",
    [
        [("a", "b", True), ("c", "a", False)],
        [["a", "b", 1], ["c", "a", 0]],
        [{"id": "a", "other": "b", "same": "true"}, {"id": "c", "other": "a", "same": "False"}],
        pa.table({"same": ["1", "0"], "other": ["b", "a"], "id": ["a", "c"], "note": ["x", "y"]}),
        pd.DataFrame({"id": ["a", "c"], "other": ["b", "a"], "same": [True, False]}),
    ],
    ids=["tuples", "lists", "records", "table", "frame"],
)
def test_labelled_pairs_are_found_among_the_records(given):
    first, second, same = labelled_pairs(given, IDS)
    assert (first.tolist(), second.tolist(), same.tolist()) == ([0, 2], [1, 0], [True, False])


def test_labelled_pairs_may_name_rows():
    first, second, _ = labelled_pairs([(2, 0, True)], pa.array([0, 1, 2]))
    assert (first.tolist(), second.tolist()) == ([2], [0])


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            [("a", "z", True)],
            r"'other': no record has the id 'z' \(pair 1\); ids are such as 'a', 'b', 'c'\. Correct it, or"
            " remove the pair",
        ),
        ([("a", "a", True)], "pair 1 is of record 'a' and itself: take it out"),
        ([("a", "b", "maybe")], "'same'.*Write true or 1"),
        ([("a", "b", None)], "pair 1 does not say whether it is the same"),
        ([("a", "b")], "must have three parts each"),
        (pa.table({"id": ["a"], "other": ["b"]}), "same"),
        ([], "empty"),
    ],
)
def test_labelled_pairs_that_say_too_little_are_refused(given, said):
    with pytest.raises((InvalidArgumentError, DataFileError), match=said):
        labelled_pairs(given, IDS)


@pytest.mark.parametrize(("share", "thrifty"), [(0.9, True), (0.02, False)])
def test_fewer_candidates_do_if_they_find_nearly_as_many_true_pairs(monkeypatch, share, thrifty):
    many = len(find_candidates(normalize(PEOPLE, FIELDS), RULES, threads=1))
    monkeypatch.setattr(fitting, "thrifty_budget", lambda n: int(share * many))
    monkeypatch.setattr(fitting, "NEARLY", 0.8)
    blocks = []
    knowledge, _ = taught(blocked=lambda *found: blocks.append(found))
    assert knowledge.thrifty == thrifty
    assert len(blocks[0][0]) == (int(share * many) if thrifty else many)
