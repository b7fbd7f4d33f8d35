"""Contrastive divergence: compiled against plain, home again, its expected step, and the likelihood."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import norm

from factorwise.errors import InvalidArgumentError, ShapeError
from factorwise.inference.exact.clusterings import all_partitions
from factorwise.inference.mcmc.acceptances import as_acceptance
from factorwise.inference.mcmc.metropolis import Metropolis
from factorwise.kernels.walks.loops import walk_moves
from factorwise.learning.samplerank.contrastive import (
    ContrastiveDivergence,
    enter_path,
    path_from_truth,
    path_programs,
)
from factorwise.learning.samplerank.preferences import TruthPreference
from factorwise.learning.samplerank.walkers import TrainingWorld, distance_from_truth, make_walkers
from factorwise.learning.updates import Unit
from factorwise.model.clusterings.table_templates import PairTableTemplate
from factorwise.model.model import Model
from factorwise.model.templates import ClusterSize
from factorwise.rng import Stream
from factorwise.world.partition import Partition
from plain_transitions import transition_matrix
from walk_cases import EVERY, MIXTURES, statistics_of, table_for, whole_world

FALSE_ALARM = 1e-4  # chance that a correct learner fails one statistical test
ENGINES = ("compiled", "plain")
FORMS = {
    "CD-1": {"length": 1},
    "CD-10": {"length": 10},
    "PCD-1": {"length": 1, "persistent": True},
    "PCD-4": {"length": 4, "persistent": True},
}


def fitted(learner, worlds, **options):
    return learner.fit(worlds, **{"passes": 2, "steps": 40, "progress": False, **options})


def walker_of(training, engine, *, length, persistent, accept="always", rate=0.5):
    """A walker of contrastive divergence, the arrays of its rule, and its path."""
    arrays = Unit().arrays(training.model.blocks.size)
    path = path_from_truth(arrays, persistent=persistent)
    path["rate"][0] = rate
    (walker,) = make_walkers(
        [training],
        engine,
        acceptance=as_acceptance(accept),
        weights=arrays.weights,
        clock=arrays.clock,
        roles=lambda world: path_programs(path),
        journal=0 if persistent else length,
    )
    return walker, arrays, path


def assert_same_learned(first, second):
    """Rates are powers of two and statistics whole numbers, so that nothing is rounded."""
    np.testing.assert_array_equal(first.last, second.last)
    np.testing.assert_allclose(first.mean, second.mean, rtol=1e-12, atol=1e-12)
    for a, b in zip(first.history, second.history, strict=True):
        assert a[:5] == b[:5]
        assert a.value == pytest.approx(b.value)


@pytest.mark.parametrize("mixture", MIXTURES)
@pytest.mark.parametrize("form", FORMS)
def test_compiled_and_plain_walks_learn_the_same(form, mixture):
    worlds = [whole_world(seed, 8, n_types=2, proposer=MIXTURES[mixture]) for seed in (2, 3)]
    learner = ContrastiveDivergence(**FORMS[form], rate=0.125, temperature=2.0)
    fast, slow = (fitted(learner, worlds, engine=engine) for engine in ENGINES)
    assert_same_learned(fast, slow)
    assert fast.last.any()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("accept", ["unbalanced", "greedy", "always"])
def test_compiled_and_plain_walks_learn_the_same_for_every_way_of_walking(form, accept):
    world = whole_world(4, 8, n_types=2)
    learner = ContrastiveDivergence(**FORMS[form], rate=0.125, accept=accept, best_of=2)
    fast, slow = (fitted(learner, [world], engine=engine) for engine in ENGINES)
    assert_same_learned(fast, slow)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("mixture", MIXTURES)
def test_after_every_round_the_walk_is_back_at_the_truth(mixture, engine):
    """All steps are accepted, so that every kind of transfer is taken back, in typed worlds too."""
    training = whole_world(6, 14, n_types=2, proposer=MIXTURES[mixture])
    walker, arrays, path = walker_of(training, engine, length=10, persistent=False)
    walker.reset(training.truth)
    tables = table_arrays(walker)
    counts = tables["counts"].copy()
    for seed in range(30 if engine == "compiled" else 4):
        before = arrays.weights.copy()
        assert walker.advance(Stream(seed), 1.0, 10, episode=10) > 0
        assert walker.world == training.truth
        assert walker.value == pytest.approx(1.0)
        live = walker.world.cluster_ids()
        np.testing.assert_array_equal(tables["counts"][live], counts[live])  # ids stay with their clusters
        world = walker.walk.view.arrays
        np.testing.assert_array_equal(world.ints[:, world.slot], world.item_ints.T)
        assert not path["path"].any()
        assert np.isfinite(arrays.weights).all()
        assert (arrays.weights * 2 == np.round(arrays.weights * 2)).all()
    assert (arrays.weights != before).any() or mixture == "many"


def table_arrays(walker):
    parts = walker.walk.parts.templates
    return next(part.program.arrays for part in parts if part.program.name == "tables of pairs")


@pytest.mark.parametrize("engine", ENGINES)
def test_a_persistent_walk_learns_from_its_distance_to_the_truth_and_goes_on(engine):
    training = whole_world(6, 9, n_types=2)
    walker, arrays, path = walker_of(training, engine, length=3, persistent=True)
    enter_path(path, distance_from_truth(training, training.start))
    seen = set()
    for seed in range(8):
        before = arrays.weights.copy()
        walker.advance(Stream(seed), 1.0, 3, episode=3)
        expected = -0.5 * distance_from_truth(training, walker.world)
        np.testing.assert_array_equal(arrays.weights - before, expected)
        assert walker.value == pytest.approx(training.preference.watch(walker.world).value)
        seen.add(walker.world.canonical())
    assert len(seen) > 4


def test_the_first_correction_is_worked_out_on_paper():
    """Two items that belong together can only be split: CD-1 and a rate of 1/2 add half their feature.

    The proposer has one move to make each time, and at weights of zero it is accepted.
    """
    model = Model([PairTableTemplate("table", table_for(2, 1, share=1.0), ("count",))])
    training = TrainingWorld(
        model=model,
        proposer=MIXTURES["split-merge"],
        start=Partition.singletons(2),
        truth=Partition.from_labels([0, 0]),
    )
    for engine in ENGINES:
        found = fitted(ContrastiveDivergence(rate=0.5), [training], passes=1, steps=1, engine=engine)
        assert found.last.tolist() == [0.5]
        assert found.history[0].accepted == 1.0
        assert np.isnan(found.history[0].value)


@pytest.mark.statistical
@pytest.mark.parametrize("length", [1, 6])
@pytest.mark.parametrize("mixture", ["items", "many"])
def test_the_mean_correction_is_the_truth_minus_what_the_chain_expects(mixture, length, seed):
    """By enumeration of where the chain may be after so many steps; the variance is exact, too."""
    rounds = 5_000
    model = Model([PairTableTemplate("table", table_for(4, 2), EVERY), ClusterSize()])
    weights = np.random.default_rng(1).normal(scale=0.5, size=model.blocks.size)
    worlds = all_partitions(4)
    truth = Partition.from_labels([0, 0, 1, 1])
    kernel = Metropolis(Model(model.templates, weights), MIXTURES[mixture])
    temperature = 1.5
    row = [world.canonical() for world in worlds].index(truth.canonical())
    chances = np.linalg.matrix_power(transition_matrix(kernel, worlds, temperature), length)[row]
    phi = np.array([statistics_of(model, world) for world in worlds])
    mean = phi[row] - chances @ phi
    deviation = np.sqrt(np.maximum(chances @ phi**2 - (chances @ phi) ** 2, 0.0) / rounds)
    training = TrainingWorld(model=model, proposer=MIXTURES[mixture], start=truth, truth=truth)
    walker, arrays, _ = walker_of(
        training, "compiled", length=length, persistent=False, accept="metropolis", rate=0.25
    )
    total = np.zeros(model.blocks.size)
    stream = Stream(seed)
    for _ in range(rounds):
        arrays.weights[:] = weights
        walker.advance(stream, temperature, length, episode=length)
        total += (arrays.weights - weights) / 0.25
    allowed = norm.isf(FALSE_ALARM / (2 * len(mean))) * deviation + 1e-9
    assert (np.abs(total / rounds - mean) <= allowed).all()
    assert np.abs(mean).max() > 8 * allowed.max()


@pytest.mark.statistical
def test_persistent_chains_lead_to_the_weights_of_maximum_likelihood(seed):
    """The statistics of the truth lie inside those of all worlds, so that the maximum exists.

    Twelve seeds differed from the maximum by 0.041 at most and from each other by 0.005 (one deviation); the
    step's bias is most of it. A tenth is beyond ten deviations.
    """
    model = Model([PairTableTemplate("table", table_for(5, 2, seed=5), ("count",))])
    truth = Partition.from_labels([0, 1, 1, 2, 2])
    phi = np.array([statistics_of(model, world) for world in all_partitions(5)])
    goal = statistics_of(model, truth)
    best = minimize(
        lambda w: np.logaddexp.reduce(phi @ w) - goal @ w, np.zeros(len(goal)), method="BFGS", tol=1e-9
    )
    assert 1.0 < np.abs(best.x).max() < 2.0
    training = TrainingWorld(
        model=model, proposer=MIXTURES["many"], start=Partition.singletons(5), truth=truth
    )
    learner = ContrastiveDivergence(length=5, persistent=True, rate=0.05, decay=0.5)
    found = fitted(learner, [training], passes=12, steps=80_000, seed=seed)
    np.testing.assert_allclose(found.weights, best.x, atol=0.1)


def test_the_rate_falls_from_pass_to_pass():
    """Accepting everything, the walks do not depend on the weights: only the rates differ."""
    world = whole_world(2, 8)
    steps = {}
    for decay in (0.0, 1.0):
        learner = ContrastiveDivergence(rate=0.5, decay=decay, accept="always", average=False)
        seen = [np.zeros(world.model.blocks.size)]
        fitted(
            learner,
            [world],
            passes=3,
            steps=6,
            callback=lambda record, weights, seen=seen: seen.append(weights),
        )
        steps[decay] = np.diff(seen, axis=0)
    for number in range(3):
        assert steps[0.0][number].any()
        np.testing.assert_allclose(steps[1.0][number], steps[0.0][number] / (1.0 + number), rtol=1e-12)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("form", FORMS)
def test_weights_of_fixed_blocks_stay_as_they_are(form, engine):
    world = whole_world(2, 8)
    blocks = world.model.blocks
    start = np.arange(blocks.size) / 8.0
    learner = ContrastiveDivergence(**FORMS[form], fixed=("edges",), accept="always")
    found = fitted(learner, [world], weights=start, engine=engine)
    fixed = np.zeros(blocks.size, bool)
    fixed[blocks.slice_of("edges")] = True
    np.testing.assert_array_equal(found.last[fixed], start[fixed])
    assert (found.last[~fixed] != start[~fixed]).any()


@pytest.mark.parametrize("form", FORMS)
def test_corrections_are_counted(form):
    found = fitted(ContrastiveDivergence(**FORMS[form], accept="always"), [whole_world(2, 8)], steps=40)
    most = 40 // FORMS[form]["length"]
    assert all(0 < record.updates <= most for record in found.history)
    assert all(record.steps == 40 for record in found.history)
    assert found.radius > 0.0


def test_the_same_seed_gives_the_same_bits():
    worlds = [whole_world(seed, 9) for seed in range(2)]
    for form in FORMS.values():
        first, again = (fitted(ContrastiveDivergence(**form), worlds, seed=5) for _ in range(2))
        assert first.last.tobytes() == again.last.tobytes()
        assert first.history == again.history


NO_TRUTH = TrainingWorld(
    model=Model([ClusterSize()]),
    proposer=MIXTURES["items"],
    start=Partition.singletons(3),
    preference=TruthPreference([0, 0, 1]),
)
REFUSED = {
    "no truth": (
        lambda: fitted(ContrastiveDivergence(), [NO_TRUTH]),
        r"world 0 has no truth: give TrainingWorld\(truth=...\)",
    ),
    "no worlds": (lambda: fitted(ContrastiveDivergence(), []), "give a list of one or more training worlds"),
    "fewer steps than the length": (
        lambda: fitted(ContrastiveDivergence(length=10), [whole_world(1, 4)], steps=9),
        "steps must be at least the length 10",
    ),
    "no length": (lambda: ContrastiveDivergence(length=0), "length must be at least 1"),
    "no rate": (lambda: ContrastiveDivergence(rate=0.0), "rate must be greater than zero"),
    "decay": (lambda: ContrastiveDivergence(decay=-1.0), "decay must be zero or more"),
    "acceptance": (lambda: ContrastiveDivergence(accept="truth"), "a rule that does not look at the truth"),
    "the best of several": (lambda: ContrastiveDivergence(best_of=2), "use 'unbalanced'"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_learned_from_is_refused_with_a_remedy(name):
    call, remedy = REFUSED[name]
    with pytest.raises(InvalidArgumentError, match=remedy):
        call()


@pytest.mark.parametrize("engine", ENGINES)
def test_a_truth_of_other_items_is_refused(engine):
    world = whole_world(1, 4)
    stranger = TrainingWorld(
        model=world.model, proposer=world.proposer, start=world.start, truth=Partition.singletons(5)
    )
    for persistent in (False, True):
        with pytest.raises(ShapeError, match="items"):
            fitted(ContrastiveDivergence(persistent=persistent), [stranger], engine=engine)


def test_one_compiled_walk_serves_all_forms():
    for form in FORMS.values():
        fitted(ContrastiveDivergence(**form), [whole_world(1, 6)], steps=10)
    assert len(walk_moves.signatures) == 1
