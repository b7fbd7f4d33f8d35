"""``--report``: pages of the verbs, with what users wrote as text only, or without it."""

import csv
import hashlib
import json

import pytest

from factorwise.cli import main
from factorwise.cli.resolve import report as resolve_report
from factorwise.cli.resolve import request as resolve_request
from factorwise.cli.tag import report as tag_report
from record_cases import people, without, write_csv
from report_cases import sections_of

EVIL = "<script>alert(1)</script>"


def sections(path):
    assert EVIL not in path.read_text(encoding="utf-8")
    return sections_of(path)


def quietly(*words):
    with pytest.raises(SystemExit) as left:
        main.main([str(word) for word in words])
    assert left.value.code == 0


@pytest.fixture(scope="module")
def resolved(tmp_path_factory):
    """Records with markup in a field, and a model."""
    place = tmp_path_factory.mktemp("reports")
    records = [{**record, "surname": f"{record['surname']} {EVIL}"} for record in people(40)]
    write_csv(place / "labelled.csv", records)
    write_csv(place / "records.csv", without(records, "person"))
    words = ("--id", "id", "--entity", "person", "--model", place / "m.fw")
    quietly("resolve", "fit", place / "labelled.csv", *words, "--quiet", "--report", place / "fit.html")
    return place


def test_fitting_a_resolver_reports_quality_and_weights(resolved):
    found = sections(resolved / "fit.html")
    assert {"What was run", "Data", "Quality", "Training methods", "Fields", "Weights"} <= set(found)
    for name, count, least, largest in found["Weights by comparison"]["rows"]:
        told = [row[1] for row in found["Weights"]["rows"] if row[0].startswith(f"{name}, ")]
        assert (count, least, largest) == (len(told), min(told), max(told))
    assert ["records", len(people(40))] in found["Data"]["rows"]
    quality = dict(found["Quality"]["rows"])
    methods = dict(found["Training methods"]["rows"])
    assert set(quality) == {"precision", "recall", "F1"}
    assert quality["F1"] in methods.values()


def test_how_far_probabilities_can_be_trusted_is_reported_and_kept_with_the_model(resolved, run, tmp_path):
    told = sections(resolved / "fit.html")["Calibration"]
    (line,) = told["series"]
    assert told["style"] == "diagonal"
    assert line["x"] == sorted(line["x"])
    assert all(0.0 <= value <= 1.0 for value in (*line["x"], *line["y"]))
    words = ("--id", "id", "--model", resolved / "m.fw", "-o", tmp_path / "o.csv")
    run("resolve", "apply", resolved / "records.csv", *words, "--report", tmp_path / "r.html")
    assert sections(tmp_path / "r.html")["Calibration"] == told


def test_fitting_without_labels_reports_what_was_found(resolved, run, tmp_path):
    words = ("--id", "id", "--model", tmp_path / "m.fw", "--report", tmp_path / "r.html", "--quiet")
    assert run("resolve", "fit", resolved / "records.csv", *words).code == 0
    found = sections(tmp_path / "r.html")
    assert dict(found["Data"]["rows"])["learned by"] == "anchors"
    assert not {"Quality", "Calibration", "Training methods"} & set(found)


def test_resolving_reports_entities_pairs_and_what_they_are_made_of(resolved, run, tmp_path, monkeypatch):
    monkeypatch.setattr("sys.argv", ["factorwise", "resolve", "apply", str(resolved / "records.csv")])
    words = ("--id", "id", "--model", resolved / "m.fw", "-o", tmp_path / "o.csv", "--posterior", "--json")
    done = run("resolve", "apply", resolved / "records.csv", *words, "--report", tmp_path / "r.html")
    assert json.loads(done.out)["report"]["file"] == "r.html"
    found = sections(tmp_path / "r.html")
    assert {"Result", "Convergence", "Sizes of entities", "Confidence", "Entities", "Weights"} <= set(found)
    entities = found["Entities"]
    assert entities["columns"].count("id") == 1
    assert "surname" in entities["columns"]
    facts = dict(found["What was run"]["rows"])
    digest = hashlib.sha256((resolved / "records.csv").read_bytes()).hexdigest()
    assert facts["read: records.csv"].endswith(f"SHA-256 {digest}")
    assert {"when", "seed", "threads", "read: m.fw", "numpy", "platform"} <= set(facts)
    assert facts["command"] == "factorwise resolve apply records.csv"  # nothing of the machine's folders
    assert any(EVIL in str(row) for entity in entities["entities"] for row in entity["members"])
    assert all(len(entity["members"]) > 1 for entity in entities["entities"])
    for pair in found["Uncertain pairs"]["pairs"]:
        assert pair["steps"][0][0] == "linked"


