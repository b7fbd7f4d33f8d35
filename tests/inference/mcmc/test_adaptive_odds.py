"""The odds of adaptive jumps are kept in step with the world, and so are the features behind them."""

import numpy as np
import pytest

from adaptive_cases import assert_odds_are_kept, counted, engine_for, walk_freely, weights_for
from factorwise.inference.mcmc.adaptive.engine import Jump
from factorwise.kernels.clusterings.jump_odds import MERGE, MOVE
from factorwise.rng import Stream
from factorwise.world.partition import Partition

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
        engine = engine_for(case, 24, **options)
        spans, sizes, seen = [], set(), 0
        for round_ in range(6):
            assert walk_freely(engine, Stream(round_), 500) == 500
            assert_odds_are_kept(engine)
            assert engine.odds_seen > seen
            seen = engine.odds_seen
            odds = engine._jumps.merge_odds[engine._jumps.merge_odds > 0]
            spans.append(odds.max(initial=1.0) / odds.min(initial=1.0))
            sizes.add(engine.view.n_clusters)
        assert engine.score == pytest.approx(engine.kernel.model.score(engine.world))
        assert len(sizes) > 2
        assert max(spans) > (1e40 if options else 10.0)


def only_counts(name):
    return ": count of" in name


def test_merges_look_at_no_pair_again_where_all_features_are_sums_over_pairs():
    summed, other = engine_for("tables", 24, chosen=only_counts), engine_for("tables", 24, chosen=counted)
    for engine, again in ((summed, False), (other, True)):
        for round_ in range(4):
            walk_freely(engine, Stream(round_), 400)
            assert_odds_are_kept(engine)
            merge = next(jump for jump in engine.draw(Stream(round_, 1), 100) if jump.kind == MERGE)
            seen = engine.odds_seen
            engine.take(merge)
            assert (engine.odds_seen > seen) == again
            assert_odds_are_kept(engine)


def test_the_odds_of_a_long_walk_with_functions_of_single_precision_are_as_good_as_these():
    engine = engine_for("everything", 30, parts="guided")
    for round_ in range(3):
        walk_freely(engine, Stream(round_), 400)
        engine.advance(Stream(round_, 1), 50.0, 200)
        assert_odds_are_kept(engine, tolerance=1e-4)


def test_the_look_at_the_odds_notices_what_was_not_kept():
    engine = engine_for("tables", 24)
    walk_freely(engine, Stream(0), 50)
    jumps = engine._jumps
    before = jumps.merge_odds.copy()
    jump = next(jump for jump in engine.draw(Stream(1), 100) if jump.kind == MERGE)
    engine.take(jump)
    assert_odds_are_kept(engine)
    gone = np.setdiff1d([jump.source, jump.target], engine.view.cluster_ids())
    assert len(gone) == 1
    after = jumps.merge_odds.copy()
    a, b = engine.view.cluster_ids()[:2]
    spoiled = {
        "a cluster that is no more is not forgotten": lambda: jumps.merge_odds.__setitem__(
            gone, before[gone]
        ),
        "one pair": lambda: jumps.merge_odds.__setitem__(([a, b], [b, a]), after[a, b] * (1 + 1e-9)),
        "one side of a pair": lambda: jumps.merge_odds.__setitem__((a, b), after[a, b] * (1 + 1e-9)),
        "the sum of a row": lambda: jumps.sums.__setitem__((a, 0), jumps.sums[a, 0] * (1 + 1e-9)),
        "a content": lambda: jumps.contents.__setitem__((a, 0), jumps.contents[a, 0] + 1e-9),
    }
    for spoil in spoiled.values():
        sums, contents = jumps.sums.copy(), jumps.contents.copy()
        spoil()
        with pytest.raises(AssertionError):
            assert_odds_are_kept(engine)
        jumps.merge_odds[:], jumps.sums[:], jumps.contents[:] = after, sums, contents
        assert_odds_are_kept(engine)


def test_features_handed_out_are_those_of_the_definition():
    n = 9
    engine = engine_for("everything", n)
    walk_freely(engine, Stream(4), 30)
    features, world = engine.proposer.features, engine.view
    between, within = engine.features()
    clusters = [world.members(c).tolist() for c in world.cluster_ids()]
    rows = [features.between(clusters[a], clusters[b], n) for a in range(len(clusters)) for b in range(a)]
    np.testing.assert_allclose(between, rows, rtol=SINGLE, atol=SINGLE)
    large = world.arrays.clusters["splittable"][: world.n_splittable]
    rows = [features.within(world.members(c).tolist(), n) for c in large]
    np.testing.assert_allclose(within, rows, rtol=SINGLE, atol=SINGLE)
    source = large[0]
    part = world.members(source).tolist()[:1]
    rows = [features.between(part, [item for item in cluster if item not in part], n) for cluster in clusters]
    jump = Jump(MOVE, tuple(part), int(source), -1, 0, 0.0, 0.0)
    np.testing.assert_allclose(engine.part_features(jump), rows, rtol=SINGLE, atol=SINGLE)
    assert_odds_are_kept(engine, tolerance=1e-4)


def test_trying_other_weights_sets_the_odds_that_they_would_have():
    engine = engine_for("tables", 12)
    other = weights_for(engine.proposer.features, "moves too", 1.5, seed=1)
    engine.spread(other, *engine.features())
    tried = engine._jumps._replace(**{k: v.copy() for k, v in engine._jumps._asdict().items()})
    engine.weights = other
    assert engine.weights is other
    np.testing.assert_allclose(tried.merge_odds, engine._jumps.merge_odds, rtol=1e-4)
    np.testing.assert_allclose(tried.split_odds, engine._jumps.split_odds, rtol=1e-4)
    np.testing.assert_allclose(tried.sums[:, 0], engine._jumps.sums[:, 0], rtol=1e-4)
    assert_odds_are_kept(engine)


def test_after_a_reset_everything_is_that_of_the_new_world():
    engine = engine_for("tables", 9)
    walk_freely(engine, Stream(0), 30)
    engine.reset(Partition.singletons(9))
    assert engine.score == pytest.approx(engine.kernel.model.score(Partition.singletons(9)))
    assert_odds_are_kept(engine)
