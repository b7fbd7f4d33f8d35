"""``factorwise resolve score``."""

import json

import numpy as np
import pytest

from factorwise.cli.resolve import score as resolve_score
from factorwise.metrics.clustering import Contingency
from factorwise.metrics.coreference import score_clusterings
from record_cases import write_csv

TRUTH = {"1": "a", "2": "a", "3": "b", "4": "c", "5": "c", "6": "c", "7": "d"}
FOUND = {"1": "1", "2": "1", "3": "3", "4": "3", "5": "5", "6": "5", "7": "7"}


@pytest.fixture
def files(tmp_path):
    """What was found, and the truth in another order."""
    found = [{"id": one, "entity": entity, "confidence": 0.9} for one, entity in FOUND.items()]
    truth = [{"number": one, "who": entity} for one, entity in reversed(TRUTH.items())]
    return write_csv(tmp_path / "out.csv", found), write_csv(tmp_path / "truth.csv", truth)


@pytest.fixture
def score(run):
    def score(out, truth, *words, told=""):
        words = ("--truth", truth, "--id", "number", "--entity", "who", "--json", *words)
        result = run("resolve", "score", out, *words)
        assert result.code == 0, result.err
        assert told in result.err if told else result.err == ""
        return json.loads(result.out)

    return score


@pytest.fixture
def refused(run):
    def refused(out, truth, *words):
        result = run("resolve", "score", out, "--truth", truth, "--id", "number", "--entity", "who", *words)
        assert (result.code, result.out) == (2, "")
        return result.err

    return refused


def test_the_figures_are_those_of_the_library(score, files):
    document = score(*files)
    expected = score_clusterings(TRUTH.values(), FOUND.values()).as_dict()
    for name in ("pairwise", "b_cubed", "ceaf_e", "ceaf_m"):
        assert document["scores"][name] == pytest.approx(expected[name])
    sizes = ("records", "true_entities", "found_entities", "without_truth", "not_found")
    assert [document[name] for name in sizes] == [7, 4, 4, 0, 0]


def test_clusters_count_as_found_if_they_are_exactly_equal(score, files):
    # {1, 2} and {7} are right; {3, 4} and {5, 6} are not
    assert score(*files)["scores"]["cluster"] == {"precision": 0.5, "recall": 0.5, "f1": 0.5}


def test_records_that_one_file_lacks_are_told_and_left_out(score, tmp_path):
    out = write_csv(tmp_path / "o.csv", [{"id": one, "entity": FOUND[one]} for one in "1234567"])
    truth = [{"number": one, "who": TRUTH[one] if one != "7" else ""} for one in "234567"]
    truth.append({"number": "99", "who": "z"})
    document = score(
        out,
        write_csv(tmp_path / "t.csv", truth),
        told="2 records of",
    )
    assert (document["records"], document["without_truth"], document["not_found"]) == (5, 2, 1)
    expected = score_clusterings([TRUTH[one] for one in "23456"], [FOUND[one] for one in "23456"])
    assert document["scores"]["b_cubed"] == pytest.approx(expected.b_cubed._asdict())


def test_ids_are_joined_as_text(score, files, tmp_path):
    import pyarrow as pa

    from factorwise.io.tables.reading import write_table

    columns = {"number": pa.array([int(one) for one in TRUTH]), "who": pa.array(list(range(7)))}
    write_table(tmp_path / "t.parquet", pa.table(columns))
    assert score(files[0], tmp_path / "t.parquet")["records"] == 7


def test_text_shows_every_metric(run, files):
    out, truth = files
    result = run("resolve", "score", out, "--truth", truth, "--id", "number", "--entity", "who")
    lines = result.out.splitlines()
    assert "7 records, 4 true entities, 4 found" in lines[0]
    assert [line.split()[0] for line in lines[2:]] == ["pairwise", "B-cubed", "CEAF-e", "CEAF-m", "cluster"]
    assert lines[-1].split() == ["cluster", "0.5000", "0.5000", "0.5000"]


def test_ceaf_is_left_out_where_too_many_clusters_overlap(score, files, monkeypatch):
    monkeypatch.setattr(resolve_score, "LARGEST_TANGLE", 3)
    document = score(*files, told="CEAF is left out")
    assert (document["scores"]["ceaf_e"], document["scores"]["ceaf_m"]) == (None, None)
    assert document["scores"]["b_cubed"]["f1"] > 0


def test_left_out_metrics_are_dashes(run, files, monkeypatch):
    monkeypatch.setattr(resolve_score, "LARGEST_TANGLE", 3)
    out, truth = files
    lines = run("resolve", "score", out, "--truth", truth, "--id", "number", "--entity", "who").out
    assert ["CEAF-e", "-", "-", "-"] in [line.split() for line in lines.splitlines()]


def test_large_files_are_scored_by_the_same_code():
    draws = np.random.default_rng(3)
    truth = draws.integers(0, 60_000, 200_000)
    found = np.where(draws.random(200_000) < 0.95, truth, draws.integers(0, 60_000, 200_000) + 60_000)
    scores = resolve_score.scored(Contingency.of(truth, found))
    assert all(0.0 < one["f1"] < 1.0 for one in scores.values() if one)


def test_files_without_a_record_in_common_are_refused(refused, files, tmp_path):
    other = write_csv(tmp_path / "t.csv", [{"number": "x1", "who": "a"}])
    err = refused(files[0], other)
    assert "have no record in common whose true entity is known" in err
    assert "'1' and 'x1'" in err


def test_repeated_ids_are_refused_with_file_and_column(refused, files, tmp_path):
    twice = write_csv(tmp_path / "t.csv", [{"number": "1", "who": "a"}, {"number": "1", "who": "b"}])
    err = refused(files[0], twice)
    assert f"{twice}: column 'number' has 1 ids that occur more than once: '1' (records 1 and 2)" in err


def test_a_missing_column_is_refused_with_the_nearest(refused, files, tmp_path):
    out = write_csv(tmp_path / "o.csv", [{"id": "1", "entty": "a"}])
    assert "has no column 'entity'. Did you mean 'entty'?" in refused(out, files[1])
    assert "Did you mean 'number'?" in refused(files[0], files[1], "--id", "numbr")


def test_a_record_without_an_entity_is_refused(refused, files, tmp_path):
    out = write_csv(tmp_path / "o.csv", [{"id": "1", "entity": "1"}, {"id": "2", "entity": ""}])
    err = refused(out, files[1])
    assert "record 2: has no entity. Give the file that `resolve apply` wrote." in err


def test_a_missing_file_is_refused(refused, files, tmp_path):
    assert "there is no file" in refused(tmp_path / "nothing.csv", files[1])


def test_the_truth_may_lie_in_several_files(run, tmp_path):
    out, one, two = tmp_path / "out.csv", tmp_path / "one.csv", tmp_path / "two.csv"
    out.write_text("id,entity,confidence\n1,1,1\n2,1,1\n3,3,1\n")
    one.write_text("number,who\n1,a\n")
    two.write_text("number,who\n2,a\n3,b\n")
    words = ("--truth", one, "--truth", two, "--id", "number", "--entity", "who", "--json")
    found = json.loads(run("resolve", "score", out, *words).out)
    assert (found["records"], found["without_truth"], found["not_found"]) == (3, 0, 0)
    assert found["scores"]["b_cubed"]["f1"] == 1.0
