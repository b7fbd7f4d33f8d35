"""``factorwise cluster``: scored pairs in, entities out."""

import json

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

from scored_pair_cases import scored_table

TABLE, TRUTH = scored_table([4, 3, 5, 2, 4] * 4, noise=2.0, seed=1)


@pytest.fixture
def pairs(tmp_path):
    path = tmp_path / "pairs.parquet"
    pq.write_table(pa.Table.from_pylist(TABLE), path)
    return path


def test_entities_uncertain_pairs_and_a_report_are_written(run, pairs, tmp_path):
    records = tmp_path / "records.csv"
    pacsv.write_csv(pa.table({"key": [f"r{row}" for row in range(len(TRUTH) + 2)]}), records)
    out, uncertain, page = (tmp_path / name for name in ("out.csv", "uncertain.csv", "page.html"))
    result = run("cluster", pairs, "--records", records, "--id", "key", "-o", out, "--pairs", uncertain,
                 "--report", page, "--json", "--threads", 1)  # fmt: skip
    assert result.code == 0, result.err
    document = json.loads(result.out)
    found = pacsv.read_csv(out)
    assert found.column_names == ["id", "entity", "confidence"]
    assert found.num_rows == len(TRUTH) + 2 == document["records"]
    assert document["score_kind"] == "log-odds"
    assert "log_odds of id and other is read as natural logarithms of odds" in result.err
    assert pacsv.read_csv(uncertain).column_names == ["id", "other", "probability"]
    assert "score of the pair" in page.read_text(encoding="utf-8")


def test_constants_are_printed_and_can_be_given(run, pairs, tmp_path):
    out = tmp_path / "out.csv"
    result = run("cluster", pairs, "-o", out, "--offset", -50, "--unlinked", -1, "--quiet")
    assert result.code == 0, result.err
    assert "offset -50.00, unlinked pair weight -1.00" in result.out
    found = pacsv.read_csv(out)
    assert found.column("id").to_pylist() == found.column("entity").to_pylist()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--records", "records.csv"], "--records and --id belong together"),
        (["--source", "shop"], "--source is a column of the records"),
        (["--one-per-source"], "--one-per-source needs the sources of the records"),
        (["--score", "log_ods"], "no column 'log_ods'. Did you mean 'log_odds'?"),
        (["--score-kind", "probability"], "which is no probability"),
        (["--labels", "pairs.parquet"], "labels need the columns"),
    ],
)
def test_mistakes_are_explained(run, pairs, tmp_path, monkeypatch, words, message):
    monkeypatch.chdir(tmp_path)
    result = run("cluster", pairs, "-o", tmp_path / "out.csv", *words)
    assert result.code == 2
    assert message in result.err
