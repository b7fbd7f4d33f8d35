"""Constraints on whole sequences: what they measure, how they are written down, learned, kept and applied."""

import pickle
from itertools import pairwise

import numpy as np
import pytest

from factorwise.apps.tagging import ChainCRF
from factorwise.apps.tagging.cross_fitting import cross_fitted
from factorwise.apps.tagging.features.encoders import as_sentences
from factorwise.apps.tagging.global_constraints import GENERATED, KINDS, ConstraintSet, GlobalConstraint
from factorwise.apps.tagging.global_tagger import GlobalTagger
from factorwise.apps.tagging.label_counts import LabelCounts
from factorwise.apps.tagging.model_file import read_tagger
from factorwise.apps.tagging.training import EncodedSentences, train
from factorwise.errors import DataFileError, ImpossibleError, InvalidArgumentError, ModelFileError
from factorwise.inference.message_passing.projection import TiedMeasurement
from factorwise.io.models.files import read_model, write_model
from factorwise.learning.chains.structure import Supervision

LABELS = ["O", "B-name", "I-name", "B-year", "I-year", "I-note"]


def measured(row, path, labels=LABELS):
    codes = np.array([labels.index(label) for label in path.split()])
    return float(TiedMeasurement.rows(len(labels), [row]).of_paths(codes, np.array([0, len(codes)]))[0, 0])


def paid(kind, names, path, labels=LABELS):
    constraint = GlobalConstraint(kind, names)
    return float(
        constraint.loss.value(np.array([measured(constraint.row(LabelCounts(labels)), path, labels)]))[0]
    )


@pytest.mark.parametrize(
    ("name", "path", "stretches", "tokens"),
    [
        ("name", "B-name I-name O B-name", 2, 3),
        ("name", "I-name I-name O I-name", 2, 3),
        ("name", "B-name B-name I-year I-name", 3, 3),
        ("note", "I-note I-note O I-note", 2, 3),
        ("I-year", "I-year I-year B-year I-year", 2, 3),
        ("year", "O O", 0, 0),
    ],
)
def test_stretches_and_tokens_are_counted_with_or_without_a_mark(name, path, stretches, tokens):
    counts = LabelCounts(LABELS)
    assert measured(counts.stretches(name), path) == stretches
    assert measured(counts.tokens(name), path) == tokens


def test_labels_without_spans_and_nested_labels_are_counted():
    assert LabelCounts(["NN", "VB", "O", "CC/IN"]).types == ("CC/IN", "NN", "VB")
    assert measured(LabelCounts(["NN", "VB"]).stretches("NN"), "NN NN VB NN", ["NN", "VB"]) == 2
    nested = ["B-a/B-p", "I-a/B-p", "I-a/I-p", "I-a", "B-v/B-p", "O"]
    counts = LabelCounts(nested)
    assert counts.types == ("a", "p", "v")
    path = "B-a/B-p I-a/I-p I-a I-a/B-p O B-v/B-p"
    found = [measured(counts.stretches(name), path, nested) for name in counts.types]
    assert found == [1, 3, 1]


@pytest.mark.parametrize(
    ("kind", "names", "good", "bad"),
    [
        ("one-stretch", ("name",), "B-name I-name O", "B-name O B-name"),
        ("at-most-once", ("name",), "B-name O", "B-name I-name"),
        ("at-least-once", ("year",), "O B-year", "O O"),
        ("before", ("name", "year"), "B-name O B-year", "B-year O B-name"),
        ("before", ("name", "year"), "O O B-name", "B-year B-name O"),
        ("before", ("name", "year"), "B-year O O", "B-year O O B-name"),
        ("as-many", ("name", "year"), "B-name B-year B-name B-year", "B-name O"),
        ("as-many", ("name", "year"), "O", "B-year"),
        ("needs", ("name", "year"), "B-name B-year", "B-name O"),
        ("needs", ("name", "year"), "B-year", "B-name B-name B-year"),
        ("not-both", ("name", "note"), "I-note I-note", "I-note B-name"),
        ("one-of", ("name", "note"), "O I-note", "O B-year"),
        ("next", ("name", "year"), "B-name I-name B-year", "B-name O B-year"),
        ("next", ("year", "note"), "B-year I-note O", "I-note B-year O"),
    ],
)
def test_what_keeps_a_constraint_pays_nothing_and_what_breaks_it_pays(kind, names, good, bad):
    assert paid(kind, names, good) == 0.0
    assert paid(kind, names, bad) > 0.05


