"""Weights of adaptive jumps: their likelihood, the fit to good jumps, and tuning in rounds."""

from itertools import combinations

import numpy as np
import pytest

from adaptive_cases import (
    GROUPS,
    SMALL_TUNING,
    assert_odds_are_kept,
    group_jumps,
    group_model,
    jumps_for,
    share_of_good,
)
from factorwise.errors import InvalidArgumentError
from factorwise.inference.mcmc.adaptive.family import JumpFamily
from factorwise.inference.mcmc.adaptive.features import JumpFeatures
from factorwise.inference.mcmc.adaptive.jumps import Jumps
from factorwise.inference.mcmc.adaptive.proposer import AdaptiveSplitMerge
from factorwise.inference.mcmc.adaptive.tuning import SMALLEST_KIND, Tuning, tune
from factorwise.inference.mcmc.metropolis import Metropolis
from factorwise.inference.mcmc.walk import Walk
from factorwise.kernels.clusterings.adaptive.jump_odds import MERGE, MOVE, SPLIT
from factorwise.learning.samplerank.preferences import TruthPreference
from factorwise.rng import Stream
from factorwise.world.partition import Partition
from reference.jump_features import cluster_row, pair_row


def jumps_and_rows(source, count=40):
    """Jumps of all kinds, and for each its chance by brute force at any weights: a list of (rows, chosen)."""
    features, world = source.proposer.features, source.walk.world
    n = world.n_items
    clusters = {c: world.members(c).tolist() for c in world.cluster_ids().tolist()}
    found = []
    jumps = source.draw(Stream(9), count)
    for jump in jumps:
        choices = []
        if jump.kind == MERGE:
            pairs = list(combinations(clusters, 2))
            rows = [pair_row(features, clusters[a], clusters[b], n) for a, b in pairs]
            chosen = [{jump.source, jump.target} == set(pair) for pair in pairs].index(True)
            choices.append((np.array(rows), chosen, True))
        else:
            large = [c for c, members in clusters.items() if len(members) > 1]
            rows = [cluster_row(features, clusters[c], n) for c in large]
            choices.append((np.array(rows), large.index(jump.source), False))
        if jump.kind == MOVE:
            others = [c for c in clusters if c != jump.source]
            rows = [pair_row(features, jump.items, clusters[c], n) for c in others]
            choices.append((np.array(rows), others.index(jump.target), True))
        found.append(choices)
    return jumps, found


def log_chance(choices, vector):
    half, total = len(vector) // 2, 0.0
    for rows, chosen, of_merge in choices:
        logits = rows @ (vector[half:] if of_merge else vector[:half])
        total += logits[chosen] - np.logaddexp.reduce(logits)
    return total


@pytest.fixture
def family_and_jumps():
    source = jumps_for("tables", 10, Partition.from_labels([0, 0, 0, 1, 1, 2, 3, 3, 3, 4]))
    jumps, rows = jumps_and_rows(source)
    assert {jump.kind for jump in jumps} == {SPLIT, MERGE, MOVE}
    return JumpFamily(source), jumps, rows


def test_the_family_knows_the_chance_of_every_choice(family_and_jumps):
    family, jumps, rows = family_and_jumps
    for seed in range(3):
        vector = np.random.default_rng(seed).normal(size=family.size)
        expected = [log_chance(choices, vector) for choices in rows]
        np.testing.assert_allclose(family.log_prob(vector, jumps), expected, rtol=1e-5, atol=2e-5)


def test_the_gradient_of_the_family_is_that_of_differences(family_and_jumps):
    """Rows are in single precision, so differences of their sums are good to three digits."""
    family, jumps, rows = family_and_jumps
    rng = np.random.default_rng(0)
    vector, shares = rng.normal(size=family.size), rng.dirichlet(np.ones(len(jumps)))
    gradient = family.log_prob_gradient(vector, jumps, shares)
    step = 1e-5
    for k in range(family.size):
        ends = []
        for sign in (1, -1):
            there = vector.copy()
            there[k] += sign * step
            ends.append(sum(s * log_chance(choices, there) for s, choices in zip(shares, rows, strict=True)))
        assert gradient[k] == pytest.approx((ends[0] - ends[1]) / (2 * step), abs=2e-5)
    direction = rng.normal(size=family.size)
    ends = [shares @ family.log_prob(vector + sign * 0.02 * direction, jumps) for sign in (1, -1)]
    assert gradient @ direction == pytest.approx((ends[0] - ends[1]) / 0.04, rel=2e-3, abs=2e-3)


def test_the_likelihood_of_jumps_is_concave(family_and_jumps):
    family, jumps, _ = family_and_jumps
    shares, rng = np.full(len(jumps), 1 / len(jumps)), np.random.default_rng(1)
    for _ in range(5):
        start, end = rng.normal(scale=3.0, size=(2, family.size))
        along = [shares @ family.log_prob(start + t * (end - start), jumps) for t in np.linspace(0, 1, 7)]
        assert (np.diff(along, 2) < 1e-4).all()
        assert np.diff(along, 2).min() < -1e-3


