"""Jumps that are drawn without being taken, taken one by one, or the best of several."""

import numpy as np
import pytest

from adaptive_cases import CLOSE, SOME, assert_odds_are_kept, engine_for
from factorwise.inference.mcmc.gradient_engine import Manner
from factorwise.kernels.clusterings.jump_odds import MERGE, MOVE, SPLIT
from factorwise.learning.preferences import TruthPreference
from factorwise.rng import Stream
from factorwise.world.diff import Transfer


def test_drawing_leaves_the_world_alone_and_judges_what_it_draws():
    engine = engine_for("everything", 9, SOME, parts="guided")
    truth = TruthPreference(np.arange(9) % 3, "b-cubed").arrays(engine.view)
    before, value = engine.world, truth.sums.copy()
    jumps = engine.draw(Stream(5), 60, truth=truth)
    assert {jump.kind for jump in jumps} == {SPLIT, MERGE, MOVE}
    np.testing.assert_array_equal(engine.view.labels, before.labels)
    np.testing.assert_array_equal(truth.sums, value)
    judge = TruthPreference(np.arange(9) % 3, "b-cubed").watch(before)
    for jump in jumps:
        diff = Transfer(jump.items, jump.source, jump.target)
        assert jump.gain == pytest.approx(engine.kernel.model.gain(before, diff), abs=CLOSE)
        assert jump.better == pytest.approx(judge.gain(before, diff), abs=1e-12)
    doubled = engine.draw(Stream(5), 60, model_weights=2.0 * engine.kernel.model.weights)
    assert [jump.gain for jump in doubled] == pytest.approx([2 * jump.gain for jump in jumps])


def test_a_jump_that_is_taken_leads_where_its_diff_leads():
    engine = engine_for("everything", 9, SOME)
    truth = TruthPreference(np.arange(9) % 3, "pairwise").arrays(engine.view)
    for seed in range(12):
        (jump,) = engine.draw(Stream(seed), 1, truth=truth)
        world = engine.world.after(Transfer(jump.items, jump.source, jump.target))
        engine.take(jump, truth)
        np.testing.assert_array_equal(engine.view.labels, world.labels)
    assert engine.score == pytest.approx(engine.kernel.model.score(world), abs=CLOSE)
    fresh = TruthPreference(np.arange(9) % 3, "pairwise").arrays(world)
    np.testing.assert_array_equal(truth.sums, fresh.sums)
    assert_odds_are_kept(engine, tolerance=1e-4)


@pytest.mark.parametrize("accept", ["greedy", "truth"])
def test_of_several_jumps_the_one_with_the_highest_gain_is_considered(accept):
    engine, twin = (engine_for("few", 9, SOME) for _ in range(2))
    entities = TruthPreference(np.arange(9) % 3, "rand")
    truth, other = (entities.arrays(each.view) for each in (engine, twin))
    manner = Manner(accept, best_of=4)
    first, second = Stream(1), Stream(1)
    for _ in range(25):
        drawn = twin.draw(second, 4, truth=other)
        second.uniform()
        best = max(drawn, key=lambda jump: jump.gain)
        worth = (best.better, best.gain) if accept == "truth" else (best.gain,)
        taken = worth > (0.0,) * len(worth)
        assert engine.learn(first, manner, engine._resting, truth, 1, learning=False) == taken
        if taken:
            twin.take(best, other)
        np.testing.assert_array_equal(engine.view.labels, twin.view.labels)
        np.testing.assert_array_equal(first.state, second.state)
    assert engine.factors_seen == twin.factors_seen
    assert engine.view != SOME
