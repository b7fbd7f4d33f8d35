"""``factorwise coref score``."""

import io
import json
import sys

import pytest

from factorwise.metrics.coreference import score_clusterings, score_documents

TRUTH = {"d0": ["a", "a", "b"], "d1": ["a", "c", "c", "c"]}
FOUND = {"d0": [0, 1, 1], "d1": [2, 2, 3, 3]}


def documents(entities, *, ids=False, topic="t", **more):
    """Documents whose mentions are one token each."""
    return [
        {
            "id": name,
            "topic": topic,
            "tokens": [f"w{number}" for number in range(len(labels))],
            "mentions": [
                {"start": place, "end": place + 1, **({"id": f"m{place}"} if ids else {}), "entity": label}
                for place, label in enumerate(labels)
            ],
            **more,
        }
        for name, labels in entities.items()
    ]


@pytest.fixture
def file(tmp_path):
    def write(name, records):
        path = tmp_path / name
        path.write_text("".join(json.dumps(one) + "\n" for one in records))
        return path

    return write


@pytest.fixture
def files(file):
    """What was found, and the truth."""
    return file("out.jsonl", documents(FOUND)), file("in.jsonl", documents(TRUTH))


def scores(run, out, truth, *words):
    result = run("coref", "score", out, "--truth", truth, "--json", *words)
    assert (result.code, result.err) == (0, "")
    return json.loads(result.out)


def refusal(run, out, truth=None, *words):
    result = run("coref", "score", out, *(() if truth is None else ("--truth", truth)), *words)
    assert (result.code, result.out) == (2, "")
    return result.err


def test_all_metrics_are_those_of_the_library(run, files):
    document = scores(run, *files)
    expected = score_documents(TRUTH.values(), FOUND.values()).as_dict()
    assert document["scores"] == expected
    assert (document["scope"], document["left_out"]) == ("document", 0)
    assert "per_document" not in document


def test_each_document_can_be_scored_too(run, files):
    found = scores(run, *files, "--per-document")["per_document"]
    assert found == [
        {"id": name, **score_clusterings(TRUTH[name], FOUND[name]).as_dict()} for name in ("d0", "d1")
    ]


def test_text_shows_every_metric(run, files):
    out, truth = files
    lines = run("coref", "score", out, "--truth", truth, "--per-document").out.splitlines()
    expected = score_documents(TRUTH.values(), FOUND.values())
    words = [line.split() for line in lines]
    assert "2 documents, 7 mentions, 4 true entities, 4 found" in lines[0]
    for title, score in (
        ("pairwise", expected.pairwise), ("B-cubed", expected.b_cubed), ("MUC", expected.muc),
        ("CEAF-e", expected.ceaf_e), ("CEAF-m", expected.ceaf_m), ("BLANC", expected.blanc),
        ("LEA", expected.lea),
    ):  # fmt: skip
        assert [title, *(f"{value:.4f}" for value in score)] in words
    assert ["CoNLL", "average", f"{expected.conll:.4f}"] in words
    assert ["adjusted", "Rand", "index", f"{expected.adjusted_rand:.4f}"] in words
    each = score_clusterings(TRUTH["d1"], FOUND["d1"])
    assert [row[:4] for row in words if row[0] == "d1"] == [
        ["d1", "4", f"{each.pairwise.f1:.4f}", f"{each.b_cubed.f1:.4f}"]
    ]


def test_documents_and_mentions_may_stand_in_any_order(run, file, files):
    expected = scores(run, *files)["scores"]
    records = documents(TRUTH)[::-1]
    for one in records:
        one["mentions"].reverse()
    assert scores(run, files[0], file("by_place.jsonl", records))["scores"] == expected
    out, records = file("ids.jsonl", documents(FOUND, ids=True)), documents(TRUTH, ids=True)
    records[1]["mentions"].reverse()
    assert scores(run, out, file("by_id.jsonl", records))["scores"] == expected


def test_two_mentions_of_the_same_words_are_told_apart_by_their_order(run, file):
    found, truth = documents({"d": [0, 1, 1]}), documents({"d": ["x", "y", "y"]})
    for (one,) in (found, truth):
        one["mentions"][1] |= {"start": 0, "end": 1}
    assert scores(run, file("o.jsonl", found), file("t.jsonl", truth))["scores"]["conll"] == 1.0


