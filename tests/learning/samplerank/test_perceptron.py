"""The structured perceptron with annealing: by hand, compiled against plain, and on a separable task."""

import numpy as np
import pytest

from factorwise.errors import InvalidArgumentError
from factorwise.inference.exact.clusterings import all_partitions
from factorwise.inference.mcmc.metropolis import Metropolis
from factorwise.inference.mcmc.proposals.mixtures import PartitionMixture
from factorwise.inference.mcmc.proposals.partition_moves import Merge, Split
from factorwise.inference.mcmc.run import anneal
from factorwise.inference.mcmc.schedules import Constant
from factorwise.learning.samplerank.perceptron import StructuredPerceptron
from factorwise.learning.samplerank.walkers import TrainingWorld
from factorwise.model.clusterings.table_templates import PairTableTemplate
from factorwise.model.model import Model
from factorwise.variables.pair_table import PairTable
from factorwise.world.partition import Partition
from walk_cases import MIXTURES, statistics_of, tell_tale_world, whole_world

ENGINES = ("compiled", "plain")


def fitted(learner, worlds, **options):
    return learner.fit(worlds, **{"passes": 2, "steps": 60, "progress": False, **options})


@pytest.mark.parametrize("engine", ENGINES)
def test_corrections_are_those_worked_out_on_paper(engine):
    """Near temperature zero a weight of -1 keeps two items apart that belong together: +3 gives 2.

    From then on the search ends in the truth and nothing is left to correct.
    """
    training = TrainingWorld(
        model=Model([PairTableTemplate("table", PairTable(2, ["f"], [[1]]), ("count",))]),
        proposer=PartitionMixture([Merge(), Split()]),
        start=Partition.singletons(2),
        truth=Partition.from_labels([0, 0]),
    )
    learner = StructuredPerceptron(rate=3.0, schedule=Constant(1e-3))
    found = fitted(learner, [training], passes=4, weights=[-1.0], engine=engine)
    assert found.last.tolist() == [2.0]
    assert found.mean.tolist() == [2.0]
    assert [record.updates for record in found.history] == [1, 0, 0, 0]
    assert found.radius == 1.0
    worse = fitted(learner, [training], passes=2, weights=[-7.0], engine=engine)
    assert worse.last.tolist() == [-1.0]
    assert worse.mean.tolist() == [-2.5]  # the mean of -4 and -1


def test_compiled_and_plain_searches_learn_the_same():
    """All statistics are whole numbers, so that nothing is rounded."""
    worlds = [whole_world(seed, 8, n_types=2) for seed in (2, 3)]
    learner = StructuredPerceptron(fixed=("edges",))
    fast, slow = (fitted(learner, worlds, engine=engine) for engine in ENGINES)
    np.testing.assert_array_equal(fast.last, slow.last)
    np.testing.assert_allclose(fast.mean, slow.mean, rtol=1e-12)
    assert fast.radius == slow.radius > 0.0
    assert fast.updates == slow.updates > 0
    edges = worlds[0].model.blocks.slice_of("edges")
    assert not fast.last[edges].any()
    for a, b in zip(fast.history, slow.history, strict=True):
        assert a.accepted == b.accepted
        assert a.value == pytest.approx(b.value)


@pytest.mark.parametrize("average", [True, False])
@pytest.mark.parametrize("mixture", ["items", "many"])
def test_on_a_separable_task_annealing_finds_the_truth_with_the_learned_weights(mixture, average):
    training = tell_tale_world([0, 0, 0, 1, 1, 2], MIXTURES[mixture], noise=3)
    found = fitted(StructuredPerceptron(average=average), [training], passes=25, steps=600)
    assert found.updates > 0
    assert found.history[-1].updates == 0
    assert found.history[-1].value == 1.0
    model = Model(training.model.templates, found.weights)
    scores = [statistics_of(model, world) @ found.weights for world in all_partitions(6)]
    assert model.score(training.truth) == pytest.approx(max(scores))
    kernel = Metropolis(model, training.proposer)
    assert anneal(kernel, training.start, steps=3_000, progress=False).best == training.truth


def test_the_same_seed_gives_the_same_bits():
    worlds = [whole_world(seed, 9) for seed in range(2)]
    first, again = (fitted(StructuredPerceptron(), worlds, seed=5) for _ in range(2))
    assert first.last.tobytes() == again.last.tobytes()


def test_fewer_steps_than_temperatures_are_enough():
    assert len(fitted(StructuredPerceptron(), [whole_world(1, 6)], steps=1).history) == 2


REFUSED = {
    "no rate": (lambda: StructuredPerceptron(rate=0.0), "rate must be greater than zero"),
    "no steps": (
        lambda: fitted(StructuredPerceptron(), [whole_world(1, 4)], steps=0),
        "steps must be at least 1",
    ),
    "no truth": (
        lambda: fitted(
            StructuredPerceptron(),
            [
                TrainingWorld(
                    model=whole_world(1, 4).model,
                    proposer=MIXTURES["items"],
                    start=Partition.singletons(4),
                )
            ],
        ),
        r"world 0 has no truth: give TrainingWorld\(truth=...\)",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_learned_from_is_refused_with_a_remedy(name):
    call, remedy = REFUSED[name]
    with pytest.raises(InvalidArgumentError, match=remedy):
        call()
