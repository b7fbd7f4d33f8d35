"""Tables of scored pairs: columns and kinds of scores that are recognised, and what is refused."""

import math

import numpy as np
import pyarrow as pa
import pytest

from factorwise.apps.resolution.scored_pairs.tables import read_scored_pairs, recognise_columns
from factorwise.errors import DataFileError, InvalidArgumentError

SPLINK = {
    "match_weight": [3.0, -1.0],
    "match_probability": [8 / 9, 1 / 3],
    "unique_id_l": [1, 2],
    "unique_id_r": [2, 3],
    "gamma_name": [2, 0],
}


def test_a_table_of_splink_is_recognised_and_its_weights_are_bits():
    scored = read_scored_pairs(SPLINK)
    assert scored.columns == ("unique_id_l", "unique_id_r", "match_weight")
    assert scored.kind == "bits"
    assert scored.ids.to_pylist() == [1, 2, 3]
    np.testing.assert_allclose(scored.log_odds, [3 * math.log(2), -math.log(2)], rtol=1e-6)
    without = {name: values for name, values in SPLINK.items() if name != "match_weight"}
    assert read_scored_pairs(without).kind == "probability"
    np.testing.assert_allclose(read_scored_pairs(without).log_odds, scored.log_odds, rtol=1e-5)


def test_ids_that_two_sources_share_are_told_apart():
    table = {**SPLINK, "unique_id_r": [1, 2], "source_dataset_l": ["a", "a"], "source_dataset_r": ["b", "b"]}
    scored = read_scored_pairs(table)
    assert scored.ids.to_pylist() == ["a-__-1", "a-__-2", "b-__-1", "b-__-2"]
    assert scored.sources.tolist() == [0, 0, 1, 1]
    records = {"id": [1, 2, 3, 1, 2], "from": ["a", "a", "a", "b", "b"]}
    both = read_scored_pairs(table, records=records, id="id", source="from")
    assert both.ids.to_pylist() == ["a-__-1", "a-__-2", "a-__-3", "b-__-1", "b-__-2"]
    assert both.sources.tolist() == [0, 0, 0, 1, 1]
    with pytest.raises(InvalidArgumentError, match="says where each is from"):
        read_scored_pairs(table, records=records, id="id")


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["x", "y", "z"], ("x", "y", "z")),
        (["score", "id", "other", "note"], ("id", "other", "score")),
        (
            ["match_probability", "rec_l", "rec_r", "name_l", "name_r"],
            ("rec_l", "rec_r", "match_probability"),
        ),
    ],
)
def test_usual_columns_are_recognised(names, expected):
    assert recognise_columns(names) == expected


def test_columns_that_cannot_be_told_are_asked_for():
    names = ["from", "to", "how", "why"]
    with pytest.raises(InvalidArgumentError, match="the two columns with the ids of pairs cannot be told"):
        recognise_columns(names)
    with pytest.raises(InvalidArgumentError, match="Name the column with the scores"):
        recognise_columns(names, "from", "to")
    assert recognise_columns(names, "from", "to", "how") == ("from", "to", "how")
    with pytest.raises(DataFileError, match="no column 'frm'"):
        recognise_columns(names, "frm", "to", "how")


@pytest.mark.parametrize(
    ("name", "values", "kind"),
    [
        ("score", [0.2, 1.0], "probability"),
        ("score", [-3.0, 9.0], "bits"),
        ("log_odds", [0.5, 0.7], "log-odds"),
        ("probability", [0.5, 0.7], "probability"),
        ("percent", [50, 70], "percent"),
    ],
)
def test_the_kind_of_a_score_is_told_by_its_name_or_its_values(name, values, kind):
    assert read_scored_pairs({"id": [1, 2], "other": [2, 3], name: values}).kind == kind


@pytest.mark.parametrize("name", ["distance", "jw_dist", "Dissimilarity"])
def test_distances_are_not_taken_for_scores(name):
    table = pa.table({"left": ["a", "b"], "right": ["b", "c"], name: [0.1, 0.9]})
    with pytest.raises(InvalidArgumentError, match=r"seems to hold distances.*one minus the distance"):
        read_scored_pairs(table)
    assert read_scored_pairs(table, kind="probability").kind == "probability"


def test_scores_that_may_be_percentages_or_match_weights_are_asked_for():
    table = {"id": [1, 2], "other": [2, 3], "score": [20.0, 95.0]}
    with pytest.raises(InvalidArgumentError, match="say which kind of score it is"):
        read_scored_pairs(table)
    percent = read_scored_pairs(table, kind="percent")
    same = read_scored_pairs({**table, "score": [0.2, 0.95]})
    np.testing.assert_allclose(percent.log_odds, same.log_odds, rtol=1e-6)


@pytest.mark.parametrize(
    ("table", "score"),
    [
        ({"how": [0.9, 0.2], "a": [1, 2], "b": [2, 3]}, "how"),
        ({"how": [1, 0], "a": ["x", "y"], "b": ["y", "z"]}, "how"),
        ({"a": [1, 2], "b": [2, 3], "how": [1, 0]}, "how"),
    ],
)
def test_the_score_is_the_column_of_numbers_wherever_it_stands(table, score):
    assert read_scored_pairs(table).columns == ("a", "b", score)


def test_probabilities_of_zero_and_one_are_finite_log_odds():
    scored = read_scored_pairs({"id": [1, 2], "other": [2, 3], "probability": [0.0, 1.0]})
    assert np.isfinite(scored.log_odds).all()
    assert scored.log_odds[0] == -scored.log_odds[1]


def test_every_pair_stands_once_with_its_highest_score():
    table = {"id": [1, 2, 3, 3], "other": [2, 1, 3, 1], "log_odds": [1.0, 2.0, 5.0, 0.5]}
    scored = read_scored_pairs(table)
    assert scored.first.tolist() == [0, 0]
    assert scored.second.tolist() == [1, 2]
    assert scored.log_odds.tolist() == [2.0, 0.5]
    assert (scored.n_repeated, scored.n_selves) == (1, 1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"probability": [0.5, 1.5]}, "no probability"),
        ({"probability": [0.5, None]}, "no number in 1 pairs"),
        ({"probability": ["a", "b"]}, "not all of them numbers"),
        ({"id": [1, None]}, "has no id in pair 2"),
    ],
)
def test_scores_and_ids_that_are_none_are_refused(change, message):
    table = pa.table({"id": [1, 2], "other": [2, 3], "probability": [0.5, 0.6]} | change)
    with pytest.raises(DataFileError, match=message):
        read_scored_pairs(table)


def test_records_without_a_pair_are_known_and_pairs_of_unknown_records_refused():
    table = {"id": ["b"], "other": ["c"], "probability": [0.9]}
    scored = read_scored_pairs(table, records={"key": ["a", "b", "c"]}, id="key")
    assert (scored.n_records, scored.first.tolist(), scored.second.tolist()) == (3, [1], [2])
    with pytest.raises(DataFileError, match="'c' in pair 1"):
        read_scored_pairs(table, records={"key": ["a", "b"]}, id="key")


def test_columns_of_sources_may_have_other_names():
    """A model of splink may name them otherwise."""
    rows = [{"id_l": 1, "id_r": 1, "shop_l": "x", "shop_r": "y", "match_weight": 2.0}]
    assert read_scored_pairs(rows).n_selves == 1
    found = read_scored_pairs(rows, pair_sources=("shop_l", "shop_r"))
    assert found.ids.to_pylist() == ["x-__-1", "y-__-1"]
    assert found.sources.tolist() == [0, 1]
