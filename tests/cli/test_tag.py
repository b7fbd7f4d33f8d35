"""``factorwise tag``: training, applying and looking into a tagger."""

import io
import json
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest

from factorwise.apps.tagging.estimator import ChainCRF
from factorwise.apps.tagging.model_file import read_tagger
from factorwise.cli import main
from factorwise.cli.tag import training as tag_training
from factorwise.cli.verbs import GROUPS
from factorwise.io.models.files import ModelFile, write_model
from factorwise.metrics.sequence import spans
from tagging_files import column_text, rows_of, sentences

TRAIN = sentences(40)
TEST = sentences(15, seed=1)
SHARED = ["--seed", "--threads", "--config", "--json", "--quiet", "--verbose", "--version"]


def quietly(*words):
    with pytest.raises(SystemExit) as left:
        main.main([str(word) for word in words])
    assert left.value.code == 0


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with training and test data and a tagger."""
    place = tmp_path_factory.mktemp("tag")
    (place / "train.txt").write_text(column_text(TRAIN))
    (place / "test.txt").write_text(column_text(TEST))
    quietly("tag", "fit", place / "train.txt", "--model", place / "m.fw", "--quiet")
    return place


@pytest.fixture
def fit(run, folder, tmp_path):
    """Train on the training data with more options; return the summary."""

    def fit(*words, data=folder / "train.txt", model=tmp_path / "m.fw"):
        result = run("tag", "fit", data, "--model", model, "--json", *words)
        assert (result.code, result.err) == (0, "")
        return json.loads(result.out)

    return fit


@pytest.fixture
def refused(run, folder, tmp_path):
    """Train in vain: return what is said; there is no model, nor any other file."""

    def refused(*words, data=folder / "train.txt"):
        place = tmp_path / "out"
        place.mkdir(exist_ok=True)
        result = run("tag", "fit", data, "--model", place / "m.fw", *words)
        assert (result.code, result.out) == (2, "")
        assert list(place.iterdir()) == []
        return result.err

    return refused


def apply(run, folder, *words, data=None):
    result = run("tag", "apply", data or folder / "test.txt", "--model", folder / "m.fw", *words)
    assert (result.code, result.err) == (0, "")
    return result.out


def inspected(run, model, *words):
    result = run("tag", "inspect", model, "--json", *words)
    assert (result.code, result.err) == (0, "")
    return json.loads(result.out)


# the group


@pytest.mark.parametrize("name", GROUPS["tag"].verbs)
def test_every_verb_has_the_shared_options_and_ends_its_help_with_an_example(run, name):
    result = run("tag", name, "--help")
    assert result.code == 0
    for option in SHARED:
        assert option in result.out
    title, example = result.out.rstrip().splitlines()[-2:]
    assert title.strip() == "Example:"
    assert example.strip().startswith(f"factorwise tag {name}")


def test_without_a_verb_the_help_lists_the_verbs(run):
    result = run("tag")
    assert result.code == 0
    for name, (_, line) in GROUPS["tag"].verbs.items():
        assert name in result.out
        assert line in result.out


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        (["fti"], "no verb of 'factorwise tag' is called 'fti'. Did you mean 'fit'?"),
        (["xyzzy"], "The verbs are: apply, cite, classes, fit, inspect, score."),
        (["--seed", "3", "fit"], "Options go after the verb: factorwise tag VERB --seed."),
        (["fit", "x", "--modle", "m.fw"], "--model"),
        (["fit", "x"], "Missing option '--model'"),
    ],
)
def test_wrong_usage_is_told_with_the_help_to_try(run, words, fault):
    result = run("tag", *words)
    assert (result.code, result.out) == (2, "")
    assert fault in result.err
    assert "Try 'factorwise tag" in result.err


def test_the_table_of_an_inner_verb_gives_defaults_and_the_outer_one_shared_ones(fit, tmp_path):
    config = tmp_path / "run.toml"
    config.write_text(
        "seed = 1\n[tag]\nseed = 2\nthreads = 1\n[tag.fit]\nc2 = 0.25\nmax-iterations = 3\n"
        'forbid = ["O,I-NP", ",I-NP"]\n[tag.score]\ntruth-column = 1\n'
    )
    document = fit("--config", config)
    assert (document["training"]["c2"], document["training"]["iterations"]) == (0.25, 3)
    saved = read_tagger(tmp_path / "m.fw")
    assert saved.provenance["seed"] == 2
    assert saved.settings["constraints"]["forbid"] == ["O,I-NP", ",I-NP"]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("[tag.fit]\nschema = 1\n", "[tag.fit] 'schema' is not an option. Did you mean 'scheme'?"),
        ("[tag.fti]\nc2 = 1\n", "[tag] 'fti' is not an option. Did you mean 'fit'?"),
        ("[tag]\nc2 = 1\n", "[tag] 'c2' is not an option"),
        ("[tag.fit]\nc2 = true\n", "[tag.fit] c2 must be a number, or numbers with commas in quotes"),
        ("[tag.fit]\nc2 = 'much'\n", "[tag.fit] c2: 'much' is not a number"),
        ("[tag.fit]\ncolumns = 'w'\n", "[tag.fit] columns: 'w' is no list of columns"),
    ],
)
def test_what_is_wrong_in_a_table_is_told_with_its_place(refused, tmp_path, text, fault):
    (tmp_path / "run.toml").write_text(text)
    assert fault in refused("--config", tmp_path / "run.toml")


def test_no_verb_loads_scikit_learn():
    modules = ", ".join(module for module, _ in GROUPS["tag"].verbs.values())
    code = f"import sys, {modules}; sys.exit('sklearn' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# training


def estimator(**parameters):
    words = [[token[:2] for token in sentence] for sentence in TRAIN]
    labels = [[token[2] for token in sentence] for sentence in TRAIN]
    return ChainCRF(templates="default", **parameters).fit(words, labels)


@pytest.mark.parametrize(
    ("words", "parameters"),
    [
        ([], {}),
        (["--c2", "0.1", "--order", "2"], {"c2": 0.1, "order": 2}),
        (["--variance", "2", "--scale", "4"], {"prior_variance": 2.0, "prior_scale": 4.0}),
        (["--class-weight", "B-NP=3", "--class-weight", "O=0.5"], {"class_weight": {"B-NP": 3, "O": 0.5}}),
        (["--class-weight", "balanced"], {"class_weight": "balanced"}),
        (
            ["--scheme", "bio", "--all-possible-transitions"],
            {"scheme": "BIO", "all_possible_transitions": True},
        ),
        (["--all-possible-states", "--min-freq", "2"], {"all_possible_states": True, "min_freq": 2}),
    ],
)
def test_training_finds_what_the_estimator_finds(fit, tmp_path, words, parameters):
    document = fit(*words)
    crf = estimator(**parameters)
    assert document["training"]["objective"] == pytest.approx(crf.objective_, rel=1e-9)
    assert document["training"]["iterations"] == crf.n_iter_
    saved = read_tagger(tmp_path / "m.fw")
    assert list(saved.tagger.classes) == crf.classes_
    np.testing.assert_allclose(saved.tagger.weights, crf.tagger_.weights, atol=1e-12)


def test_the_summary_counts_data_weights_times_and_memory(fit, tmp_path):
    document = fit("--c1", "0.5", "--c2", "0.1")
    tokens = sum(map(len, TRAIN))
    assert document["model"] == {"file": "m.fw", "bytes": (tmp_path / "m.fw").stat().st_size}
    tagger = read_tagger(tmp_path / "m.fw").tagger
    counts = {"sentences": 40, "tokens": tokens, "columns": [0, 1], "labels": 6}
    attributes = document["data"].pop("attributes")
    assert document["data"] == counts
    assert 0 < len(tagger.features.start) - 1 < attributes  # those without a weight are not saved
    assert np.all(tagger.state_weights != 0)
    assert document["weights"]["active"] == np.count_nonzero(tagger.weights) < document["weights"]["all"]
    assert set(document["seconds"]) == {"reading", "features", "training", "writing", "all"}
    assert document["seconds"]["all"] >= sum(document["seconds"].values()) - document["seconds"]["all"]
    assert document["peak_memory"] > 10**7
    assert (document["held_out"], document["cross_validation"]) == (None, None)


def test_the_summary_for_people_tells_the_shares_of_the_time(run, folder, tmp_path):
    result = run("tag", "fit", folder / "train.txt", "--model", tmp_path / "m.fw", "--max-iterations", 2)
    assert (result.code, result.err) == (0, "")
    lines = {line.split()[0]: line for line in result.out.splitlines()}
    assert "40 sentences" in lines["data"]
    assert "lbfgs, c1 = 0.1, c2 = 0.1, order 1, 2 iterations" in lines["training"]
    assert all(part in lines["time"] for part in ("reading", "features", "training", "%"))


def test_the_same_seed_gives_the_same_model_with_any_number_of_threads(fit, tmp_path):
    for threads in (1, 2):
        fit(
            "--threads",
            threads,
            "--held-out-share",
            0.2,
            "--max-iterations",
            5,
            model=tmp_path / f"{threads}.fw",
        )
    one, two = (read_tagger(tmp_path / f"{threads}.fw").tagger.weights for threads in (1, 2))
    assert one.tobytes() == two.tobytes()


def test_an_online_algorithm_can_be_chosen(fit, run, tmp_path, folder):
    training = fit("--algorithm", "ap", "--max-iterations", 4)["training"]
    assert (training["algorithm"], training["gradient_norm"]) == ("ap", None)
    assert training["iterations"] <= 4
    out = run("tag", "apply", folder / "train.txt", "--model", tmp_path / "m.fw").out
    assert np.mean([row[2] == row[3] for row in rows_of(out)]) > 0.9


def test_templates_and_names_of_columns_are_the_users(fit, run, tmp_path):
    (tmp_path / "t.txt").write_text("word[0]\ntag[-1]|tag[0]  # the tag before\n")
    fit("--templates", tmp_path / "t.txt", "--column-names", "word,tag", "--columns", "0,1")
    attributes = [entry["attribute"] for entry in inspected(run, tmp_path / "m.fw", "--top", 500)["features"]]
    assert {name.partition("=")[0] for name in attributes} == {"word[0]", "tag[-1]|tag[0]"}
    assert "word[0]=cat" in attributes


def test_chosen_columns_alone_make_features(fit, run, tmp_path):
    (tmp_path / "t.txt").write_text("w[0]\n")
    fit("--templates", tmp_path / "t.txt", "--columns", "1")
    attributes = {entry["attribute"] for entry in inspected(run, tmp_path / "m.fw", "--top", 500)["features"]}
    assert attributes == {f"w[0]={tag}" for sentence in TRAIN for _, tag, _ in sentence}


def test_forbidden_pairs_are_never_predicted(fit, run, tmp_path):
    data = tmp_path / "d.txt"
    data.write_text("a X\nb Y\n\nc X\nb Y\n\nb Y\nd X\n")
    fit("--forbid", "X,X", data=data)
    (tmp_path / "in.txt").write_text("a\nc\na\n")
    labels = [
        row[-1] for row in rows_of(run("tag", "apply", tmp_path / "in.txt", "--model", tmp_path / "m.fw").out)
    ]
    assert "X" in labels
    assert ("X", "X") not in set(pairwise(labels))


def test_tokens_whose_label_is_not_known_still_teach(fit, tmp_path):
    data = tmp_path / "d.txt"
    data.write_text("a X\nb Y\n\na X\nb _\n\na _\nb Y\n")
    document = fit("--label-unknown", "_", data=data)
    assert document["data"]["labels"] == 2
    crf = ChainCRF(templates="default").fit([["a", "b"]] * 3, [["X", "Y"], ["X", None], [None, "Y"]])
    assert document["training"]["objective"] == pytest.approx(crf.objective_, rel=1e-6)


def test_another_tagger_gives_the_weights_to_begin_with(fit, folder, tmp_path):
    cold = fit("--max-iterations", 1)["training"]["objective"]
    warm = fit("--max-iterations", 1, "--warm-start", folder / "m.fw")["training"]["objective"]
    assert warm < cold
    assert "m.fw" in [entry["name"] for entry in read_tagger(tmp_path / "m.fw").provenance["data"]]


def test_provenance_names_the_data_and_the_settings(folder):
    saved = read_tagger(folder / "m.fw")
    (data,) = saved.provenance["data"]
    assert (data["name"], data["bytes"]) == ("train.txt", (folder / "train.txt").stat().st_size)
    assert saved.settings["training"]["prior"] == {"c1": 0.1, "c2": 0.1}
    assert saved.settings["columns"] == {"features": [0, 1], "label": 2, "like_labels": [], "all": 3}


# held-out sentences and the choice of a prior


@pytest.mark.parametrize("algorithm", ["lbfgs", "l2sgd"])  # the second keeps an earlier pass than the last
def test_the_held_out_score_is_that_of_the_saved_model(fit, run, folder, tmp_path, algorithm):
    choice = ("--algorithm", algorithm, "--max-iterations", 4)
    found = fit("--held-out", folder / "test.txt", *choice)["held_out"]
    assert (found["sentences"], found["measure"]) == (15, "span F1")
    quietly("tag", "apply", folder / "test.txt", "--model", tmp_path / "m.fw", "-o", tmp_path / "o.txt")
    run()
    scores = json.loads(run("tag", "score", tmp_path / "o.txt", "--json").out)
    assert found["score"] == pytest.approx(scores["spans"]["micro"]["f1"])


def test_patience_stops_early_and_keeps_the_best(fit):
    free = fit("--held-out-share", 0.2)
    early = fit("--held-out-share", 0.2, "--patience", 2)
    assert early["held_out"]["sentences"] == 8
    assert early["training"]["iterations"] < free["training"]["iterations"]
    assert early["training"]["message"] == "no better held-out score in 2 iterations"


def test_held_out_sentences_must_have_the_columns_of_the_training_data(refused, tmp_path):
    (tmp_path / "h.txt").write_text("the B-NP\n")
    assert "h.txt: has 2 columns, but " in refused("--held-out", tmp_path / "h.txt")


def test_held_out_sentences_with_unknown_labels_are_left_out_of_the_score(fit, refused, tmp_path):
    (tmp_path / "h.txt").write_text("the DT B-NP\n\ncat NN _\nsees VBZ B-VP\n")
    found = fit("--held-out", tmp_path / "h.txt", "--label-unknown", "_", "--max-iterations", 1)["held_out"]
    assert (found["sentences"], found["tokens"]) == (1, 1)
    (tmp_path / "h.txt").write_text("cat NN _\nsees VBZ B-VP\n")
    assert "so none can be scored" in refused("--held-out", tmp_path / "h.txt", "--label-unknown", "_")


def test_the_best_prior_is_chosen_by_folds(fit, run, folder, tmp_path):
    words = ("--cross-validate", 3, "--c1", "0,50", "--c2", "50,0.1", "--max-iterations", 5)
    document = fit(*words)
    trials = document["cross_validation"]["priors"]
    assert [(entry["c1"], entry["c2"]) for entry in trials] == [(0, 50), (0, 0.1), (50, 50), (50, 0.1)]
    best = max(trials, key=lambda entry: entry["mean"])
    assert (best["c1"], best["c2"]) == (0, 0.1) == (document["training"]["c1"], document["training"]["c2"])
    assert all(len(entry["scores"]) == 3 for entry in trials)
    assert fit(*words)["cross_validation"] == document["cross_validation"]
    result = run("tag", "fit", folder / "train.txt", "--model", tmp_path / "m.fw", *words)
    (chosen,) = [line.split() for line in result.out.splitlines() if line.endswith("chosen")]
    assert chosen[:2] == ["0", "0.1"]


def test_labels_of_held_out_sentences_must_be_known(refused, tmp_path):
    (tmp_path / "h.txt").write_text("the DT B-NP\n\ncat NN I-NPP\n")
    message = refused("--held-out", tmp_path / "h.txt")
    assert "h.txt, line 3: the label 'I-NPP' is not among the 6" in message
    assert "Did you mean 'I-NP'?" in message


def test_files_that_are_probably_to_be_read_in_another_way_are_remarked_on(run, tmp_path):
    (tmp_path / "t.txt").write_text("# id=1\nAnn B-PER\n\n# id=2\nBob B-PER\n")
    words = ("--model", tmp_path / "m.fw", "--max-iterations", 2)
    told = run("tag", "fit", tmp_path / "t.txt", *words).err
    assert "most sentences of" in told
    assert "begin with '#': if these are comments, say with --comment TEXT what they begin with." in told
    told = run("tag", "fit", tmp_path / "t.txt", *words, "--comment", "# id=").err
    assert "begin with" not in told
    assert "all tokens of" in told
    assert "have the label 'B-PER': if that is no column of labels, name another with --label-column" in told


def test_spans_of_labels_that_name_none_are_refused(run, tmp_path):
    (tmp_path / "t.txt").write_text("the DT\ndog NN\nin IN\n\n" * 4)
    assert run("tag", "fit", tmp_path / "t.txt", "--model", tmp_path / "m.fw").code == 0
    words = ("--model", tmp_path / "m.fw", "--spans", "-o", tmp_path / "o.jsonl")
    refused = run("tag", "apply", tmp_path / "t.txt", *words)
    assert refused.code == 2
    assert "the labels 'DT', 'NN', 'IN' name no spans" in refused.err
    assert not (tmp_path / "o.jsonl").exists()
    refused = run("tag", "fit", tmp_path / "t.txt", "--model", tmp_path / "n.fw", "--scheme", "bio")
    assert refused.code == 2
    assert "no label is one of the scheme BIO" in refused.err
    assert not (tmp_path / "n.fw").exists()


def test_a_few_held_out_sentences_with_other_labels_are_left_out_and_told(folder, run, tmp_path):
    (tmp_path / "h.txt").write_text("the DT B-NP\n\n" * 12 + "x SYM I-LST\n")
    words = ("--model", tmp_path / "m.fw", "--held-out", tmp_path / "h.txt", "--json", "--max-iterations", 5)
    done = run("tag", "fit", folder / "train.txt", *words)
    held_out = json.loads(done.out)["held_out"]
    assert (held_out["sentences"], held_out["left_out"]) == (12, 1)
    assert held_out["score_without_constraints"] is None
    assert (
        "on 12 sentences, 1 left out" in run("tag", "fit", folder / "train.txt", *words[:4], *words[5:]).out
    )
    assert "1 of 13 sentences of" in done.err
    assert "labels that the training data lack ('I-LST')" in done.err


# applying


def test_the_prediction_is_the_last_column(run, folder):
    rows = rows_of(apply(run, folder))
    assert [row[:3] for row in rows] == [list(token) for sentence in TEST for token in sentence]
    expected = ChainCRF.load(folder / "m.fw").predict([[t[:2] for t in sentence] for sentence in TEST])
    assert [row[3] for row in rows] == [label for sentence in expected for label in sentence]
    assert np.mean([row[2] == row[3] for row in rows]) > 0.95


def test_files_without_labels_are_accepted_and_standard_input_too(run, folder, monkeypatch):
    text = column_text(TEST, columns=(0, 1))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    rows = rows_of(apply(run, folder, data="-"))
    assert [row[2] for row in rows] == [row[3] for row in rows_of(apply(run, folder))]


def test_a_file_is_written_with_a_summary(run, folder, tmp_path):
    document = json.loads(apply(run, folder, "-o", tmp_path / "out.txt", "--json"))
    assert (document["sentences"], document["tokens"]) == (15, sum(map(len, TEST)))
    assert (tmp_path / "out.txt").read_text() == apply(run, folder)
    assert [path.name for path in tmp_path.iterdir()] == ["out.txt"]


def test_the_label_column_may_stand_first(fit, run, folder, tmp_path):
    (tmp_path / "first.txt").write_text(column_text(TRAIN, columns=(2, 0, 1)))
    fit("--label-column", 0, data=tmp_path / "first.txt")
    expected = [row[3] for row in rows_of(apply(run, folder))]
    for columns in ((2, 0, 1), (0, 1)):
        (tmp_path / "in.txt").write_text(column_text(TEST, columns=columns))
        out = run("tag", "apply", tmp_path / "in.txt", "--model", tmp_path / "m.fw").out
        assert [row[-1] for row in rows_of(out)] == expected


def test_columns_can_be_chosen_anew(run, folder, tmp_path):
    (tmp_path / "in.txt").write_text(column_text(TEST, columns=(1, 2, 0)))
    rows = rows_of(apply(run, folder, "--columns", "2,0", data=tmp_path / "in.txt"))
    assert [row[-1] for row in rows] == [row[-1] for row in rows_of(apply(run, folder))]


def test_marginals_add_the_probability_of_the_label(run, folder):
    rows = rows_of(apply(run, folder, "--marginals"))
    proba = ChainCRF.load(folder / "m.fw").predict_proba([[t[:2] for t in sentence] for sentence in TEST])
    labels = read_tagger(folder / "m.fw").tagger.classes
    expected = [
        chances[labels.index(row[3])] for row, chances in zip(rows, np.concatenate(proba), strict=True)
    ]
    np.testing.assert_allclose([float(row[4]) for row in rows], expected, atol=1e-6)


def test_the_best_sequences_come_in_columns_with_their_probabilities(run, folder, tmp_path):
    (tmp_path / "in.txt").write_text("the DT\ncat NN\n\nAnn NNP\n")
    out = apply(run, folder, "--nbest", 8, "--separator", " ", data=tmp_path / "in.txt")
    best = ChainCRF.load(folder / "m.fw").predict_nbest([[("the", "DT"), ("cat", "NN")], [("Ann", "NNP")]], 8)
    chances = [line.partition("=")[2].split(",") for line in out.splitlines() if line.startswith("# nbest=")]
    for found, expected in zip(chances, best, strict=True):
        np.testing.assert_allclose([float(chance) for chance in found], [p for _, p in expected], rtol=1e-5)
    rows = rows_of(out)
    assert [row[2:] for row in rows[:2]] == [[labels[place] for labels, _ in best[0]] for place in (0, 1)]
    assert rows[2][2:] == [*(labels[0] for labels, _ in best[1]), "_", "_"]  # there are six labels


def test_with_a_single_best_sequence_it_is_the_prediction(run, folder):
    rows = rows_of(apply(run, folder, "--nbest", 1))
    assert [row[3] for row in rows] == [row[3] for row in rows_of(apply(run, folder))]


def test_spans_come_with_their_place_and_text(run, folder):
    found = [json.loads(line) for line in apply(run, folder, "--spans").splitlines()]
    predicted = ChainCRF.load(folder / "m.fw").predict([[t[:2] for t in sentence] for sentence in TEST])
    assert [(s["sentence"], s["type"], s["start"], s["end"]) for s in found] == [
        (number, *span) for number, labels in enumerate(predicted) for span in spans(labels)
    ]
    lines = (folder / "test.txt").read_text().splitlines()
    for span in found:
        words = [line.split()[0] for line in lines[span["line"] - 1 :][: span["end"] - span["start"]]]
        assert span["text"] == " ".join(words)


def test_the_confidence_of_a_span_is_the_probability_of_all_sequences_that_have_it(run, folder, tmp_path):
    words = [("Ann", "NNP"), (",", ","), ("the", "DT"), ("cat", "NN")]
    (tmp_path / "in.txt").write_text(column_text([words], columns=(0, 1)))
    found = [
        json.loads(line) for line in apply(run, folder, "--spans", data=tmp_path / "in.txt").splitlines()
    ]
    sequences = ChainCRF.load(folder / "m.fw").predict_nbest([words], 6**4)[0]
    assert len(sequences) == 6**4
    best = sequences[0][0]
    assert [(s["type"], s["start"], s["end"]) for s in found] == spans(best) == [("NP", 0, 1), ("NP", 2, 4)]
    for span in found:
        inside = slice(span["start"], span["end"])
        wanted = (span["type"], span["start"], span["end"])
        chances = [p for labels, p in sequences if labels[inside] == best[inside] and wanted in spans(labels)]
        assert span["confidence"] == pytest.approx(sum(chances), abs=1e-6)


def test_json_holds_the_predictions_when_no_file_is_written(run, folder):
    expected = ChainCRF.load(folder / "m.fw").predict([[t[:2] for t in sentence] for sentence in TEST])
    plain = json.loads(apply(run, folder, "--json", "--marginals"))["sentences"]
    assert [sentence["labels"] for sentence in plain] == expected
    assert all(0 < chance <= 1 for sentence in plain for chance in sentence["probabilities"])
    best = json.loads(apply(run, folder, "--json", "--nbest", 2))["sentences"]
    assert [sentence[0]["labels"] for sentence in best] == expected
    found = json.loads(apply(run, folder, "--json", "--spans"))["spans"]
    assert len(found) == len(apply(run, folder, "--spans").splitlines())


def test_comments_and_tabs_and_encodings_are_kept_and_remembered(fit, run, tmp_path):
    text = "# first\nné\tX\nb\tY\n\n# second\nb\tY\n"
    (tmp_path / "d.txt").write_bytes(text.encode("latin-1"))
    fit("--comment", "# ", "--encoding", "latin-1", data=tmp_path / "d.txt")
    quietly("tag", "apply", tmp_path / "d.txt", "--model", tmp_path / "m.fw", "-o", tmp_path / "o.txt")
    expected = "# first\nné\tX\tX\nb\tY\tY\n\n# second\nb\tY\tY\n\n"
    assert (tmp_path / "o.txt").read_bytes() == expected.encode("latin-1")


def test_a_file_with_too_few_columns_is_refused_naming_the_template(run, folder, tmp_path):
    (tmp_path / "in.txt").write_text("the\ncat\n")
    result = run("tag", "apply", tmp_path / "in.txt", "--model", folder / "m.fw", "-o", tmp_path / "out.txt")
    assert (result.code, result.out) == (2, "")
    assert "in.txt: template 'p[-2]' of the tagger asks for column 1" in result.err
    assert not (tmp_path / "out.txt").exists()


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        (["--marginals", "--spans"], "exclude each other"),
        (["--columns", "0"], "asks for 2 columns, but --columns 0 names 1"),
        (["-o", "no/such/folder/out.txt"], "does not exist. Create it first"),
        (["--nbest", "0"], "0 is not in the range"),
        (["--encoding", "klingon"], "'klingon' was given"),
    ],
)
def test_applying_refuses_what_it_cannot_do(run, folder, words, fault):
    result = run("tag", "apply", folder / "test.txt", "--model", folder / "m.fw", *words)
    assert (result.code, result.out) == (2, "")
    assert fault in result.err


def test_what_cannot_be_encoded_leaves_the_output_as_it_was(fit, run, tmp_path):
    (tmp_path / "d.txt").write_text("a 猫\n\na 猫\nb Y\n", encoding="utf-8")
    fit(data=tmp_path / "d.txt")
    (tmp_path / "out.txt").write_text("old")
    words = ("tag", "apply", tmp_path / "d.txt", "--model", tmp_path / "m.fw", "--columns", "0")
    (tmp_path / "d.txt").write_text("a\n")
    for output in (tmp_path / "out.txt", "-"):
        result = run(*words, "--encoding", "latin-1", "-o", output)
        assert result.code == 2
        assert "'猫' cannot be written in latin-1" in result.err
    assert (tmp_path / "out.txt").read_text() == "old"


# looking inside


def test_inspect_shows_the_strongest_features_and_transitions(run, folder):
    document = inspected(run, folder / "m.fw", "--top", 5)
    crf = ChainCRF.load(folder / "m.fw")
    assert document["labels"] == crf.classes_
    weights = [abs(entry["weight"]) for entry in document["features"]]
    assert weights == sorted(map(abs, crf.state_features_.values()), reverse=True)[:5]
    for entry in document["features"]:
        assert crf.state_features_[entry["attribute"], entry["label"]] == entry["weight"]
    ordered = sorted(crf.transition_features_.values())
    assert [entry["weight"] for entry in document["weakest_transitions"]] == ordered[:5]
    assert [entry["weight"] for entry in document["strongest_transitions"]] == ordered[::-1][:5]
    assert document["sizes"]["attributes"] == crf.num_attributes_
    assert document["provenance"]["data"][0]["name"] == "train.txt"


def test_inspect_can_be_asked_about_one_label(run, folder):
    document = inspected(run, folder / "m.fw", "--label", "I-VP")
    assert {entry["label"] for entry in document["features"]} == {"I-VP"}
    assert all("I-VP" in entry["labels"] for entry in document["strongest_transitions"])
    text = run("tag", "inspect", folder / "m.fw", "--label", "I-VP", "--top", 1).out
    assert "B-VP -> I-VP" in text
    assert "strongest features" in text
    result = run("tag", "inspect", folder / "m.fw", "--label", "I-VPP")
    assert result.code == 2
    assert "Did you mean 'I-VP'?" in result.err


# what is refused


@pytest.mark.parametrize(
    ("content", "words", "fault"),
    [
        (b"a X O\nb O\n", [], "line 2: 'b O' has 2 columns, but line 1 has 3"),
        (b"a O\n\xff O\n", [], "line 2: byte 0xff is not utf-8"),
        (b"\n\n", [], "no tokens"),
        (b"O\nO\n", [], "there is only one column, the labels"),
        (b"a\tO\nb\t\n", [], "line 2: column 1 is empty"),
        (b"a _\n", ["--label-unknown", "_"], "no token has a label other than '_'"),
        (b"a O\n\nb O\nc I-X\n", ["--scheme", "BIO"], "line 4: token 1 of sentence 1 has label 'I-X'"),
        (b"a X\nb Y\n", ["--forbid", "Y,"], "line 2: token 1 of sentence 0 has label 'Y'"),
        (b"a X\nb _\n", ["--forbid", "X,X", "--label-unknown", "_"], "bad.txt: no labels that are possible"),
        (
            b"a X\nb Y\n",
            ["--forbid", "Z,Y"],
            "names 'Z', which is none of the labels of the training data: 'X', 'Y'",
        ),
    ],
)
def test_bad_training_data_are_refused_with_the_line(refused, tmp_path, content, words, fault):
    (tmp_path / "bad.txt").write_bytes(content)
    assert fault in refused(*words, data=tmp_path / "bad.txt")


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        (["--c1", "1", "--scale", "1"], "--c1 and --scale say the same thing"),
        (["--c2", "1,2"], "2 different priors were given: choose one, or let --cross-validate N choose"),
        (["--c2", "a"], "'a' is not a number"),
        (["--c2", "-1"], "numbers with commas between them, from 0 on"),
        (["--variance", "0"], "variance must be greater than zero"),
        (["--algorithm", "ap", "--c2", "1"], "--algorithm ap has no penalty"),
        (["--algorithm", "l2sgd", "--c1", "1"], "has no L1 penalty"),
        (["--patience", "3"], "give --held-out FILE or --held-out-share"),
        (["--held-out", "a", "--held-out-share", "0.5"], "exclude each other"),
        (["--held-out", "none.txt"], "none.txt: there is no such file"),
        (["--held-out-share", "0.999"], "leaves none to learn from"),
        (["--cross-validate", "41"], "there are only 40 sentences: give fewer folds"),
        (["--class-weight", "O"], "neither LABEL=NUMBER"),
        (["--class-weight", "O=0"], "neither LABEL=NUMBER"),
        (["--class-weight", "I-NPP=2"], "Did you mean 'I-NP'?"),
        (["--forbid", "O"], "is not a pair of labels"),
        (["--columns", "0,2"], "--columns names column 2, which holds the labels"),
        (["--columns", "0,5"], "--columns is 5, but the file has 3 columns"),
        (["--columns", "0,0"], "names a column twice"),
        (["--label-column", "3"], "--label-column is 3, but the file has 3 columns"),
        (["--column-names", "a,b"], "give --templates FILE too"),
        (["--templates", "none.txt"], "none.txt: cannot be read"),
        (["--warm-start", "none.fw"], "none.fw: no such file"),
    ],
)
def test_options_that_cannot_be_followed_are_refused(refused, words, fault):
    assert fault in refused(*words)


def test_a_template_that_cannot_be_read_is_refused_with_its_line(refused, tmp_path):
    (tmp_path / "t.txt").write_text("w[0]\nlowr(w[0])\n")
    message = refused("--templates", tmp_path / "t.txt")
    assert "t.txt: template line 2: there is no function 'lowr'" in message
    (tmp_path / "t.txt").write_text("c7[0]\n")
    assert "template 'c7[0]' asks for column 7" in refused("--templates", tmp_path / "t.txt")


def test_a_model_that_could_not_be_written_is_refused_before_training(run, folder, tmp_path, monkeypatch):
    monkeypatch.setattr(tag_training, "train", None)
    for model, fault in ((tmp_path / "none" / "m.fw", "does not exist"), (tmp_path, "is a folder")):
        result = run("tag", "fit", folder / "train.txt", "--model", model)
        assert (result.code, result.out) == (2, "")
        assert fault in result.err


@pytest.mark.parametrize("verb", ["apply", "inspect"])
def test_a_file_that_holds_no_whole_tagger_is_refused(run, folder, tmp_path, monkeypatch, verb):
    whole = (folder / "m.fw").read_bytes()
    other, future = tmp_path / "other.fw", tmp_path / "future.fw"
    write_model(other, ModelFile(kind="weights"))
    with monkeypatch.context() as later:
        later.setattr("factorwise.io.models.files.FORMAT_VERSION", 9)
        write_model(future, ModelFile(kind="chain-crf"))
    for content, fault in (
        (whole[:-100], "not a readable model file"),
        (whole[:-5000] + bytes(64) + whole[-4936:], "damaged"),
        (future.read_bytes(), "written by a newer factorwise"),
        (b"", "not a readable model file"),
        (other.read_bytes(), "its kind is 'weights', but 'chain-crf' is needed"),
    ):
        model = tmp_path / "m.fw"
        model.write_bytes(content)
        words = ["tag", "inspect", model]
        if verb == "apply":
            words = ["tag", "apply", folder / "test.txt", "--model", model, "-o", tmp_path / "out.txt"]
        result = run(*words)
        assert (result.code, result.out) == (2, "")
        assert fault in result.err
        assert not (tmp_path / "out.txt").exists()


def test_a_tagger_of_attributes_made_in_code_is_not_applied_to_columns(run, folder, tmp_path):
    ChainCRF(max_iterations=1).fit([[["a"], ["b"]]], [["X", "Y"]]).save(tmp_path / "m.fw")
    result = run("tag", "apply", folder / "test.txt", "--model", tmp_path / "m.fw")
    assert result.code == 2
    assert "was not trained on columns" in result.err
    assert inspected(run, tmp_path / "m.fw")["labels"] == ["X", "Y"]


def test_a_tagger_saved_by_the_estimator_is_applied_to_the_first_columns(run, folder, tmp_path):
    estimator().save(tmp_path / "m.fw")
    out = run("tag", "apply", folder / "test.txt", "--model", tmp_path / "m.fw").out
    assert out == apply(run, folder)


def test_an_interrupt_leaves_no_model(run, folder, tmp_path, monkeypatch):
    def interrupted(*arguments, watch, **settings):
        raise KeyboardInterrupt

    monkeypatch.setattr(tag_training, "train", interrupted)
    result = run("tag", "fit", folder / "train.txt", "--model", tmp_path / "m.fw")
    assert (result.code, result.out) == (130, "")
    assert list(tmp_path.iterdir()) == []


def test_an_interrupt_while_writing_leaves_the_old_file(run, folder, tmp_path, monkeypatch):
    def interrupted(handle):
        raise KeyboardInterrupt

    (tmp_path / "out.txt").write_text("old")
    monkeypatch.setattr("factorwise.io.atomic.os.fsync", interrupted)
    result = run("tag", "apply", folder / "test.txt", "--model", folder / "m.fw", "-o", tmp_path / "out.txt")
    assert result.code == 130
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("out.txt", "old")]


def test_errors_are_json_when_asked_for(run, tmp_path):
    result = run("tag", "fit", tmp_path / "none.txt", "--model", tmp_path / "m.fw", "--json")
    assert result.code == 2
    assert json.loads(result.err)["error"]["type"] == "DataFileError"


def test_gazetteers_and_word_classes_are_kept_in_the_model(run, tmp_path):
    train = "we O\nsaw O\nRome B-CITY\n\nAnn O\nleft O\nOslo B-CITY\n\nBob O\nmet O\nAnn O\n"
    (tmp_path / "train.txt").write_text(train)
    (tmp_path / "city.txt").write_text("Rome\nOslo\nQuito\n")
    (tmp_path / "unlabelled.txt").write_text("we saw Rome\nwe saw Oslo\nAnn left us\nBob left us\n" * 3)
    (tmp_path / "new.txt").write_text("Eve\nsaw\nQuito\n")
    result = run("tag", "classes", tmp_path / "unlabelled.txt", "-o", tmp_path / "k.tsv", "--sizes", "3,4")
    assert (result.code, result.err) == (0, "")
    assert "8 words in 3 and 4 classes" in result.out
    lists = ("--gazetteer", tmp_path / "city.txt", "--word-classes", tmp_path / "k.tsv")
    assert run("tag", "fit", tmp_path / "train.txt", "--model", tmp_path / "m.fw", *lists).code == 0
    for name in ("city.txt", "k.tsv"):
        (tmp_path / name).unlink()
    applied = run("tag", "apply", tmp_path / "new.txt", "--model", tmp_path / "m.fw")
    assert applied.out.split()[-1] == "B-CITY"


def test_columns_of_numbers_are_values(run, tmp_path):
    (tmp_path / "train.txt").write_text("a 1.5 A\nb -2 B\n\nc 2 A\nd -1 B\n")
    (tmp_path / "new.txt").write_text("e -3\nf 3\n")
    numbers = ("--number-columns", "1", "--model", tmp_path / "m.fw")
    assert run("tag", "fit", tmp_path / "train.txt", *numbers).code == 0
    applied = run("tag", "apply", tmp_path / "new.txt", "--model", tmp_path / "m.fw")
    assert [line.split()[-1] for line in applied.out.splitlines() if line] == ["B", "A"]
    refused = run("tag", "fit", tmp_path / "train.txt", *numbers, "--label-column", "1")
    assert refused.code == 2
    assert "--number-columns names column 1" in refused.err


def test_a_plain_text_gets_spans_with_places_in_it(run, tmp_path):
    train = "we O\nsaw O\nRome B-CITY\n. O\n\nAnn O\nleft O\nRome B-CITY\n. O\n" * 3
    (tmp_path / "train.txt").write_text(train)
    (tmp_path / "plain.txt").write_text("Ann saw Rome.\nWe left  Rome, too.")
    assert run("tag", "fit", tmp_path / "train.txt", "--model", tmp_path / "m.fw").code == 0
    result = run("tag", "apply", tmp_path / "plain.txt", "--model", tmp_path / "m.fw", "--text")
    assert (result.code, result.err) == (0, "")
    spans = [json.loads(line) for line in result.out.splitlines()]
    assert [(span["start"], span["end"], span["type"], span["text"]) for span in spans] == [
        (8, 12, "CITY", "Rome"),
        (23, 27, "CITY", "Rome"),
    ]
    assert all(0.5 < span["confidence"] <= 1 for span in spans)


def test_a_plain_text_needs_a_tagger_of_words(run, folder, tmp_path):
    (tmp_path / "plain.txt").write_text("Ann sings.")
    result = run("tag", "apply", tmp_path / "plain.txt", "--model", folder / "m.fw", "--text")
    assert result.code == 2
    assert "train one on words alone" in result.err


def test_plain_sentences_are_not_taken_for_tokens(run, folder, tmp_path):
    (tmp_path / "plain.txt").write_text("Ann saw Rome today\n")
    result = run("tag", "apply", tmp_path / "plain.txt", "--model", folder / "m.fw")
    assert (result.code, result.out) == (2, "")
    assert "looks like plain sentences, 4 words a line" in result.err
    assert "Give --text for plain text" in result.err


def test_references_become_csl_json_bibtex_or_fields(run, tmp_path):
    references = tmp_path / "references.txt"
    references.write_text("Brand, R. (1990). Keeping bees. Journal of Hives, 12(3), 4-9.\n")
    [item] = json.loads(run("tag", "cite", references).out)
    assert (item["id"], item["type"], item["page"]) == ("brand1990keeping", "article-journal", "4-9")
    result = run("tag", "cite", references, "-o", tmp_path / "out.bib")
    assert result.out == "out.bib  (1 references, 6 fields, written)\n"
    assert (
        (tmp_path / "out.bib").read_text().startswith("@article{brand1990keeping,\n  author = {Brand, R.},\n")
    )
    result = run("tag", "cite", references, "-o", tmp_path / "out.pdf")
    assert (result.code, result.out) == (2, "")
    assert "Give a name that ends in .json, .bib or .jsonl, or the format with --format." in result.err
    line = json.loads(run("tag", "cite", references, "--format", "fields").out)
    assert [field["name"] for field in line["fields"]][:3] == ["author", "date", "title"]
    result = run("cite", references, "-o", tmp_path / "works.csv")
    assert result.out.startswith("works.csv  (")
    assert "1 references, 1 works, 1 people" in result.out
    header, row = (tmp_path / "works.csv").read_text().splitlines()
    assert header.startswith('"reference","work","authors","people","type","title"')
    assert row.startswith('1,1,"Brand, R.","1","article-journal","Keeping bees"')
    assert json.loads(run("cite", references, "-o", tmp_path / "works.csv", "--json").out)["works"] == 1
    references.write_text(" \n")
    assert "has no references" in run("cite", references, "-o", tmp_path / "works.csv").err
    assert run("tag", "cite", references).err == (
        f"error: {references}: has no references. Give a text with one reference per line.\n"
    )
