"""Evidence beside the columns: pairs that another tool has scored, and sources that an entity has again."""

import numpy as np
import pyarrow as pa
import pytest

from factorwise.apps.resolution import EntityResolver, pair_scores, repeated_sources
from factorwise.apps.resolution.record_items import RecordItems
from factorwise.errors import DataFileError
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


def test_scores_of_pairs_are_learned_as_one_more_witness():
    table, witness = pa.Table.from_pylist(PEOPLE), pair_scores(scored_people(), "id")
    plain = EntityResolver(**FAST).fit(table, "person", id="id")
    helped = EntityResolver(templates=[witness], **FAST).fit(table, "person", id="id")
    assert helped.knowledge_.further["pair scores"][0] > 0.0
    found, without = (b_cubed(PERSONS, one.predict(table).tolist()).f1 for one in (helped, plain))
    assert found > without
    assert {name for name, _ in helped.explain(table, id="id").pair(0, 1).further} >= {
        "pair scores: log odds"
    }


def test_features_are_summed_over_records_that_are_one_item_and_unknown_ids_passed_over():
    pairs = [("a", "b", 1.0), ("a", "c", 2.0), ("b", "c", 4.0), ("a", "z", 9.0)]
    rows = [{"id": one, "other": two, "log_odds": score} for one, two, score in pairs]
    records = RecordItems(pa.table({"key": ["a", "b", "c"]}), np.array([0, 0, 1], np.int32), 2)
    template = pair_scores(rows, "key")(records)
    assert template.edges.tolist() == [[0, 1]]
    assert template.features.tolist() == [[6.0, 2.0]]
    with pytest.raises(DataFileError, match="no column 'id'"):
        pair_scores(rows, "id")(records)


def test_sources_that_an_entity_has_again_are_counted():
    sources = pa.table({"shop": ["x", "x", "y", "x"]})
    records = RecordItems(sources, np.arange(4, dtype=np.int32), 4)
    template = repeated_sources("shop")(records)
    for labels, expected in (([0, 0, 0, 0], 2.0), ([0, 1, 0, 1], 1.0), ([0, 1, 2, 3], 0.0)):
        assert template.statistics(Partition.from_labels(labels)).value.sum() == expected
