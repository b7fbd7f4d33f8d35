"""Adaptive jumps in compiled code: every step is that of the plain proposer."""

import math

import numpy as np
import pytest

from adaptive_cases import (
    APART,
    CLOSE,
    FOUR,
    KINDS,
    MODELS,
    OTHER_NAMES,
    SCALES,
    SOME,
    adaptive,
    assert_odds_are_kept,
    counted,
    engine_for,
    group_model,
    parts_of,
    walk_freely,
)
from factorwise.errors import InvalidArgumentError, NoCompiledFormError
from factorwise.inference.mcmc.adaptive.engine import JumpEngine
from factorwise.inference.mcmc.adaptive.features import JumpFeatures
from factorwise.inference.mcmc.adaptive.law import JumpWeights
from factorwise.inference.mcmc.adaptive.proposer import AdaptiveSplitMerge
from factorwise.inference.mcmc.engine import PlainEngine, PlainEngineWarning, make_engine
from factorwise.inference.mcmc.metropolis import Metropolis, log_acceptance
from factorwise.inference.mcmc.partition_mixture import PartitionMixture
from factorwise.inference.mcmc.partition_moves import Merge, Split
from factorwise.kernels.clusterings.jump_odds import LOG_RATIO, SPLIT
from factorwise.rng import Stream
from factorwise.world.partition import Partition
from thinning import thinned


def assert_same_trace(engine, stream, temperatures, steps):
    """Every step is the plain one: what is drawn, its chances there and back, and what becomes of it."""
    proposer, model = engine.kernel.proposer, engine.kernel.model
    plain, world, score, changed = stream.copy(), engine.world, engine.score, 0
    for step in range(steps):
        temperature = temperatures[step % len(temperatures)]
        proposal = proposer.draw(plain, world)
        chance = plain.uniform()
        gain = model.gain(world, proposal.diff)
        accepted = chance < math.exp(log_acceptance(gain, proposal, temperature))
        assert engine.advance(stream, temperature, 1) == accepted
        ratio = proposal.log_backward - proposal.log_forward
        assert engine._jumps.logs[LOG_RATIO] == pytest.approx(ratio, abs=CLOSE)
        if accepted:
            world.apply(proposal.diff)
            score += gain
            changed += 1
        np.testing.assert_array_equal(engine.view.labels, world.labels)
        np.testing.assert_array_equal(stream.state, plain.state)
    assert engine.score == pytest.approx(score, abs=CLOSE)
    assert not engine.view.arrays.items["mark"].any()
    return changed


SETTINGS = thinned(("uniform", "guided"), KINDS, (0.0, 0.15, 1.0), SCALES)


CASES = [pytest.param(case, marks=pytest.mark.slow if case == "functions" else ()) for case in MODELS]


@pytest.mark.parametrize("case", CASES)
def test_every_model_is_followed(case):
    for parts in ("uniform",) if case == "links" else ("uniform", "guided"):
        engine = engine_for(case, 9, SOME, parts=parts)
        assert assert_same_trace(engine, Stream(3), (0.7, 3.0, 50.0), 50) > 5


@pytest.mark.parametrize(("parts", "kinds", "explore", "scale"), SETTINGS)
def test_every_setting_is_followed(parts, kinds, explore, scale):
    engine = engine_for("everything", 9, SOME, parts=parts, kinds=kinds, explore=explore, scale=SCALES[scale])
    for seed in range(2):  # from worlds that some settings would not leave again
        walk_freely(engine, Stream(seed), 20)
        assert_same_trace(engine, Stream(seed, 1), (1.0, 20.0), 20)


@pytest.mark.parametrize("case", CASES)
def test_larger_worlds_are_followed_for_long(case):
    parts = "uniform" if case == "links" else "guided"
    engine = engine_for(case, 12, parts=parts, scale=2.0)
    walk_freely(engine, Stream(1), 500)
    assert assert_same_trace(engine, Stream(2), (0.7, 3.0, 50.0), 25) > 2


def of_pairs_alone(name):
    return "table" not in name


