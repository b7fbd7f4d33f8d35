"""Odds of merges: which merges truth decides, what is learned from them, and what they give."""

import json

import numpy as np
import pytest

from factorwise.apps.resolution.merge_odds import (
    DEFAULT_ODDS,
    DEFAULT_STRENGTH,
    FIXED,
    UNLABELLED_ODDS,
    MergeExamples,
    MergeLine,
    MergeOdds,
    decided_merges,
    fit_merge_odds,
    merge_features,
    squash,
    tree_of_walk,
)
from factorwise.apps.resolution.results.trust import describe_calibration
from factorwise.inference.mcmc.shards.link_walk import LinkGraph, LinkWalk
from factorwise.model.model import Model
from factorwise.model.templates import EdgeTemplate
from reference.merge_trees import cuts, items_below


def walk_of(pairs, scores, labels, n=None, **more):
    first, second = np.array(pairs).T
    graph = LinkGraph.from_pairs(n or int(second.max()) + 1, first, second)
    return LinkWalk(graph, scores, unlinked=-1.0, cluster=0.0, labels=labels, **more)


def planted(odds, seed, n=3_000, given=0.0):
    """Pairs of records by themselves, half of which a search has joined: whether they are one is drawn.

    given
        How much a template of given pairs, of which every second is one, speaks for a pair.
    """
    rng = np.random.default_rng(seed)
    means, joined = rng.normal(0.0, 2.0, n), rng.random(n) < 0.5
    first = np.arange(0, 2 * n, 2)
    labels = np.arange(2 * n)
    labels[1::2] = np.where(joined, first, first + 1)
    pairs = np.column_stack([first, first + 1])
    further = Model(
        [EdgeTemplate("given", 2 * n, pairs[::2], np.ones((len(pairs[::2]), 1)), ["pair"])], [3.0]
    )
    walk = walk_of(pairs, means, labels, further=further if given else None)
    lines = np.where(joined[:, None], odds.within, odds.between)
    log_odds = lines[:, 0] + (lines[:, 1] + lines[:, 2]) * squash(walk.link_scores.astype(float))
    log_odds[::2] += 3.0 * given
    same = rng.random(n) < 1.0 / (1.0 + np.exp(-log_odds))
    truth = np.arange(2 * n)
    truth[1::2] = np.where(same, first, first + 1)
    return walk, truth


def learned(walk, truth):
    tree = tree_of_walk(walk)
    cases = decided_merges(tree, truth, np.ones(len(truth), bool))
    return tree, fit_merge_odds([MergeExamples.of(tree, cases)])


def test_planted_odds_are_found(seed):
    odds = MergeOdds(MergeLine(0.6, 0.5, 0.4, 0.0), MergeLine(-1.9, 0.2, 0.3, 0.0))
    _, found = learned(*planted(odds, seed))
    for line, truth in ((found.within, odds.within), (found.between, odds.between)):
        assert line.offset == pytest.approx(truth.offset, abs=0.3)  # of pairs, mean and best link are equal
        assert line.mean + line.best == pytest.approx(truth.mean + truth.best, abs=0.2)


@pytest.mark.parametrize("strength", [0.3, 1.2])
def test_the_strength_of_a_template_is_learned(strength, seed):
    tree, found = learned(*planted(MergeOdds(), seed, given=strength))
    assert found.strengths == {"given": pytest.approx(strength, abs=0.25)}
    plain = found._replace(covariance=()).chances(tree)
    alone = found._replace(covariance=(), strengths={"given": 0.0}).chances(tree)
    gain, joined = tree.gains["given"], np.arange(len(tree.mean)) < tree.n_inner
    for chance, node in zip(plain, np.arange(len(plain)), strict=True):
        if node >= tree.n_items and joined[node]:
            odds = chance / (1.0 - chance)
            without = alone[node] / (1.0 - alone[node])
            assert odds / without == pytest.approx(np.exp(found.strengths["given"] * gain[node]))


def test_a_template_that_is_always_wrong_has_no_strength(seed):
    _, found = learned(*planted(MergeOdds(), seed, given=-1.0))
    assert found.strengths == {"given": 0.0}


