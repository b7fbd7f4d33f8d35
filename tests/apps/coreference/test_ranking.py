"""The ranker of antecedents against its plain definition, and what is made of its scores."""

from itertools import product

import numpy as np
import pytest

from coreference_cases import discourse
from factorwise.apps.coreference.pair_features import pair_table
from factorwise.apps.coreference.ranking import AntecedentRanker, Antecedents, train_ranker
from factorwise.apps.coreference.ranking_features import HASHED, rank_discourse
from factorwise.apps.coreference.resolution import settle
from factorwise.kernels.text.antecedents import (
    FALSE_LINK,
    FALSE_OPENING,
    GROUPS,
    WRONG_LINK,
    learn_antecedents,
)
from reference import antecedents as reference

TEXTS = [
    "< Ann >PER/NAM/a saw < Bob >PER/NAM/b . < She >PER/PRO/a likes < him >PER/PRO/b .",
    "< Bob >PER/NAM/b left < Rome >LOC/NAM/r . < He >PER/PRO/b likes < the city >LOC/NOM/r .",
]
RNG = np.random.default_rng(5)


def random_ranker(table):
    ranker = AntecedentRanker.untrained(table.n_features, frozenset({"ann", "city"}))
    return ranker._replace(plain=RNG.normal(size=ranker.plain.shape), hashed=RNG.normal(size=HASHED))


def random_antecedents(n):
    scores = np.where(np.tri(n, dtype=bool), RNG.normal(size=(n, n)), -np.inf)
    return Antecedents(scores)


@pytest.mark.parametrize("scope", ["document", "topic"])
def test_scores_are_sums_of_the_weights_of_what_holds(scope):
    given = discourse(*TEXTS[: 1 if scope == "document" else 2], scope=scope)
    table = pair_table(given)
    ranker = random_ranker(table)
    ranked = rank_discourse(given, table, ranker.words)
    expected = np.full((len(ranked.group),) * 2, -np.inf)
    for mention, row in enumerate(expected):
        reference.score_antecedents(*ranked, ranker.plain, ranker.hashed, mention, row)
    np.testing.assert_allclose(ranker.rank(given, table).scores, expected, rtol=1e-9)


def test_a_visit_to_a_discourse_follows_the_gradient():
    given = discourse(*TEXTS, scope="topic")
    table = pair_table(given)
    ranker = random_ranker(table)
    ranked = rank_discourse(given, table, ranker.words)
    truth = given.truth().astype(np.int64)
    found = []
    for learn in (learn_antecedents, reference.learn_antecedents):
        weights = ranker.plain.copy(), ranker.hashed.copy()
        squares = np.zeros_like(weights[0]), np.zeros_like(weights[1])
        likelihood = learn(*ranked, truth, *weights, *squares, 0.5, np.zeros(len(truth)))
        found.append((likelihood, *weights, *squares))
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9)
    assert found[0][0] < 0
    assert (found[0][1] != ranker.plain).any()


def test_the_gradient_is_that_of_the_likelihood():
    """After a small step along it the likelihood is higher."""
    given = discourse(TEXTS[0])
    ranked = rank_discourse(given, pair_table(given), ())
    truth = given.truth().astype(np.int64)
    ranker = AntecedentRanker.untrained(pair_table(given).n_features)
    squares = np.zeros_like(ranker.plain), np.zeros_like(ranker.hashed)
    scores = np.zeros(len(truth))
    rate = 1e-6
    before = learn_antecedents(*ranked, truth, *ranker[1:], *squares, rate, scores)
    again = np.zeros_like(ranker.plain), np.zeros_like(ranker.hashed)
    after = learn_antecedents(*ranked, truth, *ranker[1:], *again, rate, scores)
    assert after > before


def test_costs_and_groups_are_those_of_the_definition():
    assert reference.GROUPS == GROUPS
    assert list(reference.COSTS.values()) == [FALSE_LINK, FALSE_OPENING, WRONG_LINK]


