"""``factorwise tag score``."""

import io
import json
import sys

import pytest

from factorwise.metrics.sequence import label_scores, score_spans

TRUTH = [["B-NP", "I-NP", "O"], ["B-VP", "B-NP"], ["O"]]
PREDICTED = [["B-NP", "O", "O"], ["B-VP", "B-NP"], ["B-NP"]]


@pytest.fixture
def file(tmp_path):
    def write(truth=TRUTH, predicted=PREDICTED, form="w{n} {true} {found}"):
        blocks = [
            "\n".join(form.format(n=n, true=a, found=b) for n, (a, b) in enumerate(zip(*pair, strict=True)))
            for pair in zip(truth, predicted, strict=True)
        ]
        path = tmp_path / "tagged.txt"
        path.write_text("\n\n".join(blocks) + "\n")
        return path

    return write


def scores(run, *words):
    result = run("tag", "score", *words, "--json")
    assert (result.code, result.err) == (0, "")
    return json.loads(result.out)


def test_the_last_two_columns_are_truth_and_prediction(run, file):
    document = scores(run, file())
    assert document["spans"] == score_spans(TRUTH, PREDICTED).as_dict()
    assert document["accuracy"] == pytest.approx(4 / 6)
    assert (document["sentences"], document["tokens"], document["labels"]) == (3, 6, None)


def test_other_columns_can_be_chosen(run, file):
    path = file(form="{found} w{n} {true}")
    chosen = ("--truth-column", -1, "--prediction-column", 0)
    assert scores(run, path, *chosen)["spans"] == score_spans(TRUTH, PREDICTED).as_dict()


@pytest.mark.parametrize(("name", "meant"), [("IOB2", "IOB2"), ("bio", "IOB2"), ("IOB1", "IOB1")])
def test_a_scheme_counts_whole_spans_only(run, file, name, meant):
    truth, predicted = [["I-NP", "B-VP", "I-VP"]], [["I-NP", "B-VP", "I-VP"]]
    document = scores(run, file(truth, predicted), "--scheme", name)
    assert document["scheme"] == meant
    assert document["spans"] == score_spans(truth, predicted, meant).as_dict()


def test_labels_of_another_scheme_are_refused(run, file):
    result = run("tag", "score", file([["S-NP"]], [["S-NP"]]), "--scheme", "IOB2")
    assert result.code == 2
    assert "'S-NP' is not a label of the scheme IOB2" in result.err


def test_labels_that_are_no_spans_are_scored_by_token_with_a_notice(run, file):
    truth, predicted = [["DT", "NN", "VB"]], [["DT", "VB", "VB"]]
    path = file(truth, predicted)
    result = run("tag", "score", path, "--json")
    document = json.loads(result.out)
    assert "scored token by token" in result.err
    assert document["spans"] is None
    expected = label_scores(truth, predicted)
    assert document["labels"]["types"] == {name: vars_of(score) for name, score in expected.items()}
    assert document["labels"]["macro"]["f1"] == pytest.approx((1 + 0 + 2 / 3) / 3)
    assert run("tag", "score", path, "--quiet").err == ""


def vars_of(score):
    return {name: getattr(score, name) for name in ("precision", "recall", "f1", "support", "predicted")}


def test_text_shows_types_means_and_accuracy(run, file):
    words = [line.split() for line in run("tag", "score", file()).out.splitlines()]
    micro = score_spans(TRUTH, PREDICTED).micro
    assert ["VP", "1.0000", "1.0000", "1.0000", "1", "1"] in words
    assert ["(micro)", f"{micro.precision:.4f}", f"{micro.recall:.4f}", f"{micro.f1:.4f}", "3", "4"] in words
    assert words[-1] == ["token", "accuracy", "0.6667"]


def test_standard_input_is_read(run, file, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(file().read_bytes())))
    assert scores(run, "-")["spans"] == score_spans(TRUTH, PREDICTED).as_dict()


@pytest.mark.parametrize(
    ("content", "words", "fault"),
    [
        (b"a B-NP B-NP\nb O\n", [], "line 2: 'b O' has 2 columns, but line 1 has 3"),
        (b"a B-NP B-NP\n\xe9 O O\n", [], "line 2: byte 0xe9 is not utf-8"),
        (b"a\tB-NP\tB-NP\nb\tO\t\n", [], "line 2: column 2 is empty, where a label should be"),
        (b"", [], "no tokens"),
        (b"O\n", [], "there is only one column"),
        (b"a O O\n", ["--truth-column", "7"], "--truth-column is 7, but the file has 3 columns, 0 to 2"),
        (b"a O O\n", ["--separator", "::"], "'::' is not one ASCII character"),
    ],
)
def test_what_is_wrong_in_the_file_is_told_with_its_line(run, tmp_path, content, words, fault):
    path = tmp_path / "bad.txt"
    path.write_bytes(content)
    result = run("tag", "score", path, *words)
    assert (result.code, result.out) == (2, "")
    assert fault in result.err


def test_a_file_that_is_not_there_is_told(run, tmp_path):
    for path in (tmp_path / "none.txt", tmp_path):
        result = run("tag", "score", path)
        assert result.code == 2
        assert "Check the path" in result.err


def test_probabilities_are_not_taken_for_labels(run, file):
    result = run("tag", "score", file(form="w{n} {true} {found} 0.98"))
    assert result.code == 2
    assert "--truth-column -3 --prediction-column -2" in result.err


def test_columns_that_cannot_be_truth_and_prediction_are_refused_or_remarked_on(run, file):
    path = file(form="w{n} {true} {true}x")
    told = run("tag", "score", path)
    assert told.code == 0
    assert "columns 1 and 2 have no label in common: " in told.err
    assert "Name others with --truth-column and --prediction-column." in told.err
    same = run("tag", "score", file(), "--truth-column", -1)
    assert (same.code, same.out) == (2, "")
    assert "--truth-column and --prediction-column are both column 2: name two columns." in same.err
    told = run("tag", "score", file([["I-NP", "O"]], [["I-NP", "O"]]), "--scheme", "bioes")
    assert "no true span is whole in the scheme IOBES; labels are such as" in told.err


def test_several_best_sequences_are_not_taken_for_truth_and_prediction(run, tmp_path):
    path = tmp_path / "best.txt"
    path.write_text("# nbest=0.8,0.2\na B-NP B-NP O\n")
    refused = run("tag", "score", path, "--comment", "# ")
    assert (refused.code, refused.out) == (2, "")
    assert "its last columns are several predictions, written by `tag apply --nbest`" in refused.err
    chosen = ("--truth-column", 1, "--prediction-column", 2)
    assert scores(run, path, "--comment", "# ", *chosen)["spans"]["micro"]["f1"] == 1.0