def test_doubtful_pairs_of_many_records_are_drawn_only_on_request(resolved, run, tmp_path, monkeypatch):
    words = ("--id", "id", "--model", resolved / "m.fw", "-o", tmp_path / "o.csv", "--json")
    for most, drawn in ((1_000, True), (10, False)):
        monkeypatch.setattr(resolve_request, "MOST_DRAWN", most)
        done = run("resolve", "apply", resolved / "records.csv", *words, "--report", tmp_path / "r.html")
        assert (json.loads(done.out)["uncertain_pairs"] is not None) == drawn
        pairs = sections(tmp_path / "r.html")["Uncertain pairs"]
        assert pairs["kind"] == ("pairs" if drawn else "facts")
    assert pairs["rows"] == [["not drawn", "give --posterior to have them"]]


def test_no_doubtful_pairs_are_drawn_unasked_where_the_walk_was_cut_short(resolved, run, tmp_path):
    words = ("--id", "id", "--model", resolved / "m.fw", "-o", tmp_path / "o.csv", "--json")
    words += ("--seconds", 1e-9, "--report", tmp_path / "r.html")
    cut = run("resolve", "apply", resolved / "records.csv", *words)
    assert json.loads(cut.out)["search"]["stopped"] == "time"
    assert json.loads(cut.out)["uncertain_pairs"] is None
    asked = run("resolve", "apply", resolved / "records.csv", *words, "--posterior")
    assert json.loads(asked.out)["uncertain_pairs"] is not None


def test_members_come_with_their_confidence_the_doubtful_ones_first(resolved, run, tmp_path):
    words = ("--id", "id", "--model", resolved / "m.fw", "-o", tmp_path / "o.csv")
    run("resolve", "apply", resolved / "records.csv", *words, "--report", tmp_path / "r.html")
    with (tmp_path / "o.csv").open(newline="") as stream:
        written = {row["id"]: float(row["confidence"]) for row in csv.DictReader(stream)}
    found = sections(tmp_path / "r.html")["Entities"]
    assert found["columns"][:2] == ["id", "confidence"]
    for entity in found["entities"]:
        told = [(row[0], row[1]) for row in entity["members"]]
        assert [share for _, share in told] == sorted(share for _, share in told)
        assert all(share == round(written[one], 4) for one, share in told)
        assert entity["coherence"] == told[0][1]


def test_what_has_no_room_on_a_page_is_left_out_and_told(resolved, run, tmp_path, monkeypatch):
    words = ("--id", "id", "--model", resolved / "m.fw", "-o", tmp_path / "o.csv")
    command = ("resolve", "apply", resolved / "records.csv", *words, "--report", tmp_path / "r.html")
    run(*command)
    whole = sections(tmp_path / "r.html")["Entities"]["entities"]
    largest = max(len(entity["members"]) for entity in whole)
    assert largest > 2
    monkeypatch.setattr(resolve_report, "MOST_MEMBERS", 2)
    run(*command)
    few = sections(tmp_path / "r.html")["Entities"]["entities"]
    assert [entity["name"] for entity in few] == [entity["name"] for entity in whole]
    for part, entity in zip(few, whole, strict=True):
        assert part["members"] == entity["members"][:2]
        assert part["left_out"] == len(entity["members"]) - 2
    text = sum(
        len(value) for entity in few[:3] for row in entity["members"] for value in row if value is str(value)
    )
    monkeypatch.setattr(resolve_report, "MOST_TEXT", text)
    run(*command)
    found = sections(tmp_path / "r.html")
    assert found["Entities"]["entities"] == few[:3]
    assert f"; {len(few) - 3:,} others" in found["Entities"]["note"]
    monkeypatch.setattr(resolve_report, "LONGEST_RECORD", 1)
    run(*command)
    values = [
        row[2:]
        for entity in sections(tmp_path / "r.html")["Entities"]["entities"]
        for row in entity["members"]
    ]
    assert (
        max(len(value) for row in values for value in row if value) == resolve_report.LEAST + 1
    )  # with dots