def test_the_chance_of_being_together_is_that_of_all_choices_of_antecedents():
    antecedents = random_antecedents(5)
    shares = antecedents.probabilities()
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    expected = np.zeros((5, 5))
    for chosen in product(*(range(i + 1) for i in range(5))):
        entity = []
        for mention, antecedent in enumerate(chosen):
            entity.append(mention if antecedent == mention else entity[antecedent])
        weight = np.prod([shares[i, j] for i, j in enumerate(chosen)])
        expected += weight * (np.array(entity)[:, None] == entity)
    np.testing.assert_allclose(antecedents.together(), expected, atol=1e-12)


def test_features_say_where_odds_and_probabilities_lie():
    antecedents = random_antecedents(6)
    features = antecedents.pair_features()
    later, earlier = np.tril_indices(6, -1)
    bins = np.array([truths for name, truths in features.items() if "log-odds" in name])
    assert (bins.sum(axis=0) == 1).all()
    best = antecedents.scores.argmax(axis=1)
    np.testing.assert_array_equal(features["ranked: best of all"], best[later] == earlier)
    assert features["ranked: first"].sum() == 5
    assert features["ranked: second"].sum() == 4
    shares = antecedents.probabilities()[later, earlier]
    np.testing.assert_array_equal(features["ranked: probability above 0.9"], shares > 0.9)
    surely = antecedents.opens()["surely"]
    np.testing.assert_array_equal(surely, np.diag(antecedents.probabilities()) > 0.9)
    assert surely[0]


def test_a_ranker_learns_what_is_repeated():
    together = [discourse(TEXTS[number % 2]) for number in range(6)]
    tables = [pair_table(one) for one in together]
    ranker, seen = train_ranker(together, tables, seed=0)
    again, _ = train_ranker(together, tables, seed=0)
    np.testing.assert_array_equal(ranker.hashed, again.hashed)
    for one, table, unseen in zip(together, tables, seen, strict=True):
        truth = one.truth()
        for scores in (ranker.rank(one, table).scores, unseen.scores):
            best = scores.argmax(axis=1)
            assert (truth[best] == truth).all()
            assert (best[:2] == [0, 1]).all()


def test_a_ranker_survives_its_parts():
    table = pair_table(discourse(TEXTS[0]))
    ranker = random_ranker(table)
    again = AntecedentRanker.from_parts(ranker.parts())
    assert again.words == ranker.words
    np.testing.assert_array_equal(again.hashed, ranker.hashed)
    np.testing.assert_array_equal(again.plain, ranker.plain)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("ranker_plain", lambda a: a[:-1]),
        ("ranker_plain", lambda a: a.astype(np.float32)),
        ("ranker_plain", lambda a: np.full_like(a, np.nan)),
        ("ranker_places", lambda a: a - 1),
        ("ranker_places", lambda a: a + HASHED),
        ("ranker_places", lambda a: a[1:]),
        ("ranker_hashed", lambda a: a * np.inf),
        ("ranker_words", lambda a: np.full(3, 255, np.uint8)),
        ("ranker_words", lambda a: a.astype(np.int64)),
    ],
)
def test_parts_that_were_changed_are_refused(name, change):
    parts = random_ranker(pair_table(discourse(TEXTS[0]))).parts()
    assert AntecedentRanker.from_parts(parts | {name: change(parts[name])}) is None
    assert AntecedentRanker.from_parts({k: v for k, v in parts.items() if k != name}) is None
    assert AntecedentRanker.from_parts(parts | {"another": np.zeros(1)}) is None


def test_ranker_and_search_settle_on_what_both_hold_likely():
    sure = np.full((4, 4), -np.inf)
    for mention, antecedent in enumerate([0, 0, 2, 2]):
        sure[mention, : mention + 1] = -20.0
        sure[mention, antecedent] = 20.0
    assert settle(Antecedents(sure), np.array([0, 1, 2, 3])).tolist() == [0, 0, 1, 1]
    assert settle(Antecedents(sure), np.array([0, 0, 0, 0])).tolist() == [0, 0, 1, 1]
    open_question = np.where(np.tri(2, dtype=bool), 0.0, -np.inf)
    assert settle(Antecedents(open_question), np.array([0, 0])).tolist() == [0, 0]
    assert settle(Antecedents(open_question), np.array([0, 1])).tolist() == [0, 1]
    assert settle(Antecedents(open_question[:1, :1]), np.array([0])).tolist() == [0]
