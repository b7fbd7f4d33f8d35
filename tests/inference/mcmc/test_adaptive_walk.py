"""Walks by adaptive jumps, compiled: the trace of the interpreted functions, and the law."""

from collections import Counter

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
    group_model,
    jumps_for,
    model_for,
    proposer_for,
    walk_for,
)
from factorwise.errors import InvalidArgumentError
from factorwise.inference.mcmc.adaptive.features import JumpFeatures
from factorwise.inference.mcmc.adaptive.jumps import Jumps
from factorwise.inference.mcmc.adaptive.law import JumpWeights
from factorwise.inference.mcmc.adaptive.proposer import AdaptiveSplitMerge
from factorwise.inference.mcmc.engine import make_engine
from factorwise.inference.mcmc.metropolis import Metropolis
from factorwise.inference.mcmc.proposals.mixtures import PartitionMixture
from factorwise.inference.mcmc.proposals.partition_moves import Merge, RelocateToItem, RelocateToNew, Split
from factorwise.inference.mcmc.walk import Walk
from factorwise.kernels.clusterings.adaptive.jump_odds import MERGE, SPLIT
from factorwise.kernels.walks.loops import STAYED
from factorwise.rng import Stream
from factorwise.world.partition import Partition
from reference.jumps import JumpLaw, clusters_of
from thinning import thinned


def walk_freely(walk, stream, steps):
    """Take nearly every jump that is drawn."""
    return walk.advance(stream, 1e9, steps)


def assert_same_trace(compiled, interpreted, seed, temperatures, steps):
    """Every step is that of the functions as they are written: what is drawn, and what becomes of it."""
    fast, plain, changed = Stream(seed), Stream(seed), 0
    interpreted.reset(compiled.world)
    for step in range(steps):
        temperature = temperatures[step % len(temperatures)]
        accepted = interpreted.advance(plain, temperature, 1)
        assert compiled.advance(fast, temperature, 1) == accepted
        moves = [walk.frame.step[0] for walk in (compiled, interpreted)]
        assert moves[0]["log_ratio"] == pytest.approx(moves[1]["log_ratio"], abs=CLOSE)
        np.testing.assert_array_equal(compiled.view.labels, interpreted.view.labels)
        np.testing.assert_array_equal(fast.state, plain.state)
        changed += accepted
    assert compiled.score == pytest.approx(compiled.kernel.model.score(compiled.world), abs=CLOSE)
    return changed


def both(case, n, world, **options):
    return [walk_for(case, n, world, interpreted=interpreted, **options) for interpreted in (False, True)]


SETTINGS = thinned(("uniform", "guided"), KINDS, (0.0, 0.15, 1.0), SCALES)
CASES = [pytest.param(case, marks=pytest.mark.slow if case == "clusters" else ()) for case in MODELS]


@pytest.mark.parametrize("case", CASES)
def test_every_model_is_followed(case):
    for parts in ("uniform", "guided"):
        walks = both(case, 9, SOME, parts=parts)
        assert assert_same_trace(*walks, 3, (0.7, 3.0, 50.0), 40) > 5


@pytest.mark.parametrize(("parts", "kinds", "explore", "scale"), SETTINGS)
def test_every_setting_is_followed(parts, kinds, explore, scale):
    options = {"parts": parts, "kinds": kinds, "explore": explore, "scale": SCALES[scale]}
    compiled, interpreted = both("everything", 9, SOME, **options)
    for seed in range(2):  # from worlds that some settings would not leave again
        walk_freely(compiled, Stream(seed), 20)
        assert_same_trace(compiled, interpreted, seed, (1.0, 20.0), 15)


@pytest.mark.parametrize("case", CASES)
def test_larger_worlds_are_followed_after_a_long_walk(case):
    compiled, interpreted = both(case, 12, None, parts="guided")
    walk_freely(compiled, Stream(1), 500)
    assert assert_same_trace(compiled, interpreted, 2, (0.7, 3.0, 50.0), 25) > 2


def of_pairs_alone(name):
    return "table" not in name


@pytest.mark.parametrize("chosen", [counted, of_pairs_alone])
def test_a_proposer_that_sees_some_of_the_statistics_is_followed(chosen):
    for parts in ("uniform", "guided"):
        compiled, interpreted = both("everything", 9, None, chosen=chosen, parts=parts)
        jumps = Jumps(compiled)
        assert 1 < jumps.proposer.features.size < compiled.kernel.model.blocks.size
        assert assert_same_trace(compiled, interpreted, 5, (1.0, 20.0), 30) > 2
        walk_freely(compiled, Stream(6), 200)
        assert_odds_are_kept(jumps, tolerance=1e-4)


def test_a_proposer_that_sees_another_model_is_followed():
    kernel = Metropolis(model_for("tables", 9), proposer_for(model_for("everything", 9)))
    compiled, interpreted = (Walk(kernel, SOME, interpreted=plain) for plain in (False, True))
    assert assert_same_trace(compiled, interpreted, 5, (1.0, 20.0), 30) > 2


def test_a_mixture_with_other_moves_is_followed():
    model = model_for("few", 9)
    moves = [proposer_for(model, parts="guided"), RelocateToItem(), RelocateToNew(), Merge(), Split()]
    kernel = Metropolis(model, PartitionMixture(moves, [3.0, 1.0, 1.0, 1.0, 1.0]))
    compiled, interpreted = (Walk(kernel, SOME, interpreted=plain) for plain in (False, True))
    assert assert_same_trace(compiled, interpreted, 5, (1.0, 20.0), 60) > 10
    walk_freely(compiled, Stream(6), 200)
    assert_odds_are_kept(Jumps(compiled))