def test_a_fit_stays_finite_where_a_feature_sets_all_good_jumps_apart():
    model = group_model([0, 0, 0, 1, 1, 1])
    jumps = Jumps(Walk(Metropolis(model, AdaptiveSplitMerge(JumpFeatures(model))), Partition.singletons(6)))
    family = JumpFamily(jumps)
    good = [jump for jump in jumps.draw(Stream(0), 60) if jump.gain > 0]
    shares = np.full(len(good), 1 / len(good))
    nothing = np.zeros(family.size)
    assert family.scales() == pytest.approx(
        np.maximum(np.concatenate([np.ones(family.width), family.between.var(axis=0)]), 1e-3), rel=1e-5
    )
    sizes = []
    for ridge in (1.0, 0.1, 0.01):
        fitted = family.fit(good, shares, nothing, ridge)
        assert np.isfinite(fitted).all()
        slope = family.log_prob_gradient(fitted, good, shares) - ridge * family.scales() * fitted
        assert np.abs(slope).max() < 1e-3
        sizes.append(np.abs(fitted).max())
    assert sizes[0] < sizes[1] < sizes[2] < 50.0
    names = jumps.proposer.features.names
    same = names.index(next(name for name in names if "same" in name))
    assert fitted[family.width + same] == pytest.approx(np.abs(fitted).max(), rel=0.2)
    drawn = family.sample(fitted, 200, Stream(3))
    assert np.mean([jump.gain > 0 for jump in drawn]) > 0.9


@pytest.mark.parametrize("remember", [True, False])
@pytest.mark.parametrize("by", ["score", "truth"])
def test_tuning_concentrates_on_jumps_that_pay(by, remember):
    jumps = group_jumps(truth=TruthPreference(GROUPS, "rand") if by == "truth" else None)
    field = "better" if by == "truth" else "gain"
    assert share_of_good(jumps, by=field) < 0.5
    found = tune(jumps.walk, Tuning(iterations=8, remember=remember), Stream(1), by=by)
    assert share_of_good(jumps, by=field) > 0.85
    assert getattr(found.best, field) > 0
    assert jumps.walk.view == Partition.singletons(12)
    assert_odds_are_kept(jumps)
    assert found.lesson.choices


def test_tuning_finds_the_one_cluster_that_is_mixed():
    labels = [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3]
    groups = [0, 0, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4]
    jumps = group_jumps(labels, groups=groups)
    wrong = jumps.walk.view.cluster_of(0)

    def hits():
        splits = [jump for jump in jumps.draw(Stream(8), 300) if jump.kind == SPLIT]
        return np.mean([jump.source == wrong for jump in splits])

    assert hits() < 0.4
    tune(jumps.walk, Tuning(iterations=10, samples=100), Stream(2))
    assert hits() > 0.7


def test_the_odds_of_the_kinds_are_learned_and_no_kind_dies_or_comes_to_life():
    jumps = group_jumps()  # nothing but merges is good
    tune(jumps.walk, SMALL_TUNING, Stream(0))
    split, merge, move = jumps.weights.kinds
    assert move == 0.0
    assert merge / (split + merge) > 0.9
    assert split / (split + merge) >= 0.9 * SMALLEST_KIND
    fixed = group_jumps(kinds=(1.0, 2.0, 1.0))
    tune(fixed.walk, Tuning(iterations=2, kinds=False), Stream(0))
    np.testing.assert_allclose(np.array(fixed.weights.kinds) / sum(fixed.weights.kinds), [0.25, 0.5, 0.25])


def test_nothing_is_learned_where_all_jumps_are_equally_good():
    model = group_model([0, 0, 0, 0])
    model.weights[:] = 0.0
    jumps = Jumps(Walk(Metropolis(model, AdaptiveSplitMerge(JumpFeatures(model))), Partition.singletons(4)))
    tune(jumps, Tuning(iterations=3, remember=False), Stream(0))
    assert not jumps.weights.vector.any()


BAD = {
    "no round": (lambda: Tuning(every=0), InvalidArgumentError, "every must be at least 1"),
    "no iterations": (lambda: Tuning(iterations=0), InvalidArgumentError, "iterations must be at least 1"),
    "no samples to tune by": (lambda: Tuning(samples=0), InvalidArgumentError, "samples must be at least 1"),
    "no elite": (lambda: Tuning(elite=0.0), InvalidArgumentError, "elite must be greater than 0"),
    "too large an elite": (lambda: Tuning(elite=1.1), InvalidArgumentError, "at most 1"),
    "no smoothing": (lambda: Tuning(smoothing=0.0), InvalidArgumentError, "smoothing must be greater than 0"),
    "a negative ridge": (lambda: Tuning(ridge=-1.0), InvalidArgumentError, "ridge must be zero or more"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_done_is_refused_with_a_remedy(name):
    build, error, message = BAD[name]
    with pytest.raises(error, match=message):
        build()