@pytest.mark.parametrize("chosen", [counted, of_pairs_alone])
def test_a_proposer_that_sees_some_of_the_statistics_is_followed(chosen):
    for parts in ("uniform", "guided"):
        engine = engine_for("everything", 9, chosen=chosen, parts=parts)
        assert 1 < engine.proposer.features.size < engine.kernel.model.blocks.size
        assert assert_same_trace(engine, Stream(5), (1.0, 20.0), 30) > 2
        walk_freely(engine, Stream(6), 200)
        assert_odds_are_kept(engine, tolerance=1e-4)


@pytest.mark.parametrize("explore", [0.0, 0.3])
def test_the_chances_of_the_way_back_are_exact_where_one_pair_outweighs_all_others(explore):
    """Large clusters attract each other e^100 times as much as small ones, which come and go.

    What is left of a sum when its largest entry is gone is then far below the rounding of the sum.
    """
    engine = engine_for("tables", 7, Partition.singletons(7), explore=explore, size=150.0)
    proposer, stream, worst, splits = engine.kernel.proposer, Stream(1), 0.0, 0
    for _ in range(150):
        proposal = proposer.draw(stream.copy(), engine.view)
        engine.advance(stream, 300.0, 1)
        worst = max(worst, abs(proposal.log_backward - proposal.log_forward - engine._jumps.logs[LOG_RATIO]))
        splits += engine._jumps.jump[0] == SPLIT
    assert splits > 20
    assert worst < 1e-9


def test_a_single_item_never_moves():
    for parts in ("uniform", "guided"):
        engine = engine_for("tables", 1, Partition.singletons(1), parts=parts)
        stream, plain = Stream(0), Stream(0)
        assert engine.advance(stream, 1.0, 3) == 0
        for _ in range(3):
            assert not engine.kernel.step(plain, Partition.singletons(1)).accepted
        np.testing.assert_array_equal(stream.state, plain.state)
        assert engine.draw(stream, 4) == []


BAD = {
    "features of another model": (
        lambda: JumpEngine(Metropolis(FOUR, adaptive(group_model([0, 0, 1, 1]))), APART),
        InvalidArgumentError,
        r"build JumpFeatures\(model\) of the model that is sampled",
    ),
    "another proposer": (
        lambda: JumpEngine(Metropolis(FOUR, PartitionMixture([Merge(), Split()])), APART),
        NoCompiledFormError,
        "PartitionMixture is no AdaptiveSplitMerge",
    ),
    "types": (
        lambda: JumpEngine(Metropolis(FOUR, adaptive(FOUR)), Partition.singletons(4, n_types=2)),
        InvalidArgumentError,
        "mix Merge, Split and RetypeCluster in a PartitionMixture",
    ),
    "guided parts with links": (
        lambda: engine_for("links", 5, parts="guided"),
        NoCompiledFormError,
        "leave it out, split uniformly, or run with engine='plain'",
    ),
    "weights for other features": (
        lambda: setattr(
            JumpEngine(Metropolis(FOUR, adaptive(FOUR)), APART),
            "weights",
            JumpWeights.zero(JumpFeatures(OTHER_NAMES).names),
        ),
        InvalidArgumentError,
        "choose the same features of models built alike",
    ),
    "contrastive divergence": (
        lambda: JumpEngine(Metropolis(FOUR, adaptive(FOUR)), APART).contrast(),
        NoCompiledFormError,
        "give a PartitionMixture, or learn with engine='plain'",
    ),
    "mixed with other moves": (
        lambda: PartitionMixture([adaptive(FOUR), Merge()]),
        InvalidArgumentError,
        "not a move that can be mixed",
    ),
    "a model for features": (
        lambda: AdaptiveSplitMerge(FOUR),
        InvalidArgumentError,
        "sees features, but Model was given",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_done_is_refused_with_a_remedy(name):
    build, error, message = BAD[name]
    with pytest.raises(error, match=message):
        build()


def test_guided_parts_with_links_walk_plainly():
    model, _, features = parts_of("links", 5)
    sampler = Metropolis(model, AdaptiveSplitMerge(features, parts="guided"))
    with pytest.warns(PlainEngineWarning, match="guided parts have no compiled form"):
        engine = make_engine(sampler, Partition.singletons(5), "auto")
    assert isinstance(engine, PlainEngine)
    uniform = Metropolis(model, AdaptiveSplitMerge(features))
    assert isinstance(make_engine(uniform, Partition.singletons(5), "auto"), JumpEngine)
