"""Reports of blocking."""

import json

import numpy as np
import pytest

from apps.resolution.blocking.tables import lists, strings, table
from factorwise.apps.resolution.blocking import (
    Part,
    Rule,
    find_candidates,
    recall_of,
    report_dict,
    report_notes,
    report_rows,
)
from factorwise.errors import InvalidArgumentError

NORMAL = table(
    6,
    letter=("category", {"text": strings(["a", "a", "a", "b", "b", None])}),
    words=("text", {"tokens": lists([["x"], ["y"], ["y"], ["y"], ["z"], ["z"]])}),
)
RULES = [Rule((Part("letter", "text"),)), Rule((Part("words", "tokens", "items"),))]
ENTITY = np.array([0, 0, 0, 0, 1, 1])


def test_recall_counts_true_pairs_and_the_links_that_entities_need():
    found = find_candidates(NORMAL, RULES[:1])
    recall = recall_of(found, ENTITY, NORMAL)
    assert recall.pairs == pytest.approx(3 / 7)
    assert recall.connected == pytest.approx(2 / 4)
    assert recall.rules == pytest.approx((3 / 7,))
    both = recall_of(find_candidates(NORMAL, RULES), ENTITY, NORMAL)
    assert both.pairs == pytest.approx(6 / 7)
    assert both.connected == 1.0
    assert both.rules == pytest.approx((3 / 7, 4 / 7))


def test_records_of_unknown_entities_count_neither_way():
    found = find_candidates(NORMAL, RULES[:1])
    recall = recall_of(found, np.array([0, 0, -1, -1, -1, -1]))
    assert (recall.pairs, recall.connected) == (1.0, 1.0)
    nothing = recall_of(found, np.full(6, -1), NORMAL)
    assert (nothing.pairs, nothing.connected, nothing.rules) == (1.0, 1.0, ())


def test_the_table_has_a_row_for_each_rule_under_headings():
    found = find_candidates(NORMAL, RULES)
    assert report_rows(found) == [
        ["blocks", "largest", "pairs", "new pairs", "rule"],
        ["2", "3", "4", "4", "letter"],
        ["2", "3", "4", "3", "word of words"],
    ]
    rows = report_rows(found, recall_of(found, ENTITY, NORMAL))
    assert [row[-2] for row in rows] == ["recall", "0.429", "0.571"]


def test_blocks_too_large_to_be_joined_whole_are_named_by_what_they_share():
    found = find_candidates(NORMAL, RULES, largest_block=2, per_item=2)
    assert [row[1] for row in report_rows(found)] == ["largest", "3*", "3*"]
    notes = report_notes(found, NORMAL)
    assert "1 blocks of letter have more than 2 records" in notes[1]
    assert "3 records (a)" in notes[1]
    assert "3 records (y)" in notes[2]
    assert report_dict(found, NORMAL)["rules"][0]["large_blocks"] == [{"size": 3, "key": "a"}]


def test_pairs_that_the_budget_left_out_are_told():
    normal = table(30, letter=("category", {"text": strings(["a"] * 30)}))
    found = find_candidates(normal, RULES[:1], budget=7)
    assert found.cut > 0
    assert f"{found.cut:,} pairs that share least were left out" in report_notes(found)[-1]


def test_the_report_can_be_written_as_json():
    found = find_candidates(NORMAL, RULES)
    content = json.loads(json.dumps(report_dict(found, NORMAL, recall_of(found, ENTITY, NORMAL))))
    assert content["pairs"] == 7
    assert content["recall"]["connected"] == 1.0
    assert [rule["new"] for rule in content["rules"]] == [4, 3]


def test_a_truth_of_another_length_is_refused():
    with pytest.raises(InvalidArgumentError, match="entity must be 6 numbers"):
        recall_of(find_candidates(NORMAL, RULES), np.zeros(5, int))
