"""``--scores``, pairs that another tool has scored, and a column of sources that is learned from."""

import csv
import json

import numpy as np
import pytest

from factorwise.cli.main import main


def write(path, rows):
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0].keys())
        writer.writeheader()
        writer.writerows(rows)
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Records whose titles say half, and scores that say the rest."""
    place, draws = tmp_path_factory.mktemp("scores"), np.random.default_rng(1)
    words = ["".join(draws.choice(list("abcdefgh"), 5)) for _ in range(400)]
    entity = np.repeat(np.arange(120), 2)
    names = [" ".join(draws.choice(words, 2, replace=False)) for _ in range(120)]
    records = [
        {
            "id": f"r{row}",
            "title": names[number] if draws.random() < 0.6 else "",
            "year": 1990 + number % 20,
            "shop": "xy"[row % 2],
            "entity": number,
        }
        for row, number in enumerate(entity.tolist())
    ]
    pairs = [
        {"one": f"r{a}", "two": f"r{b}", "rating": f"{draws.normal(3 if entity[a] == entity[b] else -3):.3f}"}
        for a in range(240)
        for b in range(a + 1, min(a + 4, 240))
    ]
    write(place / "in.csv", records[:200])
    write(place / "new.csv", records[200:])
    write(place / "scores.csv", pairs)
    return place


@pytest.fixture(scope="module")
def scores(folder):
    return ("--scores", folder / "scores.csv", "--score-column", "rating", "--score-kind", "log-odds")


@pytest.fixture(scope="module")
def model(folder, scores):
    given = ("--id", "id", "--entity", "entity", "--model", folder / "m.fw", "--quiet")
    with pytest.raises(SystemExit) as left:
        main([str(word) for word in ("resolve", "fit", folder / "in.csv", *given, *scores)])
    assert left.value.code == 0
    return folder / "m.fw"


def test_scores_are_applied_and_explained(folder, scores, model, run):
    given = (folder / "in.csv", "--id", "id", "--ignore", "entity", "--model", model)
    applied = run(
        "resolve", "apply", *given, *scores, "-o", folder / "out.csv", "--canonical", folder / "c.csv"
    )
    assert applied.code == 0, applied.err
    header = (folder / "c.csv").read_text(encoding="utf-8").splitlines()[0]
    assert "pair scores" not in header
    with (folder / "out.csv").open(newline="") as file:
        entities = [row["entity"] for row in csv.DictReader(file)]
    assert np.mean([a == b for a, b in zip(entities[::2], entities[1::2], strict=True)]) > 0.9
    explained = run("resolve", "explain", *given[:3], "r0", "r1", *given[3:], *scores, "--json")
    compared = json.loads(explained.out)["comparisons"]
    assert any(one["field"] == "pair scores" and one["value"] is not None for one in compared)


def test_new_records_have_scores_with_old_ones(folder, scores, model, run):
    before = ("resolve", "apply", folder / "in.csv", "--id", "id", "--ignore", "entity", "--model", model)
    assert run(*before, *scores, "-o", folder / "old.csv").code == 0
    given = ("--id", "id", "--ignore", "entity", "--model", model, "-o", folder / "all.csv")
    onto = ("--onto", folder / "old.csv", "--old", folder / "in.csv")
    placed = run("resolve", "apply", folder / "new.csv", *given, *onto, *scores)
    assert placed.code == 0, placed.err


def test_a_column_of_sources_may_be_learned_from(folder, run):
    (folder / "fields.toml").write_text('[fields.shop]\nkind = "source"\n', encoding="utf-8")
    given = ("--id", "id", "--entity", "entity", "--source", "shop", "--fields", folder / "fields.toml")
    result = run("resolve", "fit", folder / "in.csv", *given, "--model", folder / "s.fw")
    assert result.code == 0, result.err
    assert "shop" in result.out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--score-column", "rating"), "give it, too"),
        (("--scores", "none.csv"), "none.csv"),
        (("--scores", "scores.csv", "--score-column", "none"), "none"),
        (("--scores", "in.csv", "--score-column", "title"), "cannot be told"),
    ],
)
def test_mistakes_are_reported_in_one_line(folder, run, words, said):
    words = [folder / word if word.endswith(".csv") else word for word in words]
    given = ("--id", "id", "--entity", "entity", "--model", folder / "bad.fw")
    result = run("resolve", "fit", folder / "in.csv", *given, *words)
    assert result.code == 2
    assert said in result.err
    assert len(result.err.strip().splitlines()) <= 4


def test_a_model_that_knows_scores_asks_for_them(folder, model, run):
    given = ("--id", "id", "--ignore", "entity", "--model", model, "-o", folder / "no.csv")
    result = run("resolve", "apply", folder / "in.csv", *given)
    assert result.code == 2
    assert "'pair scores'" in result.err
    assert "--scores" in result.err
