"""SampleRank by adaptive jumps: compiled against plain, and with the proposer tuned on the way."""

import numpy as np
import pytest

from factorwise.errors import InvalidArgumentError
from factorwise.inference.mcmc.acceptances import as_acceptance
from factorwise.inference.mcmc.adaptive import (
    AdaptiveSplitMerge,
    JumpFeatures,
    Jumps,
    JumpWeights,
    Tuning,
)
from factorwise.inference.mcmc.proposals.mixtures import PartitionMixture
from factorwise.inference.mcmc.proposals.partition_moves import Merge, Split
from factorwise.learning.samplerank.learner import SampleRank
from factorwise.learning.samplerank.preferences import TruthPreference
from factorwise.learning.samplerank.walkers import TrainingWorld, make_walkers
from factorwise.learning.updates import as_rule
from factorwise.model.clusterings.table_templates import PairTableTemplate
from factorwise.model.model import Model
from factorwise.model.templates import ClusterSize
from factorwise.rng import Stream
from factorwise.variables.pair_table import PairTable
from factorwise.world.partition import Partition

ENTITY = [0, 0, 0, 1, 1, 2, 3, 3]
WAYS = [("metropolis", 1), ("unbalanced", 2), ("greedy", 3), ("always", 1), ("truth", 2)]


def small_document(seed=0, noise=0.1):
    """Eight mentions; two features tell, with some noise, whether two belong together or apart."""
    generator = np.random.default_rng(seed)
    same = np.equal.outer(ENTITY, ENTITY)
    flips = np.triu(generator.random(same.shape) < noise, 1)
    seen = same ^ flips ^ flips.T
    return PairTable.from_squares({"alike": seen, "unlike": ~seen})


def training_world(*, seed=0, parts="uniform", weights=None, tuning=None, proposer=None):
    model = Model([PairTableTemplate("pairs", small_document(seed), ["count", "exists"]), ClusterSize()])
    adaptive = AdaptiveSplitMerge(JumpFeatures(model), parts=parts, explore=0.2)
    if weights is not None:
        width = adaptive.features.size
        values = np.random.default_rng(weights).normal(size=(2, width))
        adaptive = adaptive.with_weights(JumpWeights(adaptive.features.names, *values, (0.3, 0.5, 0.2)))
    return TrainingWorld(
        model=model,
        proposer=proposer or adaptive,
        start=Partition.singletons(len(ENTITY)),
        preference=TruthPreference(ENTITY, "b-cubed"),
        truth=Partition.from_keys(ENTITY),
        tuning=tuning,
    )


def learned(world, *, accept="greedy", best_of=1, engine="auto"):
    learner = SampleRank(accept=accept, best_of=best_of)
    return learner.fit([world], passes=2, steps=40, seed=3, engine=engine, progress=False)


def walker_of(world, *, accept="greedy", engine="auto"):
    """A walker that learns by MIRA, and the arrays of its rule."""
    rule = as_rule("mira")
    arrays = rule.arrays(world.model.blocks.size)
    program = rule.program(arrays)
    (walker,) = make_walkers(
        [world],
        engine,
        acceptance=as_acceptance(accept),
        weights=arrays.weights,
        clock=arrays.clock,
        roles=lambda training: {"update": program},
        judged=True,
    )
    return walker, arrays


@pytest.mark.parametrize("parts", ["uniform", "guided"])
@pytest.mark.parametrize(("accept", "best_of"), WAYS)
def test_compiled_and_plain_walks_learn_the_same(accept, best_of, parts):
    world = training_world(weights=1, parts=parts)
    compiled, plain = (
        learned(world, accept=accept, best_of=best_of, engine=engine) for engine in ("compiled", "plain")
    )
    np.testing.assert_allclose(compiled.last, plain.last, rtol=1e-9, atol=1e-12)
    assert [record.accepted for record in compiled.history] == [record.accepted for record in plain.history]


def test_a_tuned_proposer_leads_the_walk_to_the_truth_in_fewer_jumps():
    """Counted until the walk, which follows the truth, has come to it, summed over five documents."""

    def jumps_needed(tuning, seed):
        walker, _ = walker_of(training_world(seed=seed, tuning=tuning), accept="truth")
        stream = Stream(seed)
        for jump in range(1, 500):
            walker.advance(stream, 1.0, 1)
            if walker.value == 1.0:
                return jump
        return 500

    tuned = sum(jumps_needed(Tuning(every=5, iterations=5, samples=30), seed) for seed in range(5))
    uniform = sum(jumps_needed(None, seed) for seed in range(5))
    assert tuned < 0.7 * uniform


def test_rounds_of_tuning_come_before_every_so_many_steps_and_count_as_none():
    tuning = Tuning(every=4, iterations=3, samples=20)
    world = training_world(tuning=tuning)
    (walker, arrays), stream = walker_of(world), Stream(0)
    jumps, weights = Jumps(walker.walk), []
    assert not jumps.weights.vector.any()
    for steps in (1, 2, 1, 4, 3):
        walker.advance(stream, 1.0, steps)
        weights.append(jumps.weights.vector)
    assert weights[0].any()
    for before, after, tuned in zip(weights, weights[1:], (False, False, True, True), strict=False):
        assert (before != after).any() == tuned
    assert arrays.clock[0] == 11
    assert not world.proposer.learned.vector.any(), "the proposer that was given stays as it is"


def test_tuning_on_the_way_is_refused_where_the_chain_would_have_to_be_valid():
    with pytest.raises(InvalidArgumentError, match="not a valid Metropolis-Hastings chain"):
        learned(training_world(tuning=Tuning()), accept="metropolis")


def test_tuning_is_refused_without_an_adaptive_proposer_or_in_plain_python():
    fixed = training_world(proposer=PartitionMixture([Merge(), Split()]), tuning=Tuning())
    with pytest.raises(InvalidArgumentError, match="the proposer is PartitionMixture"):
        walker_of(fixed)
    with pytest.raises(InvalidArgumentError, match="engine='plain'"):
        walker_of(training_world(tuning=Tuning()), engine="plain")


def test_a_plain_walker_takes_a_proposer_with_frozen_weights():
    assert not walker_of(training_world(), engine="plain")[0].is_compiled
