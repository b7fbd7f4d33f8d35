"""What a trained chain answers, against the sum over all paths: both orders, with and without constraints."""

import pickle
import re
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise

import numpy as np
import pytest

from factorwise import ChainCRF
from factorwise.errors import ImpossibleError, InvalidArgumentError
from factorwise.kernels.compile.threads import Team
from factorwise.metrics.sequence import spans
from tagging_cases import AllPaths, agrees_with, task, with_weights

SINGLE = {"rtol": 3e-5, "atol": 3e-6}  # scores are sums in single precision
PAIRS = (("O", "O"), (None, "I-X"), ("B-X", None), ("I-X", "B-X"))
GRAMMAR = {
    "BIO": r"(O|B-X(I-X)*)*",
    "BIOES": r"(O|S-X|B-X(I-X)*E-X)*",
}


@dataclass(frozen=True)
class Kind:
    """A sort of model: its order and what it forbids."""

    name: str
    order: int = 1
    scheme: str | None = None
    forbidden: tuple | None = None

    def possible(self, path):
        if self.scheme is not None and not re.fullmatch(GRAMMAR[self.scheme], "".join(path)):
            return False
        edges = [None, *path, None]
        return self.forbidden is None or not set(pairwise(edges)) & set(self.forbidden)


KINDS = [
    Kind("free"),
    Kind("free, order 2", order=2),
    Kind("BIO", scheme="BIO"),
    Kind("BIO, order 2", order=2, scheme="BIO"),
    Kind("BIOES", scheme="BIOES"),
    Kind("pairs", forbidden=PAIRS),
    Kind("pairs, order 2", order=2, forbidden=PAIRS),
]
every_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)


def as_bioes(labels):
    """Write valid BIO labels as BIOES."""
    made = []
    for label, following in zip(labels, [*labels[1:], "O"], strict=True):
        last = not following.startswith("I")
        made.append({"B-X": "S-X", "I-X": "E-X"}.get(label, label) if last else label)
    return made


@cache
def trained(kind):
    X, y = task(sentences=12)
    if kind.scheme == "BIOES":
        y = [as_bioes(labels) for labels in y]
    if kind.forbidden is not None:
        kept = [kind.possible(labels) for labels in y]
        X = [tokens for tokens, good in zip(X, kept, strict=True) if good]
        y = [labels for labels, good in zip(y, kept, strict=True) if good]
    return ChainCRF(
        order=kind.order,
        scheme=kind.scheme,
        forbidden=kind.forbidden,
        max_iterations=1,
        all_possible_states=True,
        c1=0.0,  # keeps all weights
        n_jobs=1,
    ).fit(X, y)


def model_and_sentences(kind, seed):
    """A model with random weights, and sentences for which there are not too many paths."""
    model = with_weights(trained(kind), seed)
    X = [tokens[:4] for tokens in task(seed, sentences=6)[0]]
    if kind.forbidden is not None:
        X = [tokens for tokens in X if len(tokens) > 1]  # a single token has no label that may be both edges
    return model, X


def enumerated(kind, model, X):
    return [AllPaths.of(model, tokens, kind.possible) for tokens in X]


@every_kind
def test_the_best_path_is_the_best_of_all(kind, seed):
    model, X = model_and_sentences(kind, seed)
    assert model.predict(X) == [paths.ranked()[0][0] for paths in enumerated(kind, model, X)]


@every_kind
def test_marginals_and_log_partition_are_sums_over_all_paths(kind, seed):
    model, X = model_and_sentences(kind, seed)
    every = enumerated(kind, model, X)
    for found, paths in zip(model.predict_proba(X), every, strict=True):
        np.testing.assert_allclose(found, paths.marginals(), **SINGLE)
    with Team(1) as team:
        _, log_partition = model.tagger_.marginals(*model.encoder_.encode(X), team)
    np.testing.assert_allclose(log_partition, [paths.log_partition for paths in every], **SINGLE)