def test_every_kind_is_generated_for_all_names():
    found = ConstraintSet.generated(LABELS)
    names = 3
    assert {each.kind for each in found.constraints} == set(GENERATED) <= set(KINDS)
    assert len(found.constraints) == 2 * names + 3 * 6 + 2 * 3
    assert len(set(map(str, found.constraints))) == len(found.constraints)
    assert found.measurement(LABELS).count == len(found.losses) == len(found.constraints)


TOML = """
generate = ["one-stretch"]
[[constraint]]
kind = "before"
labels = ["name", "year"]
weight = 2
[[constraint]]
kind = "one-stretch"
label = "note"
"""


def test_constraints_are_read_from_toml():
    found = ConstraintSet.parse(TOML, LABELS)
    assert [str(each) for each in found.constraints] == [
        "before name year",
        "one-stretch note",
        "one-stretch name",
        "one-stretch year",
    ]
    assert found.weights.tolist() == [2.0, 0.0, 0.0, 0.0]
    assert not found.learned
    again = ConstraintSet.from_json(found.to_json())
    assert again.constraints == found.constraints


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("kind = ", "not TOML"),
        ("", "there is no constraint"),
        ("constraint = 3", "a constraint begins with"),
        ("constraint = [3]", r"constraint 1: begin it with \[\[constraint\]\]"),
        ("generate = ['one-strech']", "generate: there is no kind.*Did you mean 'one-stretch'"),
        ("genrate = []", "there is no key 'genrate'. Did you mean 'generate'"),
        ("[[constraint]]\nkind = 'before'\nlabels = ['name']", "constraint 1: .* about 2 labels"),
        ("[[constraint]]\nkind = 'before'\nlabels = ['name', 'name']", "two different ones"),
        ("[[constraint]]\nkind = 'before'\nlabels = ['name', 'yaer']", "'yaer', .* Did you mean 'year'"),
        ("[[constraint]]\nkind = 'one-stretch'\nlabels = ['zzzz']", "There are: name, note, year"),
        ("[[constraint]]\nkind = 'one-stretch'", "constraint 1: it needs a kind and its labels"),
        (
            "[[constraint]]\nkind = 'one-stretch'\nlabel = 'name'\nweight = -1",
            "weight must be .*zero or more",
        ),
        ("[[constraint]]\nkind = 'one-stretch'\nlabel = 'name'\nweight = 'x'", "weight must be"),
        ("[[constraint]]\nkind = 'one-stretch'\nlabel = 'name'\nwieght = 1", "Did you mean 'weight'"),
    ],
)
def test_what_cannot_be_read_is_told_with_the_remedy(text, fault):
    with pytest.raises(DataFileError, match=f"(?s){fault}"):
        ConstraintSet.parse(text, LABELS)


def citations(count, seed):
    """Sentences with exactly one year: what may be one or not is one if there is no better."""
    random = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(count):
        words = [f"w{random.integers(4)}" for _ in range(6)]
        labels = ["O"] * 6
        sure, perhaps = random.choice(6, 2, replace=False)
        words[perhaps] = "1066"
        if random.random() < 0.5:
            words[sure], labels[sure] = "1999", "B-year"
        else:
            labels[perhaps] = "B-year"
        X.append([[f"w={word}"] for word in words])
        y.append(labels)
    return X, y


@pytest.fixture(scope="module")
def taggers():
    X, y = citations(80, 0)
    dev = citations(60, 1)
    return ChainCRF().fit(X, y), ChainCRF(global_constraints="auto").fit(X, y, *dev)


def years(predicted):
    return [labels.count("B-year") for labels in predicted]


