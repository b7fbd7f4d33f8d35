"""Jumps that are drawn without being made, and made one by one."""

import numpy as np
import pytest

from adaptive_cases import CLOSE, SOME, assert_odds_are_kept, jumps_for, model_for, proposer_for
from factorwise.inference.mcmc.adaptive.jumps import Jumps
from factorwise.inference.mcmc.metropolis import Metropolis
from factorwise.inference.mcmc.parts import Surroundings
from factorwise.inference.mcmc.proposals.best_of import BestOf
from factorwise.inference.mcmc.walk import Walk
from factorwise.kernels.clusterings.adaptive.jump_odds import MERGE, MOVE, SPLIT
from factorwise.learning.samplerank.preferences import TruthPreference
from factorwise.rng import Stream
from reference.jump_features import cluster_row, pair_row

THIRDS = np.arange(9) % 3


def judged_jumps(case, metric, *, proposer=None, **options):
    """Jumps of a walk with a preference."""
    model, preference = model_for(case, 9), TruthPreference(THIRDS, metric)
    kernel = Metropolis(model, proposer or proposer_for(model, parts="guided"))
    return Jumps(Walk(kernel, SOME, judge=preference.program(Surroundings(SOME)), **options)), preference


def test_drawing_leaves_the_walk_alone_and_judges_what_it_draws():
    jumps, preference = judged_jumps("everything", "b-cubed", learning=True)
    walk = jumps.walk
    before, tally, clock = walk.world, walk.parts.walk.tally.copy(), walk.parts.walk.clock.copy()
    drawn = jumps.draw(Stream(5), 60)
    assert {jump.kind for jump in drawn} == {SPLIT, MERGE, MOVE}
    np.testing.assert_array_equal(walk.view.labels, before.labels)
    np.testing.assert_array_equal(walk.parts.walk.tally, tally)
    np.testing.assert_array_equal(walk.parts.walk.clock, clock)
    assert walk.score == pytest.approx(walk.kernel.model.score(before), abs=CLOSE)
    judge = preference.watch(before)
    for jump in drawn:
        assert jump.gain == pytest.approx(walk.kernel.model.gain(before, jump.diff), abs=CLOSE)
        assert jump.better == pytest.approx(judge.gain(before, jump.diff), abs=1e-12)
    walk.weights *= 2.0
    for jump in jumps.draw(Stream(5), 60):
        assert jump.gain == pytest.approx(2.0 * walk.kernel.model.gain(before, jump.diff), abs=CLOSE)


def test_jumps_know_their_rows_among_the_features_however_many_were_drawn():
    jumps = jumps_for("few", 9, SOME)
    between, within = jumps.features()
    world, features = jumps.walk.world, jumps.proposer.features
    for _ in range(3):
        for jump in jumps.draw(Stream(6), 40):
            source = world.members(jump.source).tolist()
            if jump.kind == MERGE:
                expected, row = (
                    pair_row(features, source, world.members(jump.target).tolist(), 9),
                    between,
                )
            else:
                expected, row = cluster_row(features, source, 9), within
            np.testing.assert_allclose(row[jump.row], expected, rtol=1e-5, atol=1e-5)


def test_an_interpreted_walk_draws_the_same():
    drawn = [judged_jumps("few", "rand", interpreted=plain)[0].draw(Stream(5), 30) for plain in (True, False)]
    for one, other in zip(*drawn, strict=True):
        assert one[:5] == other[:5]
        assert one[5:] == pytest.approx(other[5:], abs=CLOSE)


def test_a_jump_that_is_taken_leads_where_its_diff_leads():
    jumps, preference = judged_jumps("everything", "pairwise")
    walk = jumps.walk
    for seed in range(12):
        (jump,) = jumps.draw(Stream(seed), 1)
        world = walk.world.after(jump.diff)
        expected = preference.watch(walk.world).gain(walk.world, jump.diff)
        assert jump.better == pytest.approx(expected, abs=1e-12)
        jumps.take(jump)
        np.testing.assert_array_equal(walk.view.labels, world.labels)
    assert walk.score == pytest.approx(walk.kernel.model.score(world), abs=CLOSE)
    assert_odds_are_kept(jumps, tolerance=1e-4)


def test_jumps_of_a_proposer_inside_another_are_drawn_by_itself():
    model = model_for("few", 9)
    proposer = proposer_for(model)
    inside = Jumps(Walk(Metropolis(model, BestOf(proposer, 4), acceptance="greedy"), SOME))
    assert inside.proposer is proposer
    alone = jumps_for("few", 9, SOME)
    assert inside.draw(Stream(2), 20) == alone.draw(Stream(2), 20)


def test_of_several_jumps_the_one_with_the_highest_gain_is_considered():
    model = model_for("few", 9)
    walk = Walk(Metropolis(model, BestOf(proposer_for(model), 4), acceptance="greedy"), SOME)
    twin, first, second = jumps_for("few", 9, SOME), Stream(1), Stream(1)
    for _ in range(25):
        best = max(twin.draw(second, 4), key=lambda jump: jump.gain)
        assert walk.advance(first, 1.0, 1) == (best.gain > 0.0)
        if best.gain > 0.0:
            twin.take(best)
        np.testing.assert_array_equal(walk.view.labels, twin.walk.view.labels)
        np.testing.assert_array_equal(first.state, second.state)
    assert walk.view != SOME


def test_more_jumps_than_before_may_be_drawn():
    jumps = jumps_for("few", 9, SOME)
    assert [len(jumps.draw(Stream(3), count)) for count in (3, 50, 7)] == [3, 50, 7]
