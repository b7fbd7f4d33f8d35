"""The odds of adaptive jumps are kept in step with the world, and so are the features behind them."""

import numpy as np
import pytest

from adaptive_cases import assert_odds_are_kept, counted, jumps_for, weights_for
from factorwise.inference.mcmc.adaptive.jumps import Jump
from factorwise.kernels.clusterings.adaptive.jump_features import BALANCED
from factorwise.kernels.clusterings.adaptive.jump_odds import MOVE
from factorwise.kernels.compile.programs import Program
from factorwise.rng import Stream
from factorwise.world.partition import Partition
from reference.jump_features import cluster_row, pair_row

SINGLE = 1e-5  # of features, which are handed out in single precision


LONG = {
    "tables": ({}, {"scale": 30.0}, {"explore": 0.5, "size": 120.0}),
    "links": ({}, {"scale": 30.0}),
    "edges": ({}, {"scale": 100.0}),
}


@pytest.mark.parametrize("case", LONG)
def test_the_odds_of_a_long_walk_are_those_of_a_fresh_look(case):
    """Also where they span hundreds of orders of magnitude, so that sums must be added up afresh."""
    for options in LONG[case]:
        jumps = jumps_for(case, 24, **options)
        walk, spans, sizes, seen = jumps.walk, [], set(), 0
        for round_ in range(6):
            assert walk.advance(Stream(round_), 1.0, 500) == 500
            assert_odds_are_kept(jumps)
            assert jumps.odds_seen > seen or (case == "edges" and round_ > 0)  # of sums over pairs, once
            seen = jumps.odds_seen
            odds = jumps.arrays["merge_odds"][jumps.arrays["merge_odds"] > 0]
            spans.append(odds.max(initial=1.0) / odds.min(initial=1.0))
            sizes.add(walk.view.n_clusters)
        assert walk.score == pytest.approx(walk.kernel.model.score(walk.world))
        assert len(sizes) > 2
        assert max(spans) > (1e40 if options else 10.0)


def test_a_jump_that_is_refused_leaves_the_odds_as_they_were():
    """Those of the world that is left are kept, and taken again."""
    for case in ("tables", "edges"):
        jumps = jumps_for(case, 24, parts="guided")
        jumps.walk.advance(Stream(0), 1.0, 30)
        jumps.draw(Stream(1), 1)
        odds = {name: jumps.arrays[name].copy() for name in ("merge_odds", "split_odds")}
        jumps.arrays["state"][BALANCED] = 1
        seen, stream = jumps.odds_seen, Stream(2)
        for _ in range(20):
            jumps._run(stream, 1, jumps._draw, jumps._part("accept", Program(accept=never)), np.zeros(1))
            assert jumps.odds_seen > seen or case == "edges"  # of the world that was proposed
            seen = jumps.odds_seen
            jumps.draw(Stream(1), 1)
            for name, before in odds.items():
                np.testing.assert_array_equal(jumps.arrays[name], before)
        assert_odds_are_kept(jumps)


def never():
    return False


def only_counts(name):
    return ": count of" in name


def test_no_pair_is_looked_at_again_where_all_features_are_sums_over_pairs():
    for chosen, again in ((only_counts, False), (counted, True)):
        jumps = jumps_for("tables", 24, chosen=chosen, parts="guided")
        assert jumps.odds_seen == 0
        jumps.draw(Stream(0), 1)
        assert jumps.odds_seen >= 24 * 23 // 2
        for round_ in range(4):
            seen = jumps.odds_seen
            jumps.walk.advance(Stream(round_), 1.0, 400)
            assert (jumps.odds_seen > seen) == again
            assert_odds_are_kept(jumps)


def test_the_odds_of_a_long_walk_with_functions_of_single_precision_are_as_good_as_these():
    jumps = jumps_for("everything", 30, parts="guided")
    for round_ in range(3):
        jumps.walk.advance(Stream(round_), 1.0, 400)
        assert_odds_are_kept(jumps, tolerance=1e-4)