def test_learned_constraints_mend_what_the_chain_cannot_see(taggers):
    plain, constrained = taggers
    X, y = citations(60, 2)
    assert set(years(plain.predict(X))) > {1}
    assert years(constrained.predict(X)).count(1) > years(plain.predict(X)).count(1) + 5
    assert constrained.span_scorer(X, y) > plain.span_scorer(X, y) + 0.05
    kept = constrained.constraints_.constraints
    assert {each.kind for each in kept} == {"one-stretch", "at-least-once"}
    assert all(each.weight > 0 for each in kept)
    assert plain.constraints_.constraints == ()
    # probabilities are those of the shifted chain: a year is expected about once
    expected = [rows[:, constrained.classes_.index("B-year")].sum() for rows in constrained.predict_proba(X)]
    before = [rows[:, plain.classes_.index("B-year")].sum() for rows in plain.predict_proba(X)]
    assert np.abs(np.array(expected) - 1.0).mean() < np.abs(np.array(before) - 1.0).mean()
    assert constrained.log_likelihood(X, y) == pytest.approx(plain.log_likelihood(X, y), rel=1e-6)


def test_a_model_file_keeps_the_constraints_and_older_files_have_none(taggers, tmp_path):
    plain, constrained = taggers
    X, _ = citations(30, 3)
    constrained.save(tmp_path / "m.fw")
    loaded = ChainCRF.load(tmp_path / "m.fw")
    assert isinstance(loaded.tagger_, GlobalTagger)
    assert loaded.constraints_.constraints == constrained.constraints_.constraints
    assert loaded.predict(X) == constrained.predict(X)
    assert pickle.loads(pickle.dumps(loaded)).predict(X) == constrained.predict(X)
    plain.save(tmp_path / "old.fw")
    model = read_model(tmp_path / "old.fw", "chain-crf")
    del model.metadata["constraints"]
    write_model(tmp_path / "old.fw", model)
    assert not isinstance(read_tagger(tmp_path / "old.fw").tagger, GlobalTagger)
    model.metadata["constraints"] = [{"kind": "one-stretch", "labels": ["year"], "weight": None}]
    write_model(tmp_path / "bad.fw", model)
    with pytest.raises(ModelFileError, match="constraints have no weights"):
        read_tagger(tmp_path / "bad.fw")
    model.metadata["constraints"] = [{"kind": "one-stretch", "labels": ["month"], "weight": 1.0}]
    write_model(tmp_path / "bad.fw", model)
    with pytest.raises(ModelFileError, match="its parts do not make up a tagger"):
        read_tagger(tmp_path / "bad.fw")


def test_weights_that_are_given_need_no_sentences_to_learn_from():
    X, y = citations(40, 0)
    dear = ConstraintSet((GlobalConstraint("one-stretch", ("year",), 20.0),))
    found = ChainCRF(global_constraints=dear).fit(X, y)
    assert found.constraints_.constraints == dear.constraints
    assert max(years(found.predict(citations(40, 2)[0]))) == 1
    none = ConstraintSet((GlobalConstraint("one-stretch", ("year",), 0.0),))
    assert ChainCRF(global_constraints=none).fit(X, y).constraints_.constraints == ()


def test_without_other_sentences_a_part_of_the_training_data_is_held_out():
    X, y = citations(120, 0)
    text = "generate = ['one-stretch', 'at-least-once']"
    found = ChainCRF(global_constraints=text, constraint_folds=0, validation_fraction=0.4).fit(X, y)
    assert found.constraints_.constraints
    allowed = [[None] * 6 for _ in X[:1]]
    allowed[0][0] = "B-year"
    assert found.predict(X[:1], allowed=allowed)[0][0] == "B-year"


def test_without_other_sentences_weights_are_learned_from_parts_scored_by_chains_that_have_not_seen_them():
    X, y = citations(120, 0)
    text = "generate = ['one-stretch', 'at-least-once']"
    plain, found = (ChainCRF(global_constraints=given).fit(X, y) for given in (None, text))
    assert {each.kind for each in found.constraints_.constraints} == {"one-stretch", "at-least-once"}
    assert (found.tagger_.weights == plain.tagger_.weights).all()  # no sentence was given up
    others, _ = citations(60, 2)
    assert years(found.predict(others)).count(1) > years(plain.predict(others)).count(1)


def cross_fitted_citations(folds, y=None):
    X, labels = citations(20, 0)
    crf = ChainCRF().fit(X, labels)
    rows, start = crf.encoder_.encode(as_sentences(X))
    truth = np.array([crf.classes_.index(label) for each in labels for label in each], dtype=np.int32)
    sentences = EncodedSentences(rows, start, Supervision(truth if y is None else np.full_like(truth, y)))
    return sentences, cross_fitted(sentences, crf.classes_, crf.training_config(), folds=folds)