def test_the_truth_that_apply_has_kept_is_taken_if_no_other_is_given(run, file, files):
    records = documents(FOUND)
    for one in records:
        for mention, true in zip(one["mentions"], TRUTH[one["id"]], strict=True):
            mention["truth"] = true
    out = file("kept.jsonl", records)
    result = run("coref", "score", out, "--json")
    assert json.loads(result.out)["scores"] == scores(run, *files)["scores"]
    assert "its entities are those that `coref apply` found" in refusal(run, out, out)


def test_mentions_without_a_prediction_are_left_out_and_counted(run, file, files):
    out = file("some.jsonl", documents(FOUND | {"d1": [None, 2, 3, 3]}))
    result = run("coref", "score", out, "--truth", files[1], "--json")
    document = json.loads(result.out)
    assert document["left_out"] == 1
    assert "some.jsonl are not scored: 1." in result.err
    expected = score_documents([TRUTH["d0"], TRUTH["d1"][1:]], [FOUND["d0"], [2, 3, 3]])
    assert document["scores"] == expected.as_dict()
    assert run("coref", "score", out, "--truth", files[1], "--quiet").err == ""


def test_documents_of_a_topic_are_scored_together_when_asked_for(run, file, files):
    shared = file("shared.jsonl", documents({"d0": [0, 0, 1], "d1": [0, 2, 2, 2]}))
    assert scores(run, shared, files[1], "--scope", "topic")["scores"]["conll"] == 1.0
    expected = score_clusterings(TRUTH["d0"] + TRUTH["d1"], FOUND["d0"] + FOUND["d1"])
    document = scores(run, *files, "--scope", "topic", "--per-document")
    assert document["scores"] == expected.as_dict()
    assert [group["id"] for group in document["per_document"]] == ["t"]
    result = run("coref", "score", shared, "--truth", files[1])
    assert "documents have entities in common" in result.err
    assert "give --scope topic" in result.err


def test_standard_input_is_read(run, files, monkeypatch):
    expected = scores(run, *files)["scores"]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(files[0].read_bytes())))
    assert scores(run, "-", files[1])["scores"] == expected
    assert "only one of" in refusal(run, "-", "-")


@pytest.mark.parametrize(
    ("found", "truth", "fault"),
    [
        ({"d0": FOUND["d0"]}, TRUTH, "out.jsonl: lacks document 'd1', which"),
        (FOUND, {"d0": TRUTH["d0"]}, "in.jsonl: lacks document 'd1', which"),
        (FOUND | {"d0": [0, 1]}, TRUTH, "out.jsonl, document 'd0': lacks mention (2, 3), which"),
        (FOUND, TRUTH | {"d1": ["a"]}, "document 'd1': lacks mention (1, 2), (2, 3), (3, 4), which"),
        ({f"d{n}": [0] for n in range(9)}, {"d0": ["a"]}, "lacks document 'd1', 'd2', 'd3' and 5 more"),
        (FOUND, TRUTH | {"d0": ["a", None, "b"]}, "document 'd0': the true entity of mention 1 is not known"),
        ({"d0": [None] * 3, "d1": [None] * 4}, TRUTH, "no mention has an 'entity'"),
    ],
)
def test_what_is_missing_is_told(run, file, found, truth, fault):
    message = refusal(run, file("out.jsonl", documents(found)), file("in.jsonl", documents(truth)))
    assert fault in message


def test_mentions_of_one_id_must_have_one_place(run, file):
    truth = documents(TRUTH, ids=True)
    truth[1]["tokens"].append("end")
    truth[1]["mentions"][2] |= {"start": 2, "end": 4}
    message = refusal(run, file("o.jsonl", documents(FOUND, ids=True)), file("t.jsonl", truth))
    assert "document 'd1': mention 'm2' is tokens 2 to 3, but 2 to 4 in" in message


def test_files_that_do_not_serve_are_refused(run, file, files, tmp_path):
    assert "give the file with the true entities with --truth" in refusal(run, files[0])
    assert "has no 'topic'" in refusal(
        run, file("o.jsonl", documents(FOUND, topic=None)), files[1], "--scope", "topic"
    )
    (tmp_path / "empty.jsonl").write_text("\n")
    assert "holds no document" in refusal(run, files[0], tmp_path / "empty.jsonl")
    assert "there is no such file" in refusal(run, tmp_path / "none.jsonl", files[1])
