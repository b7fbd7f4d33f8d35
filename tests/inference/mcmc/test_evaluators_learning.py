"""SampleRank from a sample of the factors that each step touches."""

from dataclasses import replace

import numpy as np
import pytest

from factorwise.errors import InvalidArgumentError, NoCompiledFormError
from factorwise.inference.mcmc import (
    ConfidenceSample,
    PartitionMixture,
    PlainEngineWarning,
    PoissonMinibatch,
    RelocateToItem,
    RelocateToNew,
    UniformSample,
)
from factorwise.inference.mcmc.acceptances import GREEDY
from factorwise.kernels.compile.programs import Program
from factorwise.kernels.walks.loops import CLOCK
from factorwise.learning.samplerank.learner import SampleRank
from factorwise.learning.samplerank.plain_walks import PlainWalk
from factorwise.learning.samplerank.preferences import TruthPreference
from factorwise.learning.samplerank.walkers import TrainingWorld, make_walkers
from factorwise.model.model import Model
from factorwise.model.templates import PairTemplate
from factorwise.rng import Stream
from factorwise.variables.fields import Fields
from factorwise.world.partition import Partition
from walk_cases import MIXTURES, whole_world

TRUTH = np.repeat([0, 1, 2], 5)


def compare(a, b):
    return (a.key == b.key, a.key != b.key, a.noise == b.noise)


def training(evaluator):
    """Entities that one field tells apart, and one field that says nothing."""
    fields = Fields(key=TRUTH, noise=np.random.default_rng(0).integers(0, 3, len(TRUTH)))
    return TrainingWorld(
        model=Model([PairTemplate("pairs", fields, compare, ["same", "different", "noise"])]),
        proposer=PartitionMixture([RelocateToItem(), RelocateToNew()]),
        start=Partition.singletons(len(TRUTH)),
        preference=TruthPreference(TRUTH),
        truth=Partition.from_keys(TRUTH),
        evaluator=evaluator,
    )


def test_a_sample_of_everything_learns_the_same_weights():
    world = whole_world(1, proposer=MIXTURES["items"])
    exact = SampleRank(update="unit").fit([world], passes=1, steps=120, engine="plain", progress=False)
    sampled = SampleRank(update="unit").fit(
        [replace(world, evaluator=UniformSample(1.0))],
        passes=1,
        steps=120,
        engine="plain",
        progress=False,
    )
    assert exact.updates > 0
    np.testing.assert_allclose(sampled.weights, exact.weights)


@pytest.mark.parametrize(
    "evaluator",
    [
        UniformSample(0.4),
        UniformSample(0.4, "sum"),
        ConfidenceSample(0.5, minimum=2),
        ConfidenceSample(0.5, pooled=False),
    ],
)
def test_sampled_gradients_learn_what_tells_entities_apart(evaluator):
    learner = SampleRank(update="unit")
    found = learner.fit([training(evaluator)], passes=4, steps=400, engine="plain", progress=False)
    same, different, noise = found.weights
    assert found.updates > 0
    assert same + min(noise, 0.0) > 0.0  # every pair of one entity attracts
    assert different + max(noise, 0.0) < 0.0  # and every other pair repels


def looking(training, engine, look=None, weights=(0.0, 0.0, 0.0)):
    """A walker that goes where the score rises, and lets a rule look at every better or worse move."""
    rule = Program(update=look or (lambda move: 0.0))
    (walker,) = make_walkers(
        [training],
        engine,
        acceptance=GREEDY,
        weights=np.array(weights),
        clock=np.zeros(CLOCK, np.int64),
        roles=lambda world: {"update": rule},
        judged=True,
    )
    return walker


def test_gain_and_gradient_come_from_the_same_sample():
    seen = []
    weights = np.array([1.0, -1.0, 0.0])  # no step leads away, so the sizes stay as they are

    def look(move, gradient):
        values = gradient.value[: move.entries]
        seen.append(np.abs(values).sum())
        assert move.gain == pytest.approx(weights[gradient.index[: move.entries]] @ values)
        return 0.0

    walker = looking(training(UniformSample(0.4, "sum")), "plain", look, weights)
    walker.reset(Partition.from_keys(TRUTH))
    walker.advance(Stream(3), 1.0, 60)
    # five to join and four to leave are nine factors, of which four are sampled; a move to a cluster of its
    # own has four, of which two are
    assert len(seen) > 20
    assert max(seen) <= 2 * 4  # a pair has a statistic of 1 in "same" or "different", and perhaps in "noise"
    assert walker.walk.factors_seen in range(2 * len(seen), 4 * len(seen) + 1)


def test_learning_from_samples_is_not_walked_exactly_by_compiled_code():
    with pytest.raises(NoCompiledFormError, match="engine='plain'"):
        looking(training(UniformSample(0.5)), "compiled")
    with pytest.warns(PlainEngineWarning, match="UniformSample"):
        assert isinstance(looking(training(UniformSample(0.5)), "auto").walk, PlainWalk)


def test_nothing_is_learned_from_an_evaluator_without_a_gradient():
    with pytest.raises(InvalidArgumentError, match="UniformSample"):
        training(PoissonMinibatch())
