"""``resolve apply --onto``: new records placed into entities that are known."""

import csv
from collections import Counter
from dataclasses import replace

import pytest

from factorwise.apps.resolution.knowledge import Knowledge
from factorwise.cli.main import main
from report_cases import sections_of

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
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0].keys())
        writer.writeheader()
        writer.writerows(rows)
    return str(path)


def entities(path, key="id", value="entity"):
    with path.open(newline="") as file:
        return {row[key]: row[value] for row in csv.DictReader(file)}


def pairs_in(path):
    with path.open(newline="") as file:
        return [(row["id"], row["other"], row["probability"]) for row in csv.DictReader(file)]


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


@pytest.fixture
def place_new(folder, tmp_path):
    """Place the new records with more options; return the entity of each record."""

    def place_new(*options, old=folder[1], new=folder[2], temperature=None):
        out, model = tmp_path / "all.csv", folder[0] / "m.fw"
        if temperature is not None:
            known, model = Knowledge.load(model), tmp_path / "m.fw"
            replace(known, temperature=temperature).save(model)
        given = ("apply", new, "--id", "id", "--model", model, "-o", out, *options)
        assert resolve(*given, "--onto", folder[0] / "found.csv", "--old", old) == 0
        return entities(out)

    return place_new


def test_pairs_of_new_and_old_records_can_be_tied_and_parted(place_new, tmp_path):
    (tmp_path / "must.csv").write_text("a,b\nc0,a9\nb40,b41\n")
    (tmp_path / "cannot.csv").write_text("a,b\nc1,a1\na50,b50\n")
    free = place_new()
    assert free["c1"] == free["a1"]
    assert free["a50"] == free["b50"]
    found = place_new("--must-link", tmp_path / "must.csv", "--cannot-link", tmp_path / "cannot.csv")
    assert found["c0"] == found["a9"]
    assert found["b40"] == found["b41"]
    assert found["c1"] != found["a1"]
    assert found["a50"] != found["b50"]


def test_canonical_records_and_pages_are_of_old_and_new_records(place_new, folder, tmp_path):
    new = [{**one, "born": "2000"} for one in people("c")[40:43]]  # not all others are weighed anew
    names = {"--canonical": "canonical.csv", "--pairs": "pairs.csv", "--report": "r.html"}
    written = [word for option, name in names.items() for word in (option, tmp_path / name)]
    doubtful = 2.0  # a temperature at which some doubt is left
    found = place_new(*written, new=write(tmp_path / "new.csv", new), temperature=doubtful)
    canonical = entities(tmp_path / "canonical.csv", "entity", "records")
    assert {name: int(count) for name, count in canonical.items()} == Counter(found.values())
    columns = ["id", "first", "last", "born", "who"]
    said = {one["id"]: [str(one[name]) for name in columns] for one in [*people("ab"), *new]}
    page = sections_of(tmp_path / "r.html")
    members = [row for entity in page["Entities"]["entities"] for row in entity["members"]]
    pairs = page["Uncertain pairs"]["pairs"]
    rows = [*members, *(pair[side] for pair in pairs for side in ("one", "two"))]
    assert len(pairs) > 0
    assert len(members) > 128
    assert page["Entities"]["columns"] == ["id", "confidence", *columns[1:]]
    assert [row for row in rows if row[0] in said] == rows
    assert [[row[0], *row[2:]] for row in members] == [said[row[0]] for row in members]
    assert all(pair[side] == said[pair[side][0]] for pair in pairs for side in ("one", "two"))
    placed = dict(page["New records"]["rows"])
    before = entities(folder[0] / "found.csv")
    assert placed == {
        "new records": 3,
        "in known entities": sum(found[one["id"]] in before.values() for one in new),
        "old records moved": sum(found[name] != entity for name, entity in before.items()),
    }
    chance = {frozenset(ends): float(value) for *ends, value in pairs_in(tmp_path / "pairs.csv")}
    for pair in pairs:
        ends = pair["one"][0], pair["two"][0]
        assert pair["probability"] == pytest.approx(chance[frozenset(ends)], abs=1e-4)
        assert pair["together"] == (found[ends[0]] == found[ends[1]])


def test_no_source_has_two_records_of_an_entity_among_new_and_old_ones(place_new, tmp_path):
    old = write(tmp_path / "old.csv", [{**one, "from": one["id"][0]} for one in people("ab")])
    new = [{**one, "from": "a" if k < 5 else "c"} for k, one in enumerate(people("c")[:20])]
    new = write(tmp_path / "new.csv", new)
    found = place_new("--source", "from", "--one-per-source", old=old, new=new)
    assert all(found[f"c{k}"] != found[f"a{k}"] for k in range(5))
    assert sum(found[f"c{k}"] == found[f"a{k}"] for k in range(5, 20)) >= 13


def test_old_records_and_their_entities_must_belong_together(folder, tmp_path, run):
    place, _, new = folder
    known = (place / "found.csv").read_text().splitlines(keepends=True)
    (tmp_path / "few.csv").write_text("".join(known[:101]))
    words = ("resolve", "apply", new, "--id", "id", "--model", place / "m.fw", "-o", tmp_path / "o.csv")
    told = run(*words, "--onto", tmp_path / "few.csv", "--old", place / "old.csv")
    assert told.code == 0
    assert "28 of 128 old records have no entity in" in told.err
    (tmp_path / "o.csv").unlink()
    old = (place / "old.csv").read_text().splitlines(keepends=True)
    (tmp_path / "old.csv").write_text("".join(old[:101]))
    refused = run(*words, "--onto", place / "found.csv", "--old", tmp_path / "old.csv")
    assert refused.code == 2
    assert "28 records that have an entity are not among the old ones, such as 'b36'" in refused.err
    assert not (tmp_path / "o.csv").exists()


def test_ids_that_old_and_new_records_have_in_common_are_named(folder, capsys):
    place, old, _ = folder
    given = ("apply", old, "--id", "id", "--model", place / "m.fw", "-o", place / "no.csv")
    assert resolve(*given, "--onto", place / "found.csv", "--old", place / "old.csv") == 2
    assert (
        "have 128 ids in common, the first of them 'a0'. Give records that are new" in capsys.readouterr().err
    )


def test_the_encoding_is_that_of_old_records_too(place_new, tmp_path):
    rows = [{**one, "first": one["first"] + "\xe9"} for one in people("ab")]
    old = write(tmp_path / "old.csv", rows)
    text = (tmp_path / "old.csv").read_text(encoding="utf-8")
    (tmp_path / "old.csv").write_text(text, encoding="latin-1")
    assert len(place_new("--encoding", "latin-1", old=old)) == 148


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--onto", "found.csv"], "go together"),
        (["--onto", "found.csv", "--old", "old.csv", "--one-per-source"], "needs --source COLUMN"),
        (["--onto", "found.csv", "--old", "old.csv", "--source", "first2"], "'first2'"),
        (["--onto", "found.csv", "--old", "old.csv", "--must-link", "found.csv"], "has no column 'other'"),
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