def test_values_can_be_left_out(resolved, run, tmp_path):
    words = (
        "--id",
        "id",
        "--model",
        resolved / "m.fw",
        "-o",
        tmp_path / "o.csv",
        "--posterior",
        "--no-values",
    )
    run("resolve", "apply", resolved / "records.csv", *words, "--report", tmp_path / "r.html")
    found = sections(tmp_path / "r.html")
    assert found["Entities"]["columns"] == ["id", "confidence"]
    assert "alert" not in json.dumps({name: found[name] for name in ("Entities", "Uncertain pairs")})


@pytest.fixture(scope="module")
def tagged(tmp_path_factory):
    place = tmp_path_factory.mktemp("tagged")
    lines = [f"Ann{EVIL}\tB-PER", "sings\tO", "", "Bob\tB-PER", "Smith\tI-PER", "reads\tO", ""] * 5
    (place / "train.txt").write_text("\n".join(lines) + "\n")
    words = ("--model", place / "t.fw", "--held-out-share", 0.3, "--global", "auto", "--global-folds", 2)
    quietly("tag", "fit", place / "train.txt", *words, "--quiet", "--report", place / "fit.html")
    return place


def test_fitting_a_tagger_reports_curves_and_weights(tagged):
    found = sections(tagged / "fit.html")
    assert {"Convergence", "Learning curve", "Largest weights", "Transitions"} <= set(found)
    assert any(EVIL in row[0] for row in found["Largest weights"]["rows"])
    by_template = found["Weights by template"]["rows"]
    assert by_template[-1][1] > 0
    assert {"w[0]", "transitions"} <= {row[0] for row in by_template}  # the bias has no weight left here
    largest = max(abs(row[2]) for row in found["Largest weights"]["rows"])
    assert largest == max(max(-least, most) for name, _, least, most in by_template if name != "transitions")
    held_out = dict(found["Held-out sentences"]["rows"])
    assert [row[0] for row in found["By type"]["rows"]] == ["(micro)", "(macro)", "(weighted)", "PER"]
    assert sum(map(sum, found["Confusion"]["steps"]["tokens"])) == held_out["tokens"]
    assert f" {held_out['tokens']} tokens; larger points have more of them" in found["Calibration"]["note"]


def test_tagging_reports_sentences_with_what_is_true(tagged, run, tmp_path):
    words = ("--model", tagged / "t.fw", "-o", tmp_path / "o.txt", "--report", tmp_path / "r.html")
    assert run("tag", "apply", tagged / "train.txt", *words).code == 0
    found = sections(tmp_path / "r.html")
    first = found["Sentences"]["sentences"][0]
    assert first["tokens"] == [f"Ann{EVIL}", "sings"]
    assert first["truth"] == ["B-PER", "O"]
    assert found["Calibration"]["style"] == "diagonal"
    assert run("tag", "apply", tagged / "train.txt", *words, "--no-values").code == 0
    assert "Ann" not in json.dumps(sections(tmp_path / "r.html")["Sentences"])
    assert run("tag", "score", tmp_path / "o.txt", "--report", tmp_path / "s.html").code == 0
    for title in ("By type", "Confusion"):
        assert found[title] == sections(tmp_path / "s.html")[title]


def test_a_sentence_without_an_end_is_shown_in_part(tagged, run, tmp_path, monkeypatch):
    monkeypatch.setattr(tag_report, "LONGEST_SENTENCE", 2)
    words = ("--model", tagged / "t.fw", "-o", tmp_path / "o.txt", "--report", tmp_path / "r.html")
    assert run("tag", "apply", tagged / "train.txt", *words).code == 0
    first, second = sections(tmp_path / "r.html")["Sentences"]["sentences"][:2]
    assert (first["left_out"], second["left_out"]) == (0, 1)
    assert second["tokens"] == ["Bob", "Smith"]
    assert second["truth"] == ["B-PER", "I-PER"]


@pytest.mark.parametrize("name", ["r.pdf", "missing/r.html"])
def test_a_report_that_cannot_be_written_is_refused_before_the_work(tagged, run, tmp_path, name):
    words = ("--model", tagged / "t.fw", "-o", tmp_path / "o.txt", "--report", tmp_path / name)
    done = run("tag", "apply", tagged / "train.txt", *words)
    assert done.code == 2
    assert "--report" in done.err
    assert list(tmp_path.iterdir()) == []
