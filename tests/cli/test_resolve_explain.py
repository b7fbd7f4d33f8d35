"""``factorwise resolve explain``."""

import json

import pytest

from factorwise.cli import main
from record_cases import people, read_csv, without, write_csv

FEW = people(24)
STRANGER = {"id": "zz", "first_name": "Xu", "surname": "Ypsilanti", "born": "1899-12-31", "town": "Kyiv",
            "email": "q@w.ua"}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("explain")
    write_csv(place / "labelled.csv", FEW)
    data = write_csv(place / "in.csv", [*without(FEW, "person"), STRANGER])
    for words in (
        ("fit", place / "labelled.csv", "--entity", "person", "--model", place / "m.fw"),
        ("apply", data, "--model", place / "m.fw", "-o", place / "out.csv"),
    ):
        with pytest.raises(SystemExit) as left:
            main.main([str(word) for word in ("resolve", *words, "--id", "id", "--quiet")])
        assert left.value.code == 0
    return place


@pytest.fixture
def explain(run, folder):
    def explain(*words, model=folder / "m.fw"):
        known = () if model is None else ("--model", model)
        result = run("resolve", "explain", folder / "in.csv", *words[:2], "--id", "id", *known, *words[2:])
        assert result.code == 0, result.err
        return result.out

    return explain


@pytest.fixture
def refused(run, folder):
    def refused(*words):
        result = run("resolve", "explain", *words, "--id", "id", "--model", folder / "m.fw")
        assert (result.code, result.out) == (2, "")
        return result.err

    return refused


def test_the_parts_add_up_to_the_odds(explain):
    document = json.loads(explain("100", "101", "--json"))
    assert document["candidates"]
    assert document["rules"]
    assert document["values"]["surname"] == ["Lee", "Lee"]
    parts = [*document["comparisons"], *document["context"]]
    total = sum(one["weight"] for one in parts) + document["link"] - document["cluster"]
    assert document["gain"] == pytest.approx(total)
    assert document["log_odds"] == pytest.approx(document["gain"] / document["temperature"])
    assert 0.5 < document["probability"] <= 1.0


def test_text_shows_values_rules_comparisons_and_the_sum(explain):
    document = json.loads(explain("100", "101", "--json"))
    lines = explain("100", "101").splitlines()
    assert lines[0] == "100 and 101"
    assert ["surname", "Lee", "Lee"] in [line.split() for line in lines]
    assert "candidates: they share" in lines
    assert f"  {document['rules'][0]}" in lines
    largest = max(document["comparisons"], key=lambda one: abs(one["weight"]))
    first = lines[lines.index("comparisons") + 1]
    assert first.startswith(f"  {largest['weight']:+.3f}")
    assert f"(level {largest['level']}: {largest['meaning']})" in first
    assert lines[-2].strip().startswith(f"{document['log_odds']:+.3f}")
    assert lines[-2].endswith(f"probability {document['probability']:.4f}")
    assert lines[-1].strip() == f"probabilities are {document['calibration']}"
    assert "nothing to compare: " in "\n".join(lines)  # the second record has no town


def test_records_that_no_rule_brings_together_are_no_candidates(explain):
    found = json.loads(explain("100", "zz", "--json"))
    assert not found["candidates"]
    assert found["rules"] == []
    assert found["gain"] == pytest.approx(found["apart"] - found["cluster"])
    lines = explain("100", "zz").splitlines()
    assert "no candidates: no blocking rule brings them together" in lines
    assert "comparisons, which are not weighed" in lines
    assert any("two members that are not linked" in line for line in lines)


def test_the_whole_entity_counts_with_the_entities_found(explain, folder):
    words = ("100", "101", "--entities", folder / "out.csv")
    place = json.loads(explain(*words, "--json"))["entities"]
    assert place["together"]
    assert place["here"] is None
    entity = {row["id"]: row["entity"] for row in read_csv(folder / "out.csv")}
    mates = sum(name == entity["100"] for name in entity.values()) - 1
    there = place["there"]
    assert there["entity"] == entity["100"]
    assert len(there["linked"]) + there["unlinked"] == mates
    total = (
        sum(one["score"] for one in there["linked"]) + there["unlinked"] * there["apart"] - there["cluster"]
    )
    assert there["gain"] == pytest.approx(total)
    pair = json.loads(explain(*words, "--json"))
    one = next(one for one in there["linked"] if one["id"] == "101")
    assert one["score"] == pytest.approx(pair["score"], abs=1e-5)
    text = explain(*words)
    assert f"100 in their entity {entity['100']}" in text
    assert "link with 101" in text


def test_another_entity_is_shown_beside_the_own_one(explain, folder):
    words = ("100", "zz", "--entities", folder / "out.csv")
    place = json.loads(explain(*words, "--json"))["entities"]
    assert not place["together"]
    assert place["here"]["gain"] > place["there"]["gain"]
    text = explain(*words)
    assert "100 in the entity of zz, zz" in text
    assert "1 members that it is not linked with" in text
    assert "100 where it is, 100" in text
    alone = explain("zz", "100", "--entities", folder / "out.csv")
    assert "zz where it is, zz\n  nobody else is there" in alone


def test_without_a_model_the_weights_are_found_from_the_records(run, folder):
    words = ("--id", "id", "--json", "--ignore", "person")
    result = run("resolve", "explain", folder / "labelled.csv", "100", "101", *words)
    assert result.code == 0
    assert "note: no model was given" in result.err
    assert json.loads(result.out)["temperature"] == 1.0


def test_an_id_that_is_not_there_is_named_with_the_nearest(refused, folder):
    data = folder / "in.csv"
    assert "no record has the id '1001'. Did you mean '101'?" in refused(data, "100", "1001")
    assert "no record has the id 'qq'. The first id is '100'." in refused(data, "qq", "100")
    assert "A and B are both '100'" in refused(data, "100", "100")


def test_an_id_that_was_forgotten_is_asked_for(refused, folder):
    told = f"give RECORDS and the ids of two of them, A and B, but only {str(folder / 'in.csv')!r} and '100'"
    assert told in refused(folder / "in.csv", "100")


def test_entities_of_other_records_are_refused(refused, folder, tmp_path):
    other = write_csv(tmp_path / "o.csv", read_csv(folder / "out.csv")[2:])
    err = refused(folder / "in.csv", "100", "101", "--entities", other)
    assert "lacks 2 of the records, the first of them '100'" in err


def test_fields_and_model_exclude_each_other(refused, folder, tmp_path):
    assert "--model has fields of its own" in refused(folder / "in.csv", "100", "101", "--fields", "f.toml")
