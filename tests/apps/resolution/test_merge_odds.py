"""Odds of merges: which merges truth decides, what is learned from them, and what they give."""

import json

import numpy as np
import pytest

from factorwise.apps.resolution.merge_odds import (
    MergeCases,
    MergeOdds,
    decided_merges,
    fit_merge_odds,
    merge_features,
    tree_of_walk,
)
from factorwise.apps.resolution.trust import describe_calibration
from factorwise.inference.mcmc.shards.link_walk import LinkGraph, LinkWalk


def walk_of(pairs, scores, labels, n=None):
    first, second = np.array(pairs).T
    graph = LinkGraph.from_pairs(n or int(second.max()) + 1, first, second)
    return LinkWalk(graph, scores, unlinked=-1.0, cluster=0.0, labels=labels)


def planted(odds, seed, n=3_000):
    """Pairs of records by themselves, half of which a search has joined: whether they are one is drawn."""
    rng = np.random.default_rng(seed)
    means, joined = rng.normal(1.0, 2.0, n), rng.random(n) < 0.5
    first = np.arange(0, 2 * n, 2)
    labels = np.arange(2 * n)
    labels[1::2] = np.where(joined, first, first + 1)
    walk = walk_of(np.column_stack([first, first + 1]), means, labels)
    log_odds = odds.offset + odds.mean * walk.link_scores + odds.joined * joined
    same = rng.random(n) < 1.0 / (1.0 + np.exp(-log_odds))
    truth = np.arange(2 * n)
    truth[1::2] = np.where(same, first, first + 1)
    return walk, truth


def test_planted_odds_are_found(seed):
    odds = MergeOdds(offset=-0.4, mean=0.9, joined=1.5)
    walk, truth = planted(odds, seed)
    tree = tree_of_walk(walk)
    found = fit_merge_odds(tree, decided_merges(tree, truth, np.ones(len(truth), bool)))
    assert np.array(found[:3]) == pytest.approx(odds[:3], abs=0.35)
    assert found.lowest <= 0.0


def test_few_cases_leave_the_odds_near_the_defaults():
    walk, truth = planted(MergeOdds(offset=-4.0, mean=3.0), 1, n=3)
    tree = tree_of_walk(walk)
    found = fit_merge_odds(tree, decided_merges(tree, truth, np.ones(len(truth), bool)))
    assert (np.abs(np.array(found[:3]) - MergeOdds()[:3]) < 2.0).all()
    nothing = fit_merge_odds(tree, MergeCases(np.zeros(0, int), np.zeros(0, bool)))
    assert nothing[:3] == pytest.approx(MergeOdds()[:3])


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


def test_chances_follow_the_odds_and_end_where_merges_were_never_right():
    pairs = [(0, 1), (2, 3), (4, 5), (6, 7)]
    walk = walk_of(pairs, [2.0, 0.5, -0.5, -2.5], [0, 0, 2, 3, 4, 5, 6, 7])
    tree = tree_of_walk(walk)
    odds = MergeOdds(offset=0.2, mean=0.5, joined=1.0, lowest=-1.0)
    chances = odds.chances(tree)
    assert chances[:8].tolist() == [1.0] * 8
    by_mean = dict(zip(tree.mean[8:].round(3).tolist(), chances[8:].tolist(), strict=True))
    assert by_mean[2.0] == pytest.approx(1.0 / (1.0 + np.exp(-2.2)))
    assert by_mean[0.5] == pytest.approx(1.0 / (1.0 + np.exp(-0.45)))
    assert by_mean[-2.5] == 0.0
    assert odds._replace(offset=-6.0).chances(tree)[8:].max() < 0.05
    assert merge_features(tree).shape == (len(tree.mean), 3)


def test_what_must_not_be_together_has_no_chance():
    walk = walk_of([(0, 1)], [-np.inf], [0, 1])
    tree = tree_of_walk(walk)
    assert MergeOdds(offset=9.0, lowest=-99.0).chances(tree)[2:].tolist() == [0.0] * (len(tree.mean) - 2)


def test_odds_come_back_from_json():
    odds = MergeOdds(0.1, 0.2, 0.3, -0.4)
    assert MergeOdds.from_dict(json.loads(json.dumps(odds._asdict()))) == odds
    with pytest.raises(KeyError):
        MergeOdds.from_dict({"offset": 1.0})


def test_trust_is_described_in_plain_words():
    judged = {"reliability": {"error": 0.001}}
    assert describe_calibration({}).startswith("not calibrated, for want of held-out entities")
    assert "no pair" in describe_calibration(judged)
    good = {**judged, "uncertain_error": 0.031, "chance_error": 0.02}
    assert describe_calibration(good).startswith("calibrated: error 0.031")
    poor = {**judged, "uncertain_error": 0.2, "chance_error": 0.05}
    assert "not calibrated: error 0.200" in describe_calibration(poor)
    assert "0.050 would be chance" in describe_calibration(poor)
