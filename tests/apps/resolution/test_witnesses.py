"""Evidence beside the columns: pairs that another tool has scored, and sources that an entity has again."""

import numpy as np
import pyarrow as pa
import pytest

from factorwise.apps.resolution import (
    EntityResolver,
    FieldSpec,
    add_pair_scores,
    common_words,
    different_values,
    repeated_sources,
)
from factorwise.apps.resolution.normalize.normal_forms import normalize
from factorwise.apps.resolution.pair_scores import pair_score_forms
from factorwise.apps.resolution.record_items import RecordItems
from factorwise.errors import DataFileError, InvalidArgumentError
from factorwise.metrics.clustering import b_cubed
from factorwise.world.partition import Partition
from record_cases import people

FAST = {"steps": 10, "rounds": 6, "n_jobs": 1}


def bare_people(count):
    """People with little to tell them by."""
    records = people(count)
    for record in records:
        record["born"] = record["email"] = record["town"] = ""
    return records


PEOPLE = bare_people(240)
PERSONS = [record["person"] for record in PEOPLE]


def scored_people():
    """Scores of pairs of neighboring records, which tell the truth nearly always."""
    rng = np.random.default_rng(0)
    rows = []
    for one in range(len(PEOPLE)):
        for two in range(one + 1, min(one + 6, len(PEOPLE))):
            sign = 1.0 if PERSONS[one] == PERSONS[two] else -1.0
            score = rng.normal(3.0 * sign, 1.0)
            rows.append({"id": PEOPLE[one]["id"], "other": PEOPLE[two]["id"], "log_odds": score})
    return rows


def score(found, table):
    return b_cubed(PERSONS, found.resolve(table, id="id").labels.tolist()).f1


def test_scores_of_pairs_are_learned_as_one_more_comparison(tmp_path):
    plain = pa.Table.from_pylist(PEOPLE)
    table = add_pair_scores(plain, scored_people(), "id")
    without = EntityResolver(**FAST).fit(plain, "person", id="id")
    helped = EntityResolver(**FAST).fit(table, "person", id="id")
    assert score(helped, table) > score(without, plain) + 0.05
    pair = helped.explain(table, id="id").pair(0, 1)
    (weighed,) = (one for one in pair.weighed if one.field == "pair scores")
    assert (weighed.measure, weighed.form) == ("log odds", "pairs")
    helped.save(tmp_path / "model.fw")
    loaded = EntityResolver.load(tmp_path / "model.fw", n_jobs=1, rounds=6)
    np.testing.assert_array_equal(
        loaded.resolve(table, id="id").labels, helped.resolve(table, id="id").labels
    )
    with pytest.raises(InvalidArgumentError, match="no column 'pair scores'"):
        loaded.resolve(plain, id="id")


def test_scored_pairs_are_candidates():
    table = add_pair_scores(pa.Table.from_pylist(PEOPLE), scored_people(), "id")
    rule = "scored of pair scores"
    resolver, found = EntityResolver(rules=[rule], **FAST), []
    resolver.fit(table, "person", id="id", blocked=lambda candidates, *more: found.append(candidates))
    assert len(found[0]) == len(scored_people())
    assert resolver.explain(table, id="id").pair(0, 1).rules == (rule,)


def test_scores_of_pairs_count_without_labels():
    draws = np.random.default_rng(1)
    words = ["".join(draws.choice(list("abcdefgh"), 5)) for _ in range(400)]
    entity = np.repeat(np.arange(200), 2)
    names = [" ".join(draws.choice(words, 2, replace=False)) for _ in range(200)]
    titles = [names[k] if draws.random() < 0.6 else None for k in entity]
    rows = []
    for one in range(400):
        for two in range(one + 1, min(one + 4, 400)):
            odds = draws.normal(3.0 if entity[one] == entity[two] else -3.0)
            rows.append({"id": str(one), "other": str(two), "log_odds": odds})
    table = pa.table({"id": [str(k) for k in range(400)], "title": titles, "year": 1990 + entity % 20})
    scored = add_pair_scores(table, rows, "id")
    found, without = (
        b_cubed(entity, EntityResolver(n_jobs=1).fit(each, id="id").resolve(each, id="id").labels).f1
        for each in (scored, table)
    )
    assert found > without + 0.1


