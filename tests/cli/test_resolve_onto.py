"""``resolve apply --onto``: new records placed into entities that are known."""

import csv

import pytest

from factorwise.cli.main import main

FIRST = ["anna", "bertha", "carl", "dora", "emil", "frida", "georg", "helga"]
LAST = ["almeida", "brandt", "castillo", "dubois", "eriksen", "fischer", "garibaldi", "haugen"]


def people(rows):
    """Records of persons, two or three of each."""
    return [
        {
            "id": f"{kind}{k}",
            "first": FIRST[k % 8],
            "last": LAST[k // 8],
            "born": str(1900 + 7 * k % 97),
            "who": k,
        }
        for kind in rows
        for k in range(64)
    ]


def write(path, rows):
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys())
        writer.writeheader()
        writer.writerows(rows)
    return str(path)


def entities(path):
    with path.open(newline="") as file:
        return {row["id"]: row["entity"] for row in csv.DictReader(file)}


def resolve(*words):
    """Run a verb and return its exit code."""
    with pytest.raises(SystemExit) as left:
        main(["resolve", *map(str, words), "--threads", "1", "--quiet"])
    return left.value.code


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("onto")
    old, new = write(place / "old.csv", people("ab")), write(place / "new.csv", people("c")[:20])
    model = ("--model", place / "m.fw")
    assert resolve("fit", old, "--id", "id", "--entity", "who", *model) == 0
    assert resolve("apply", old, "--id", "id", *model, "-o", place / "found.csv") == 0
    return place, old, new


def test_new_records_join_known_entities_whose_names_stay(folder):
    place, old, new = folder
    out = place / "all.csv"
    given = ("apply", new, "--id", "id", "--model", place / "m.fw", "-o", out)
    assert resolve(*given, "--onto", place / "found.csv", "--old", old) == 0
    before, after = entities(place / "found.csv"), entities(out)
    assert len(after) == 128 + 20
    assert {name: after[name] for name in before} == before
    assert sum(after[f"c{k}"] == before[f"a{k}"] for k in range(20)) >= 18


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--onto", "found.csv"], "go together"),
        (["--onto", "found.csv", "--old", "old.csv", "--checkpoint", "x"], "--checkpoint cannot be given"),
        (["--onto", "new.csv", "--old", "old.csv"], "entity"),
    ],
)
def test_what_does_not_go_together_is_refused(folder, monkeypatch, capsys, options, said):
    place, _, new = folder
    monkeypatch.chdir(place)
    assert resolve("apply", new, "--id", "id", "--model", "m.fw", "-o", "no.csv", *options) != 0
    assert said in capsys.readouterr().err
    assert not (place / "no.csv").exists()