def test_few_cases_leave_the_odds_near_the_defaults_and_the_chances_near_one_half():
    odds = MergeOdds(MergeLine(-4.0, 1.5, 1.5, 0.0), MergeLine(-4.0, 1.5, 1.5, 0.0))
    tree, found = learned(*planted(odds, 1, n=3))
    assert (np.abs(found.values() - DEFAULT_ODDS.values()) < 1.5).all()
    sure, unsure = found.chances(tree)[6 : tree.n_inner], found.likely_chances(tree)[:, 6 : tree.n_inner]
    assert (np.abs(unsure.mean(axis=0) - 0.5) <= np.abs(sure - 0.5) + 0.02).all()
    assert (np.ptp(unsure, axis=0) > 0.2).all()
    nothing = fit_merge_odds([MergeExamples(np.zeros((0, FIXED)), np.zeros(0, bool))])
    assert nothing[:3] == DEFAULT_ODDS[:3]
    np.testing.assert_allclose(np.diag(nothing.covariance), [1.0, 0.09, 0.09, 0.09, 0.25] * 2)


def test_templates_that_odds_do_not_speak_of_have_the_usual_strength():
    made = MergeOdds(strengths={"b": 0.1, "a": 0.2}, covariance=tuple(map(tuple, np.diag(np.arange(12.0)))))
    assert made.for_templates(["a", "b"]) is made
    wider = made.for_templates(["c", "b"])
    assert wider.strengths == {"c": DEFAULT_STRENGTH, "b": 0.1}
    assert np.diag(wider.covariance).tolist() == [*range(10), 11.0, pytest.approx(0.09)]
    assert DEFAULT_ODDS.for_templates(["x"]).covariance == ()


def test_truth_decides_from_the_top_down():
    """0 and 1 are one, 2 and 3 are one, and the search has joined all four: only three nodes are reached."""
    pairs, scores = [(0, 1), (2, 3), (0, 2), (4, 5)], [5.0, 4.0, 3.0, 2.0]
    walk = walk_of(pairs, scores, [0, 0, 0, 0, 4, 4])
    tree = tree_of_walk(walk)
    every = np.ones(6, bool)

    def decided(truth, judged=every):
        cases = decided_merges(tree, np.array(truth), judged)
        return sorted(zip(tree.count[cases.node].tolist(), cases.same.tolist(), strict=True))

    assert decided([0, 0, 1, 1, 2, 2]) == [(2.0, True), (2.0, True), (2.0, True), (4.0, False)]
    assert decided([0, 0, 0, 0, 2, 3]) == [(2.0, False), (4.0, True)]
    assert decided([0, 0, 1, 1, -1, -1]) == [(2.0, True), (2.0, True), (4.0, False)]
    assert decided([0, 0, 1, -1, 2, 2]) == [(2.0, True), (2.0, True), (4.0, False)]
    judged = np.arange(6) >= 4
    assert decided([0, 0, 1, 1, 2, 2], judged) == [(2.0, True)]


def test_chances_follow_the_odds_and_are_nothing_where_unions_are_all_but_impossible():
    pairs = [(0, 1), (2, 3), (4, 5), (6, 7)]
    walk = walk_of(pairs, [2.0, 0.5, -0.5, -2.5], [0, 0, 2, 3, 4, 5, 6, 7])
    tree = tree_of_walk(walk)
    odds = MergeOdds(MergeLine(1.2, 0.3, 0.2, 0.0), MergeLine(0.2, 1.5, 1.0, 0.0))
    chances = odds.chances(tree)
    assert chances[:8].tolist() == [1.0] * 8
    by_mean = dict(zip(tree.mean[8:].round(3).tolist(), chances[8:].tolist(), strict=True))
    assert by_mean[2.0] == pytest.approx(1.0 / (1.0 + np.exp(-1.2 - 0.5 * squash(np.array(2.0)))))
    assert by_mean[0.5] == pytest.approx(1.0 / (1.0 + np.exp(-0.2 - 2.5 * squash(np.array(0.5)))))
    assert by_mean[-2.5] == 0.0
    assert merge_features(tree).shape == (len(tree.mean), FIXED)


def test_the_size_of_the_smaller_part_counts():
    pairs = [(a, b) for a in range(4) for b in range(a + 1, 4)]
    tree = tree_of_walk(walk_of(pairs, [3.0, 0.0, 0.0, 0.0, 0.0, 3.0], [0, 0, 2, 2]))
    size = merge_features(tree)[:, [3, 8]]
    assert size[-1].tolist() == [0.0, pytest.approx(np.log(2.0))]
    assert not size[:-1].any()