def test_scores_go_with_the_rows_of_their_records():
    pairs = [("a", "b", 1.0), ("b", "a", 2.0), ("c", "b", 4.0), ("a", "z", 9.0), ("c", "d", -1.0)]
    rows = [{"id": one, "other": two, "log_odds": score} for one, two, score in pairs]
    table = add_pair_scores(pa.table({"key": ["a", "b", "c", "d"]}), rows, "key")
    for order in ([0, 1, 2, 3], [3, 2, 0], [2, 1]):
        column = table.take(order).column("pair scores")
        form = pair_score_forms(column, "pair scores")["pairs"]
        expected = {(0, 1): 2.0, (1, 2): 4.0, (2, 3): -1.0}
        for a in range(len(order)):
            for b in range(len(order)):
                value = form.lookup(np.array([a]), np.array([b]))[0]
                wanted = expected.get((min(order[a], order[b]), max(order[a], order[b])), np.nan)
                np.testing.assert_equal(value, np.float32(wanted))
    whole = pair_score_forms(table.column("pair scores"), "pair scores")["pairs"]
    part = whole.rows(np.array([2, -1, 1]))
    assert part.lookup(np.array([0, 0]), np.array([2, 1])).tolist()[0] == 4.0
    assert part.missing.tolist() == [False, True, False]


def test_scores_that_do_not_fit_are_refused():
    table, rows = pa.table({"key": ["a", "b"]}), [{"id": "x", "other": "y", "log_odds": 1.0}]
    with pytest.raises(DataFileError, match="no column 'id'"):
        add_pair_scores(table, rows, "id")
    with pytest.raises(InvalidArgumentError, match="no scored pair is of these records"):
        add_pair_scores(table, rows, "key")
    rows[0]["id"] = "a"
    with pytest.raises(InvalidArgumentError, match="already"):
        add_pair_scores(add_pair_scores(table, rows, "key"), rows, "key")
    with pytest.raises(InvalidArgumentError, match="scores of pairs, but its type is string"):
        normalize(table, [FieldSpec("key", "scores")])


def test_links_between_two_sources_get_weights_of_their_own():
    """Equal names are one entity only between shops: within a shop they are namesakes."""
    draws = np.random.default_rng(0)
    names = ["".join(draws.choice(list("abcdefghij"), 6)) for _ in range(150)]
    rows = [
        {"name": name, "shop": shop, "entity": f"{name} {k}", "code": k if draws.random() < 0.5 else None}
        for name in names
        for k in "12"
        for shop in ("x", "y")
    ]
    table = pa.Table.from_pylist(rows)
    fields = [FieldSpec("shop", "source"), FieldSpec("name", "text"), FieldSpec("code", "category")]
    resolver = EntityResolver(fields=fields, context=False, **FAST).fit(table, "entity")
    weights = resolver.knowledge_.weights_by_comparison()
    within, between = (weights.get(f"shop: pair of sources {ends}", [0.0])[-1] for ends in ("x & x", "x & y"))
    assert between > within + 1.0
    first = resolver.explain(table).pair(0, 1)
    assert any(one.form == "sources x & y" and one.level == 2 for one in first.weighed)


def test_sources_that_an_entity_has_again_are_counted():
    sources = pa.table({"shop": ["x", "x", "y", "x"]})
    records = RecordItems(sources, np.arange(4, dtype=np.int32), 4)
    template = repeated_sources("shop")(records)
    for labels, expected in (([0, 0, 0, 0], 2.0), ([0, 1, 0, 1], 1.0), ([0, 1, 2, 3], 0.0)):
        assert template.statistics(Partition.from_labels(labels)).value.sum() == expected


def test_different_values_and_common_words_of_entities_are_counted():
    table = pa.table({"title": ["A red fox", "a Fox", None, "b|a"]})
    records = RecordItems(table, np.arange(4, dtype=np.int32), 4)
    values, words = different_values("title")(records), common_words("title")(records)
    assert len({values.name, words.name, different_values("title", name="mine")(records).name}) == 3
    for labels, expected in (([0, 0, 0, 0], 2.0), ([0, 1, 2, 0], 1.0), ([0, 1, 0, 1], 1.0)):
        assert values.statistics(Partition.from_labels(labels)).value.sum() == expected
    together, apart = (
        words.statistics(Partition.from_labels(each)).value[0] for each in ([0, 0, 1, 2], [0, 1, 2, 3])
    )
    a, b = np.array([1, 1, 1]) / 3**0.5, np.array([1, 0, 1]) / 2**0.5
    assert together - apart == pytest.approx(np.linalg.norm(a + b) - 2.0, abs=1e-3)