@every_kind
def test_the_k_best_are_the_first_of_all_paths_ranked(kind, seed):
    model, X = model_and_sentences(kind, seed)
    for found, paths in zip(model.predict_nbest(X, 7), enumerated(kind, model, X), strict=True):
        wanted = paths.ranked()[:7]
        assert [labels for labels, _ in found] == [labels for labels, _ in wanted]
        np.testing.assert_allclose([p for _, p in found], [p for _, p in wanted], **SINGLE)


@every_kind
def test_all_paths_together_have_probability_one(kind, seed):
    model, X = model_and_sentences(kind, seed)
    (found,) = model.predict_nbest(X[:1], 10_000)
    assert len(found) == len(enumerated(kind, model, X[:1])[0].paths)
    assert sum(probability for _, probability in found) == pytest.approx(1.0)


@every_kind
def test_the_log_likelihood_of_whole_partial_and_ambiguous_labels_is_a_sum_over_paths(kind, seed):
    model, X = model_and_sentences(kind, seed)
    paths = enumerated(kind, model, X)
    whole = [p.paths[len(p.paths) // 2] for p in paths]
    partial = [[None if place % 2 else label for place, label in enumerate(y)] for y in whole]
    ambiguous = [[{label, "O"} if place == 0 else label for place, label in enumerate(y)] for y in whole]
    for y in (whole, partial, ambiguous):
        wanted = sum(np.log(p.within(agrees_with(known))) for p, known in zip(paths, y, strict=True))
        assert model.log_likelihood(X, [list(known) for known in y]) == pytest.approx(wanted, rel=1e-5)


@every_kind
def test_forced_decoding_and_its_marginals_condition_on_what_is_allowed(kind, seed):
    model, X = model_and_sentences(kind, seed)
    every = enumerated(kind, model, X)
    allowed = [
        [label if place == 1 else None for place, label in enumerate(p.ranked()[-1][0])] for p in every
    ]
    some = [
        AllPaths.of(model, tokens, lambda path, known=known: kind.possible(path) and agrees_with(known)(path))
        for tokens, known in zip(X, allowed, strict=True)
    ]
    assert model.predict(X, allowed=allowed) == [paths.ranked()[0][0] for paths in some]
    for found, paths in zip(model.predict_proba(X, allowed=allowed), some, strict=True):
        np.testing.assert_allclose(found, paths.marginals(), **SINGLE)


@every_kind
def test_the_confidence_of_a_span_is_the_probability_of_paths_that_have_it_with_these_labels(kind, seed):
    model, X = model_and_sentences(kind, seed)
    every = list(zip(model.predict(X), model.predict_spans(X), enumerated(kind, model, X), strict=True))
    assert any(found for _, found, _ in every)
    for labels, found, paths in every:
        assert [(span.kind, span.start, span.end) for span in found] == spans(labels)
        for span in found:
            key, inside = tuple(span[:3]), slice(span.start, span.end)

            def has_it(path, key=key, inside=inside, labels=labels):
                return list(path[inside]) == labels[inside] and key in spans(path)

            assert span.confidence == pytest.approx(paths.within(has_it), rel=3e-5)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.scheme], ids=lambda kind: kind.name)
def test_with_a_scheme_every_prediction_is_valid_whatever_the_weights(kind):
    sentences = [tokens * 3 for tokens in task(5, sentences=40)[0]]
    for seed in range(5):
        model = with_weights(trained(kind), seed, scale=5.0)
        for labels in model.predict(sentences):
            assert re.fullmatch(GRAMMAR[kind.scheme], "".join(labels)), labels
    free = with_weights(trained(KINDS[0]), 0, scale=5.0).predict(sentences)
    assert not all(re.fullmatch(GRAMMAR["BIO"], "".join(labels)) for labels in free)  # it makes a difference