def log_ratio_by_law(law, before, after, kind, changes):
    """By the definition, of a jump that is not guided."""
    part = frozenset(changes["item"].tolist())
    if kind == MERGE:
        (joined,) = after - before
        gone = before - after
        return law.log_split(after, *gone, ()) - law.log_merge(before, *gone)
    source = next(cluster for cluster in before if part < cluster)
    if kind == SPLIT:
        return law.log_merge(after, part, source - part) - law.log_split(before, part, source - part, ())
    joined = next(cluster for cluster in after if part < cluster)
    forward = law.log_move(before, source, part, joined - part)
    return law.log_move(after, joined, part, source - part) - forward


def assert_ratios_of_the_law(walk, stream, temperature, steps, tolerance):
    """Look at the ratio of every jump that is drawn; return how often each kind was."""
    jumps = Jumps(walk)
    law, kinds = JumpLaw(jumps.proposer, walk.view.n_items), Counter()
    for _ in range(steps):
        before = clusters_of(walk.view)
        walk.advance(stream, temperature, 1)
        step = walk.frame.step[0]
        # the clustering of the proposer is at the world proposed, accepted or not
        after = clusters_of(Partition.from_keys(jumps.arrays["label"]))
        kind = int(jumps.arrays["kind"][0])
        expected = log_ratio_by_law(law, before, after, kind, walk.frame.changes[: step["changes"]])
        assert step["log_ratio"] == pytest.approx(expected, abs=tolerance)
        kinds[kind] += 1
    return kinds


@pytest.mark.parametrize("case", ["everything", "tables", "edges"])
def test_ratios_of_compiled_walks_are_those_of_the_definition(case):
    walk = walk_for(case, 9, SOME)
    kinds = assert_ratios_of_the_law(walk, Stream(4), 20.0, 60, CLOSE)
    assert len(kinds) == 3


@pytest.mark.parametrize("explore", [0.0, 0.3])
def test_the_chances_of_the_way_back_are_exact_where_one_pair_outweighs_all_others(explore):
    """Large clusters attract each other e^100 times as much as small ones, which come and go.

    What is left of a sum when its largest entry is gone is then far below the rounding of the sum.
    """
    walk = walk_for("tables", 7, Partition.singletons(7), explore=explore, size=150.0)
    kinds = assert_ratios_of_the_law(walk, Stream(1), 300.0, 150, 1e-9)
    assert kinds[SPLIT] > 20


def test_a_single_item_never_moves():
    for parts in ("uniform", "guided"):
        walk = walk_for("tables", 1, Partition.singletons(1), parts=parts)
        stream = Stream(0)
        assert walk.advance(stream, 1.0, 3) == 0
        np.testing.assert_array_equal(stream.state, Stream(0).state)
        assert walk.parts.walk.tally[STAYED] == 3
        assert not walk.kernel.step(Stream(0), Partition.singletons(1)).accepted
        assert Jumps(walk).draw(stream, 4) == []


def test_ratios_are_found_only_where_somebody_asks():
    for acceptance, asked in (("metropolis", True), ("barker", True), ("greedy", False), ("truth", False)):
        walk = walk_for("few", 9, SOME, acceptance=acceptance)
        walk.advance(Stream(0), 1.0, 20)
        assert (walk.frame.step["log_ratio"][0] != 0.0) == asked


BAD = {
    "another proposer": (
        lambda: Jumps(Walk(Metropolis(FOUR, PartitionMixture([Merge(), Split()])), APART)),
        InvalidArgumentError,
        r"proposer is PartitionMixture: give Walk\(Metropolis\(model, AdaptiveSplitMerge",
    ),
    "types": (
        lambda: Walk(Metropolis(FOUR, adaptive(FOUR)), Partition.singletons(4, n_types=2)),
        InvalidArgumentError,
        "use a PartitionMixture of Merge, Split and RetypeCluster",
    ),
    "weights for other features": (
        lambda: setattr(
            Jumps(Walk(Metropolis(FOUR, adaptive(FOUR)), APART)),
            "weights",
            JumpWeights.zero(JumpFeatures(OTHER_NAMES).names),
        ),
        InvalidArgumentError,
        "choose the same features, of models with the same templates",
    ),
    "a model for features": (
        lambda: AdaptiveSplitMerge(FOUR),
        InvalidArgumentError,
        "needs features, but Model was given",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_done_is_refused_with_a_remedy(name):
    build, error, message = BAD[name]
    with pytest.raises(error, match=message):
        build()


def test_chains_are_made_of_it():
    for parts in ("uniform", "guided"):
        model = group_model([0, 0, 1, 1])
        sampler = Metropolis(model, AdaptiveSplitMerge(JumpFeatures(model), parts=parts))
        assert isinstance(make_engine(sampler, APART, "compiled"), Walk)


def test_guided_parts_with_links_walk_compiled():
    jumps = jumps_for("links", 9, SOME, parts="guided")
    assert jumps.walk.advance(Stream(0), 1.0, 100) == 100
    assert_odds_are_kept(jumps)