def test_the_number_of_entities_that_are_united_counts():
    pairs = [(0, 1), (1, 2), (2, 3), (3, 4)]
    tree = tree_of_walk(walk_of(pairs, [3.0, 1.0, 0.5, 0.0], [0, 0, 2, 3, 4]))
    united = tree.entities_united()
    assert united.tolist() == [1] * tree.n_inner + [2, 3, 4]
    pieces = merge_features(tree)[:, [4, 9]]
    np.testing.assert_allclose(pieces[tree.n_inner :], [[0.0, np.log(k)] for k in (1, 2, 3)])
    assert not pieces[: tree.n_inner].any()
    one, another = (
        MergeOdds(between=MergeLine(2.0, 0.0, 0.0, 0.0, slope)).chances(tree)[tree.n_inner :]
        for slope in (0.0, -1.0)
    )
    np.testing.assert_allclose(another / (1.0 - another), one / (1.0 - one) / [1.0, 2.0, 3.0])


def test_odds_of_files_that_do_not_count_entities_are_read():
    saved = MergeOdds(covariance=tuple(map(tuple, np.eye(8)))).as_dict()
    for line in ("within", "between"):
        del saved[line]["pieces"]
    read = MergeOdds.from_dict(json.loads(json.dumps(saved)))
    assert (read.between.pieces, read.between.size, read.covariance) == (0.0, -0.3, ())


def test_large_scores_count_by_their_logarithm():
    values = squash(np.array([0.01, -0.01, 400.0]))
    np.testing.assert_allclose(values, [0.01, -0.01, 2.0 * np.log(400.0)], rtol=1e-4)


def test_scores_without_labels_do_not_all_mean_certainty():
    """Without labels a pair of log odds L scores exp(L) - 1; its probability grows with L, not exp(L)."""
    log_odds = np.array([0.5, 1.0, 2.0, 4.0, 6.0])
    first = np.arange(0, 10, 2)
    walk = walk_of(np.column_stack([first, first + 1]), np.expm1(log_odds), np.repeat(first, 2))
    chances = np.sort(UNLABELLED_ODDS.chances(tree_of_walk(walk))[10:])
    np.testing.assert_allclose(chances, 1.0 / (1.0 + np.exp(-log_odds)), atol=0.07)
    np.testing.assert_allclose(np.log(chances / (1.0 - chances))[-2:], log_odds[-2:], atol=0.05)


@pytest.mark.parametrize("seed", range(3))
def test_draws_and_probabilities_with_templates_are_those_of_all_cuts(seed):
    rng = np.random.default_rng(seed)
    n, draws = 7, 4_000
    pairs = [(a, b) for a in range(n) for b in range(a + 1, n)]
    edges = np.array(pairs)[rng.random(len(pairs)) < 0.5]
    further = Model([EdgeTemplate("given", n, edges, rng.normal(size=(len(edges), 1)), ["pair"])], [1.5])
    walk = walk_of(pairs, rng.normal(1.0, 1.5, len(pairs)), [0, 0, 0, 1, 1, 2, 2], further=further)
    tree, odds = (
        tree_of_walk(walk),
        MergeOdds(between=MergeLine(0.0, 0.4, 0.4, 0.0, -0.7), strengths={"given": 0.6}),
    )
    chances = odds.chances(tree)
    for node in range(n, len(tree.mean)):  # the odds of every node, from their definition
        one, two = (items_below(part, tree.left, tree.right) for part in (tree.left[node], tree.right[node]))
        cut = [
            further.templates[0].features[k, 0]
            for k, (a, b) in enumerate(edges)
            if ({a, b} & one and {a, b} & two)
        ]
        line = odds.within if node < tree.n_inner else odds.between
        features = [
            1.0,
            *squash(np.array([tree.mean[node], tree.best[node]])),
            np.log(min(len(one), len(two))),
            np.log(max(1, len(set(walk.labels[list(one | two)].tolist())) - 1)),
        ]
        log_odds = np.dot(line, features) + 0.6 * 1.5 * sum(cut)
        assert chances[node] == pytest.approx(1.0 / (1.0 + np.exp(-log_odds)), abs=1e-9)
    (root,) = np.flatnonzero(tree.parent < 0)
    worlds = [
        ([frozenset(items_below(top, tree.left, tree.right)) for top in tops], chance)
        for tops, chance in cuts(root, tree.left, tree.right, chances)
    ]
    found = tree.posterior(chances, walk.graph, draws=draws, seed=seed)
    for pair, (a, b) in enumerate(pairs):
        exact = sum(chance for sets, chance in worlds if any({a, b} <= one for one in sets))
        assert found.together[pair] == pytest.approx(exact, abs=1e-6)
        share = np.mean(found.labels[:, a] == found.labels[:, b])
        assert abs(share - exact) <= 5.0 * np.sqrt(exact * (1.0 - exact) / draws) + 1e-9
    for item in range(n):
        own = frozenset(np.flatnonzero(walk.labels == walk.labels[item]).tolist())
        exact = sum(chance for sets, chance in worlds if own in sets)
        assert found.whole[item] == pytest.approx(exact, abs=1e-6)
        share = np.mean(
            [own == set(np.flatnonzero(labels == labels[item]).tolist()) for labels in found.labels]
        )
        assert abs(share - exact) <= 5.0 * np.sqrt(exact * (1.0 - exact) / draws) + 1e-9