@pytest.mark.parametrize("order", [1, 2])
def test_scores_too_large_for_single_precision_are_computed_in_logs(order):
    model = with_weights(trained(Kind("free" if order == 1 else "free, order 2", order)), 1, scale=60.0)
    X = [tokens[:4] for tokens in task(9, sentences=8)[0]]
    paths = [AllPaths.of(model, tokens) for tokens in X]
    for found, wanted in zip(model.predict_proba(X), paths, strict=True):
        np.testing.assert_allclose(found, wanted.marginals(), rtol=2e-4, atol=1e-6)
    worst = [list(p.ranked()[-1][0]) for p in paths]
    wanted = sum(p.scores.min() - p.log_partition for p in paths)
    assert model.log_likelihood(X, worst) == pytest.approx(wanted, rel=1e-5)


def test_answers_do_not_depend_on_the_number_of_threads():
    model = with_weights(trained(KINDS[2]), 4)
    X = task(5, sentences=50)[0]
    rows, start = model.encoder_.encode(X)
    found = []
    for threads in (1, 2, 3):
        with Team(threads) as team:
            probability, log_partition = model.tagger_.marginals(rows, start, team)
            found.append((model.tagger_.decode(rows, start, team), probability, log_partition))
    for other in found[1:]:
        for one, two in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(one, two)


def test_the_probability_of_one_path():
    model = with_weights(trained(KINDS[1]), 3)
    tokens = task(5, sentences=3)[0][0][:4]
    paths = AllPaths.of(model, tokens)
    rows, start = model.encoder_.encode([tokens])
    (node,) = model.tagger_.node_scores(rows, start)
    assert model.tagger_.log_partition_of(node) == pytest.approx(paths.log_partition, rel=1e-5)
    path = [model.classes_.index(label) for label in paths.paths[5]]
    assert model.tagger_.log_probability(node, path) == pytest.approx(np.log(paths.probability[5]), rel=1e-5)


def test_labels_that_the_constraints_forbid_have_probability_zero():
    model = trained(KINDS[2])
    tokens = task()[0][0][:1]
    assert model.log_likelihood([tokens], [["I-X"]]) == -np.inf
    assert model.log_likelihood([tokens], [[{"I-X", "O"}]]) > -np.inf


@pytest.mark.parametrize("kind", [KINDS[2], KINDS[3]], ids=["order 1", "order 2"])
@pytest.mark.parametrize("method", ["predict", "predict_proba"])
def test_asking_for_labels_that_are_impossible_names_the_sentence(kind, method):
    X = [[{"w": "a"}] * 3] * 3
    allowed = [[None] * 3, [None, "O", "I-X"], [None] * 3]
    with pytest.raises(ImpossibleError, match=r"sentence 1 satisfy the constraints: allow more"):
        getattr(trained(kind), method)(X, allowed=allowed)


def test_the_number_of_best_paths_must_be_positive():
    with pytest.raises(InvalidArgumentError, match=r"k must be at least 1"):
        trained(KINDS[0]).predict_nbest(task()[0][:1], 0)


def test_a_pickled_tagger_leaves_behind_what_can_be_computed_again():
    model = trained(KINDS[0])
    before = len(pickle.dumps(model.tagger_))
    wanted = model.predict(task(5)[0])
    assert len(pickle.dumps(model.tagger_)) == before
    model.tagger_ = pickle.loads(pickle.dumps(model.tagger_))
    assert model.predict(task(5)[0]) == wanted


def test_probabilities_of_a_tagger_that_is_all_but_certain_are_not_above_one():
    """Sums in single precision are, by some last digits."""
    random = np.random.default_rng(0)
    codes = random.integers(0, 50, (100, 6))
    X = [[[f"w{code}"] for code in sentence] for sentence in codes]
    crf = ChainCRF(c2=0.01).fit(X, [[f"L{code % 5}" for code in sentence] for sentence in codes])
    rows, start = crf.encoder_.encode(X)
    for scale in (1, 3, 10):
        tagger = replace(crf.tagger_, weights=scale * crf.tagger_.weights)
        found, _ = tagger.marginals(rows, start, Team(1))
        assert found.max() <= 1.0
        np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-14)
