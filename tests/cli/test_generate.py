"""``factorwise generate``."""

import json
import sys

import pyarrow.parquet as pq
import pytest

from factorwise.datasets import inventory
from factorwise.datasets.authors import AuthorMentions, OffTargetError
from factorwise.io.tables import reading as tables
from generation_cases import invented_names


@pytest.fixture(scope="module")
def lists():
    return invented_names(families=1_500, given=1_000)


@pytest.fixture
def generate(run, lists, monkeypatch):
    """Run ``factorwise generate authors WORDS...`` with invented names."""
    monkeypatch.setattr(inventory, "load_inventory", lambda: lists)

    def generate(*words):
        return run("generate", "authors", *words)

    return generate


def test_mentions_are_written_with_their_truth(generate, tmp_path):
    path = tmp_path / "authors.parquet"
    result = generate("-n", "2e3", "-o", path, "--quiet")
    assert (result.code, result.err) == (0, "")
    table = pq.read_table(path)
    assert table.num_rows == 2_000
    assert {"id", "entity", "name", "coauthors", "venue", "year", "title"} <= set(table.column_names)
    assert [file.name for file in tmp_path.iterdir()] == ["authors.parquet"]


def test_statistics_are_printed_beside_their_targets(generate, tmp_path):
    result = generate("-n", 2_000, "-o", tmp_path / "a.parquet")
    assert "2000 mentions of " in result.out
    line = next(line for line in result.out.splitlines() if "authors per paper" in line)
    assert line.split()[-3:] == ["2.7", "to", "3.3"]
    assert "too few mentions to bind" in result.err


def test_json_has_every_statistic_and_its_range(generate, tmp_path):
    result = generate("-n", 2_000, "-o", tmp_path / "a.parquet", "--json", "--quiet")
    document = json.loads(result.out)
    assert document["mentions"] == 2_000
    assert document["bytes"] == (tmp_path / "a.parquet").stat().st_size
    assert len(document["statistics"]) >= 15
    for one in document["statistics"]:
        assert one["low"] < one["high"]
        assert one["met"] == (one["value"] is not None and one["low"] <= one["value"] <= one["high"])
        assert one["binding"] is False


def test_one_mention_is_enough(generate, tmp_path):
    result = generate("-n", 1, "-o", tmp_path / "a.parquet")
    assert result.code == 0
    assert "none" in result.out


def test_the_same_seed_writes_the_same_bytes_whatever_the_threads(generate, tmp_path):
    contents = []
    for name, words in (("a", []), ("b", ["--threads", 1]), ("c", ["--seed", 1])):
        path = tmp_path / f"{name}.parquet"
        assert generate("-n", 2_000, "-o", path, *words).code == 0
        contents.append(path.read_bytes())
    assert contents[0] == contents[1]
    assert contents[0] != contents[2]


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        (["-n", "0"], "mentions must be from 1 to 50,000,000, but 0 was given"),
        (["-n", "1e12"], "mentions must be from 1 to"),
        (["-n", "2.5"], "'2.5' is not a whole number, such as 5000000 or 5e6"),
        (["-n", "many"], "'many' is not a whole number"),
        (["-n", "nan"], "'nan' is not a whole number"),
        ([], "Missing option '-n'"),
        (["-n", "10", "--largest-scale", "0"], "'--largest-scale': 0.0 is not in the range"),
        (["-n", "10", "--largest-scale", "nan"], "'--largest-scale': nan is outside the usable range"),
    ],
)
def test_bad_settings_are_refused_with_what_to_give(generate, tmp_path, words, fault):
    result = generate(*words, "-o", tmp_path / "a.parquet")
    assert (result.code, result.out) == (2, "")
    assert fault in result.err
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there_is_told_before_the_work(generate, tmp_path):
    result = generate("-n", 10, "-o", tmp_path / "none" / "a.parquet")
    assert result.code == 2
    assert "does not exist. Create it first." in result.err


def test_another_format_is_refused(generate, tmp_path):
    result = generate("-n", 10, "-o", tmp_path / "a.csv")
    assert result.code == 2
    assert "must end in .parquet" in result.err


def test_without_the_names_the_extra_is_named(run, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "names_dataset", None)
    result = run("generate", "authors", "-n", 10, "-o", tmp_path / "a.parquet")
    assert result.code == 2
    assert "pip install 'factorwise[generate]'" in result.err
    assert list(tmp_path.iterdir()) == []


def test_data_off_their_targets_leave_no_file(generate, monkeypatch, tmp_path):
    def refuse(self):
        raise OffTargetError(
            "the statistics of the mentions are out of range: venues is 0.9, but must be between 0.1 and 0.3."
        )

    monkeypatch.setattr(AuthorMentions, "check", refuse)
    (tmp_path / "a.parquet").write_bytes(b"old")
    result = generate("-n", 100, "-o", tmp_path / "a.parquet")
    assert (result.code, result.out) == (2, "")
    assert "out of range: venues is 0.9, but must be between 0.1 and 0.3." in result.err
    assert (tmp_path / "a.parquet").read_bytes() == b"old"
    assert len(list(tmp_path.iterdir())) == 1


def test_a_disk_that_is_full_leaves_no_partial_file(generate, monkeypatch, tmp_path):
    def fill(table, sink):
        sink.write(b"PAR1")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tables.pq, "write_table", fill)
    result = generate("-n", 100, "-o", tmp_path / "a.parquet")
    assert result.code == 2
    assert "No space left on device. A file that was there is unchanged" in result.err
    assert list(tmp_path.iterdir()) == []