def test_what_a_template_speaks_strongly_of_is_not_doubted_for_want_of_cases():
    """However uncertain its strength: gains of a million to one side or the other decide."""
    walk, truth = planted(MergeOdds(), 1, n=20, given=1.0)
    tree, odds = learned(walk, truth)
    for gain, chance in ((-1e6, 0.0), (1e6, 1.0)):
        walk.further.weights = [gain]
        every = odds.likely_chances(tree_of_walk(walk))[:, tree.gains["given"] > 0.0]
        assert len(every) == 20
        assert every == pytest.approx(chance, abs=1e-9)


def test_odds_that_are_drawn_have_the_covariance_that_was_learned():
    _, found = learned(*planted(MergeOdds(), 1, n=200, given=1.0))
    drawn = np.array([odds.values() for odds in found.draw(4_000)])
    np.testing.assert_allclose(drawn.mean(axis=0), found.values(), atol=0.01)
    np.testing.assert_allclose(np.cov(drawn.T), found.covariance, atol=0.05)
    assert (drawn[:, FIXED] >= 0.25 * found.strengths["given"]).all()
    assert MergeOdds().draw(20) == [MergeOdds()]


def test_what_must_not_be_together_has_no_chance():
    walk = walk_of([(0, 1)], [-np.inf], [0, 1])
    tree = tree_of_walk(walk)
    odds = MergeOdds(MergeLine(9.0, 0.0, 0.0, 0.0), MergeLine(9.0, 0.0, 0.0, 0.0))
    assert odds.chances(tree)[2:].tolist() == [0.0] * (len(tree.mean) - 2)


def test_odds_come_back_from_json():
    _, learned_odds = learned(*planted(MergeOdds(), 1, n=20, given=1.0))
    for odds in (MergeOdds(), MergeOdds(MergeLine(0.1, 0.2, 0.3, -0.4), strengths={"x": 0.5}), learned_odds):
        assert MergeOdds.from_dict(json.loads(json.dumps(odds.as_dict()))) == odds
    with pytest.raises(TypeError, match="missing"):
        MergeOdds.from_dict({"within": {"offset": 1.0}})
    with pytest.raises(ValueError, match="do not fit together"):
        MergeOdds.from_dict({**MergeOdds().as_dict(), "covariance": [[1.0]]})


def test_trust_is_described_in_plain_words():
    judged = {"reliability": {"error": 0.001}}
    assert describe_calibration({}).startswith("not calibrated, for want of held-out entities")
    assert "no pair" in describe_calibration(judged)
    good = {**judged, "uncertain_error": 0.031, "chance_error": 0.02}
    assert describe_calibration(good).startswith("calibrated: error 0.031")
    poor = {**judged, "uncertain_error": 0.2, "chance_error": 0.05}
    assert "not calibrated: error 0.200" in describe_calibration(poor)
    assert "0.050 would be chance" in describe_calibration(poor)
    few = {**judged, "uncertain_error": 0.12, "chance_error": 0.1, "chance_limit": 0.2}
    assert describe_calibration(few).startswith("not shown to be calibrated: error 0.120")
    assert "faultless probabilities would show 0.100" in describe_calibration(few)