def test_the_look_at_the_odds_notices_what_was_not_kept():
    jumps = jumps_for("tables", 24)
    jumps.walk.advance(Stream(0), 1.0, 50)
    assert_odds_are_kept(jumps)
    merge, split, sums = (jumps.arrays[name] for name in ("merge_odds", "split_odds", "sums"))
    a, b = jumps.walk.view.cluster_ids()[:2]
    gone = np.setdiff1d(np.arange(len(split)), jumps.walk.view.cluster_ids())[0]
    spoiled = {
        "a cluster that is no more": lambda: merge.__setitem__((gone, a), 1.0),
        "one pair": lambda: merge.__setitem__(([a, b], [b, a]), merge[a, b] * (1 + 1e-9)),
        "one side of a pair": lambda: merge.__setitem__((a, b), merge[a, b] * (1 + 1e-9)),
        "the sum of a row": lambda: sums.__setitem__((a, 0), sums[a, 0] * (1 + 1e-9)),
        "the odds of being split": lambda: split.__setitem__(a, split[a] * (1 + 1e-9) + 1e-9),
    }
    before = [array.copy() for array in (merge, split, sums)]
    for spoil in spoiled.values():
        spoil()
        with pytest.raises(AssertionError):
            assert_odds_are_kept(jumps)
        for array, old in zip((merge, split, sums), before, strict=True):
            array[:] = old
        assert_odds_are_kept(jumps)


@pytest.mark.parametrize("case", ["everything", "few", "clusters"])
def test_features_handed_out_are_those_of_the_definition(case):
    n = 9
    jumps = jumps_for(case, n)
    jumps.walk.advance(Stream(4), 1.0, 30)
    features, world = jumps.proposer.features, jumps.walk.view
    between, within = jumps.features()
    clusters = [world.members(c).tolist() for c in jumps.clusters(1)]
    rows = [pair_row(features, clusters[a], clusters[b], n) for a in range(len(clusters)) for b in range(a)]
    np.testing.assert_allclose(between, rows, rtol=SINGLE, atol=SINGLE)
    large = jumps.clusters(2)
    rows = [cluster_row(features, world.members(c).tolist(), n) for c in large]
    np.testing.assert_allclose(within, rows, rtol=SINGLE, atol=SINGLE)
    source = large[0]
    part = world.members(source).tolist()[:1]
    rows = [
        pair_row(features, part, [item for item in cluster if item not in part], n) for cluster in clusters
    ]
    jump = Jump(MOVE, tuple(part), int(source), -1, 0, 0.0, 0.0)
    np.testing.assert_allclose(jumps.part_features(jump), rows, rtol=SINGLE, atol=SINGLE)
    assert_odds_are_kept(jumps, tolerance=1e-4)


def test_the_odds_follow_from_the_features_and_the_weights():
    jumps = jumps_for("tables", 12)
    for seed in range(2):
        weights = weights_for(jumps.proposer.features, "moves too", 1.5, seed=seed)
        jumps.weights = weights
        np.testing.assert_array_equal(jumps.weights.vector, weights.vector)
        assert jumps.weights.kinds == weights.kinds
        between, within = jumps.features()
        clusters = jumps.clusters(1)
        a, b = np.tril_indices(len(clusters), -1)
        odds = jumps.arrays["merge_odds"][clusters[a], clusters[b]]
        np.testing.assert_allclose(np.log(odds), between @ weights.merge, rtol=1e-4, atol=1e-4)
        odds = jumps.arrays["split_odds"][jumps.clusters(2)]
        np.testing.assert_allclose(np.log(odds), within @ weights.split, rtol=1e-4, atol=1e-4)
        assert_odds_are_kept(jumps)


def test_after_a_reset_everything_is_that_of_the_new_world():
    jumps = jumps_for("tables", 9)
    walk = jumps.walk
    walk.advance(Stream(0), 1.0, 30)
    walk.reset(Partition.singletons(9))
    assert walk.score == pytest.approx(walk.kernel.model.score(Partition.singletons(9)))
    assert_odds_are_kept(jumps)
    walk.advance(Stream(1), 1.0, 20)
    fresh = jumps_for("tables", 9, Partition.singletons(9)).walk
    fresh.advance(Stream(1), 1.0, 20)
    np.testing.assert_array_equal(walk.view.labels, fresh.view.labels)