def test_every_sentence_is_in_one_part_and_its_chain_is_that_of_the_others():
    sentences, parts = cross_fitted_citations(4)
    assert [len(part.start) - 1 for part in parts] == [5, 5, 5, 5]
    assert sorted(np.concatenate([part.truth for part in parts])) == sorted(sentences.supervision.truth)
    assert len({part.tagger.weights.tobytes() for part in parts}) == 4
    part = parts[0]
    apart = {tuple(part.rows.indices[a * 6 : b * 6]) for a, b in pairwise(part.start // 6)}
    every = [tuple(sentences.rows.indices[a * 6 : b * 6]) for a, b in pairwise(sentences.start // 6)]
    rest = sentences.taken(np.array([each not in apart for each in every]))
    again = train(rest, part.tagger.classes, ChainCRF().training_config()).tagger
    np.testing.assert_allclose(again.weights, part.tagger.weights, atol=1e-6)


def test_parts_that_cannot_be_made_are_refused():
    with pytest.raises(InvalidArgumentError, match="folds must be at least 2"):
        cross_fitted_citations(1)
    with pytest.raises(InvalidArgumentError, match=r"21 parts .* only 20 sentences: give fewer folds"):
        cross_fitted_citations(21)
    with pytest.raises(InvalidArgumentError, match="no sentence has labels for all its tokens"):
        cross_fitted_citations(2, y=-1)
    with pytest.raises(InvalidArgumentError, match="constraint_folds must be 0, or at least 2"):
        ChainCRF(constraint_folds=1).fit(*citations(5, 0))


def test_what_labels_make_impossible_is_named(taggers):
    _, constrained = taggers
    X, _ = citations(2, 4)
    tagger = ChainCRF(
        forbidden=[("B-year", "O"), ("O", "B-year")], global_constraints=constrained.constraints_
    )
    labels = [["O"] * 6, ["B-year"] * 6]
    tagger.fit(X, labels)
    with pytest.raises(ImpossibleError, match="no labels of sentence 1 satisfy the constraints"):
        tagger.predict(X, allowed=[[None] * 6, ["O", "B-year", None, None, None, None]])


def test_texts_may_be_in_files(tmp_path, monkeypatch):
    X, y = citations(20, 0)
    text = 'generate = ["one-stretch"]\n'
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rules.toml").write_text(text)
    (tmp_path / "t.tpl").write_text("w[0]\n")
    by_text = ChainCRF(global_constraints=text, constraint_folds=2).fit(X, y)
    by_file = ChainCRF(global_constraints=tmp_path / "rules.toml", constraint_folds=2).fit(X, y)
    assert by_file.predict(X) == by_text.predict(X)
    words = [[f"w{k}", f"x{k}"] for k in range(3)]
    labels = [["a", "b"]] * 3
    found = ChainCRF(templates=tmp_path / "t.tpl").fit(words, labels).state_features_
    assert found == ChainCRF(templates="w[0]").fit(words, labels).state_features_
    for setting in ({"global_constraints": "rules.toml"}, {"templates": "t.tpl"}):
        with pytest.raises(InvalidArgumentError, match=r"is the name of a file.*give pathlib\.Path\("):
            ChainCRF(**setting).fit([[{"a": 1.0}]], [["b"]])
    with pytest.raises(DataFileError, match=r"none\.tpl cannot be read: No such file"):
        ChainCRF(templates=tmp_path / "none.tpl").fit(words, labels)


def test_other_constraints_are_refused():
    X, y = citations(5, 0)
    with pytest.raises(
        InvalidArgumentError, match="must be a ConstraintSet, text in TOML, a Path of a file, or 'auto'"
    ):
        ChainCRF(global_constraints=3).fit(X, y)
    with pytest.raises(InvalidArgumentError, match="need a chain of order 1"):
        ChainCRF(global_constraints="auto", order=2).fit(X, y)
    with pytest.raises(InvalidArgumentError, match="Did you mean 'before'"):
        GlobalConstraint("befor", ("a", "b"))
