"""Running chains: one result whatever the threads, honest marginals, Ctrl-C, errors that help."""

import signal
import threading
from dataclasses import replace
from itertools import combinations, count

import numpy as np
import pytest
from scipy.stats import binomtest

import factorwise as fw
from factorwise import mcmc
from factorwise.errors import InvalidArgumentError, ShapeError
from factorwise.inference.mcmc import run
from plain_transitions import transition_matrix

FALSE_ALARM = 1e-4  # chance that a correct sampler fails one statistical test
CHAINS = 2_000
MIXED = 300  # steps after which a chain has forgotten its start, as a test shows
ITEMS = 5
PAIRS = list(combinations(range(ITEMS), 2))
SINGLETONS = fw.Partition.singletons(ITEMS)


def compare(a, b):
    return a.color == b.color, abs(a.size_of - b.size_of)


def clustering(n=ITEMS):
    """A sampler that compiles, and its model over n items."""
    draw = np.random.default_rng(n)
    fields = fw.Fields(color=draw.integers(0, 3, n), size_of=draw.normal(size=n).round(2))
    pairs = fw.templates.PairTemplate("pairs", fields, compare, ["same color", "distance"])
    weights = {"pairs": [0.9, -0.6], "cluster size": [0.4, -0.2]}
    model = fw.Model([pairs, fw.templates.ClusterSize()], weights)
    moves = mcmc.PartitionMixture([mcmc.RelocateToItem(), mcmc.RelocateToNew()])
    return mcmc.Metropolis(model, moves)


def labeling():
    """A Gibbs sampler over three hidden labels in a row and one observed."""
    domain = fw.Domain("mood", ["bad", "fair", "good"])
    column = fw.Column.of("day", domain, ["bad", "bad", "good", "bad"], observed=[False, False, True, False])
    draw = np.random.default_rng(4)
    model = fw.Model([fw.templates.Bias(column), fw.templates.Transitions(column)], draw.normal(size=12))
    return mcmc.Gibbs(model), fw.Assignment.initial(fw.Variables([column]))


class Interrupting:
    """A sampler without a compiled form, at whose n-th step the user presses Ctrl-C."""

    def __init__(self, kernel, at=None):
        self.kernel, self.model, self.at = kernel, kernel.model, at
        self.counter = count(1)  # no thread of several can see the same number, or pass one by

    def step(self, stream, world, temperature=1.0):
        if next(self.counter) == self.at:
            self.disturb()
        return self.kernel.step(stream, world, temperature)

    def disturb(self):
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)


def assert_same(first, second):
    for name in ("scores", "accepted", "pairs", "together", "n_clusters", "label_counts"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name), err_msg=name)
    assert first.best == second.best
    assert first.best_score == second.best_score
    assert first.last == second.last


@pytest.mark.parametrize("threads", [2, 4])
def test_the_number_of_threads_does_not_change_the_samples(threads, monkeypatch):
    options = {"draws": 40, "thin": 3, "burn_in": 50, "chains": 5, "seed": 8, "pairs": PAIRS}
    alone = fw.sample(clustering(), SINGLETONS, threads=1, **options)
    monkeypatch.setattr(run, "STINT", 0.0)  # the threads change chains after every draw
    assert_same(alone, fw.sample(clustering(), SINGLETONS, threads=threads, **options))
    assert len({scores.tobytes() for scores in alone.scores}) == 5  # chains differ from each other


@pytest.mark.parametrize("threads", [2, 4])
def test_the_number_of_threads_does_not_change_the_annealing(threads):
    alone, shared = (
        fw.anneal(clustering(), SINGLETONS, steps=300, looks=30, chains=4, threads=count, seed=3)
        for count in (1, threads)
    )
    np.testing.assert_array_equal(alone.trace, shared.trace)
    assert alone.best == shared.best


def test_burning_in_slices_changes_nothing(monkeypatch):
    whole = fw.sample(clustering(), SINGLETONS, draws=5, burn_in=100, chains=2, pairs=PAIRS)
    monkeypatch.setattr(run, "SLICE", 7)
    assert_same(whole, fw.sample(clustering(), SINGLETONS, draws=5, burn_in=100, chains=2, pairs=PAIRS))


def test_thinning_keeps_every_third_draw_and_burn_in_drops_the_first():
    kernel, options = clustering(), {"chains": 2, "seed": 1, "pairs": PAIRS}
    every = fw.sample(kernel, SINGLETONS, draws=60, **options)
    some = fw.sample(kernel, SINGLETONS, draws=10, thin=3, burn_in=30, **options)
    np.testing.assert_array_equal(some.scores, every.scores[:, 32::3])
    np.testing.assert_array_equal(some.together, every.together[:, 32::3])


def test_samples_have_the_shapes_they_say():
    samples = fw.sample(clustering(), SINGLETONS, draws=7, chains=3, pairs=PAIRS[:4])
    assert samples.n_draws == 7
    assert samples.scores.shape == samples.n_clusters.shape == (3, 7)
    assert samples.together.shape == (3, 7, 4)
    assert samples.co_clustering().shape == (4,)
    assert samples.accepted.shape == (3,)
    assert (samples.accepted > 0).all()
    assert len(samples.last) == 3
    assert samples.label_counts.shape == (3, 0, 0)
    assert not samples.interrupted


def test_labels_are_counted_once_a_draw():
    kernel, world = labeling()
    samples = fw.sample(kernel, world, draws=9, chains=2)
    assert samples.label_counts.shape == (2, 4, 3)
    np.testing.assert_array_equal(samples.label_counts.sum(axis=2), 9)
    np.testing.assert_array_equal(samples.label_marginals()[2], [0, 0, 1])  # what is observed stays
    assert samples.n_clusters.size == samples.together.size == 0


def test_the_best_world_has_the_best_score_and_chains_stand_where_they_say():
    kernel = clustering()
    samples = fw.sample(kernel, SINGLETONS, draws=50, chains=3)
    assert samples.best_score == samples.scores.max()
    assert kernel.model.score(samples.best) == pytest.approx(samples.best_score, abs=1e-5)
    for world, score in zip(samples.last, samples.scores[:, -1], strict=True):
        assert kernel.model.score(world) == pytest.approx(score, abs=1e-5)


def test_the_world_given_is_left_alone():
    world = SINGLETONS.copy()
    fw.sample(clustering(), world, draws=20)
    fw.anneal(clustering(), world, steps=20)
    assert world == SINGLETONS


def test_a_generator_gives_the_samples_of_its_state():
    first, again = (
        fw.sample(clustering(), SINGLETONS, draws=9, seed=np.random.default_rng(5)) for _ in range(2)
    )
    assert_same(first, again)


def test_a_chain_has_forgotten_its_start_when_the_statistical_tests_look():
    exact = fw.exact.PartitionEnumeration(clustering().model, ITEMS)
    matrix = np.linalg.matrix_power(transition_matrix(clustering(), exact.worlds), MIXED)
    np.testing.assert_allclose(matrix, np.tile(exact.probabilities, (len(matrix), 1)), atol=1e-6)


@pytest.mark.statistical
def test_co_clustering_agrees_with_enumeration(seed):
    """One draw of each of many chains: independent, so that the counts are binomial."""
    kernel = clustering()
    samples = fw.sample(kernel, SINGLETONS, draws=1, burn_in=MIXED, chains=CHAINS, seed=seed, pairs=PAIRS)
    exact = fw.exact.PartitionEnumeration(kernel.model, ITEMS).together()
    for (i, j), share in zip(PAIRS, samples.co_clustering(), strict=True):
        test = binomtest(round(share * CHAINS), CHAINS, exact[i, j])
        assert test.pvalue > FALSE_ALARM / len(PAIRS), (i, j, share, exact[i, j])


@pytest.mark.statistical
def test_label_marginals_agree_with_enumeration(seed):
    kernel, world = labeling()
    samples = fw.sample(kernel, world, draws=1, burn_in=MIXED, chains=CHAINS, seed=seed)
    exact = fw.exact.Enumeration().marginals(fw.unroll(kernel.model, world))
    for variable, shares in enumerate(samples.label_marginals()):
        for share, probability in zip(shares, exact.node[variable], strict=True):
            test = binomtest(round(share * CHAINS), CHAINS, min(probability, 1.0))
            assert test.pvalue > FALSE_ALARM / 12, (variable, share, probability)


@pytest.mark.statistical
def test_temperature_flattens_the_distribution(seed):
    kernel = clustering()
    options = {"draws": 1, "burn_in": MIXED, "chains": CHAINS, "seed": seed, "pairs": PAIRS}
    samples = fw.sample(kernel, SINGLETONS, temperature=3.0, **options)
    exact = fw.exact.PartitionEnumeration(kernel.model, ITEMS, temperature=3.0).together()
    for (i, j), share in zip(PAIRS, samples.co_clustering(), strict=True):
        assert binomtest(round(share * CHAINS), CHAINS, exact[i, j]).pvalue > FALSE_ALARM / len(PAIRS)


def test_annealing_finds_the_best_clustering():
    kernel = clustering(7)
    exact = fw.exact.PartitionEnumeration(kernel.model, 7)
    found = fw.anneal(kernel, fw.Partition.singletons(7), steps=4_000, chains=2)
    assert found.best == exact.best
    assert found.best_score == pytest.approx(exact.scores.max(), abs=1e-5)
    assert found.trace.shape == (2, 200)
    assert found.best_score >= found.trace.max()
    assert not found.interrupted


def test_results_are_shown_in_a_line():
    samples = fw.sample(clustering(), SINGLETONS, draws=30, chains=2)
    shown = f"best_score={samples.best_score:.6g}, interrupted="
    assert repr(samples) == f"Samples(chains=2, draws=30, {shown}False)"
    assert repr(replace(samples, interrupted=True)) == f"Samples(chains=2, draws=30, {shown}True)"
    found = fw.anneal(clustering(), SINGLETONS, steps=20)
    assert (
        repr(found) == f"Annealed(chains=1, looks=20, best_score={found.best_score:.6g}, interrupted=False)"
    )


def test_annealing_finds_the_best_labels():
    kernel, world = labeling()
    best = fw.exact.Enumeration().best(fw.unroll(kernel.model, world))
    found = fw.anneal(kernel, world, steps=500, schedule=mcmc.Linear(2.0, 0.01))
    np.testing.assert_array_equal(found.best.values, best.values)
    assert found.best_score == pytest.approx(best.score)


def test_annealing_returns_the_start_where_nothing_better_was_seen():
    kernel = clustering(7)
    best = fw.exact.PartitionEnumeration(kernel.model, 7).best
    found = fw.anneal(kernel, best, steps=30, schedule=mcmc.Constant(50.0))
    assert found.best == best
    assert found.trace.max() <= found.best_score


def test_ctrl_c_returns_the_draws_so_far_of_every_chain(monkeypatch):
    """What is returned is what a run of so many draws gives: nothing is lost, nothing is uneven."""
    monkeypatch.setattr(run, "STINT", 0.0)
    options = {"thin": 2, "burn_in": 10, "chains": 3, "threads": 2, "engine": "plain", "pairs": PAIRS}
    cut = fw.sample(Interrupting(clustering(), at=120), SINGLETONS, draws=100_000, **options)
    assert cut.interrupted
    assert 1 <= cut.n_draws < 100_000
    assert cut.scores.shape == cut.n_clusters.shape == cut.together.shape[:2] == (3, cut.n_draws)
    whole = fw.sample(Interrupting(clustering()), SINGLETONS, draws=cut.n_draws, **options)
    assert not whole.interrupted
    assert_same(cut, whole)


def test_ctrl_c_leaves_every_chain_with_as_many_counted_labels(monkeypatch):
    monkeypatch.setattr(run, "STINT", 0.0)
    kernel, world = labeling()
    for at in range(10, 60):  # from when threads are still being started
        sampler = Interrupting(kernel, at=at)
        cut = fw.sample(sampler, world, draws=100_000, chains=3, threads=2, engine="plain")
        assert cut.interrupted
        np.testing.assert_array_equal(cut.label_counts.sum(axis=2), cut.n_draws)


def test_ctrl_c_before_the_first_draw_is_an_interrupt():
    with pytest.raises(KeyboardInterrupt):
        fw.sample(Interrupting(clustering(), at=3), SINGLETONS, burn_in=10**6, chains=2, engine="plain")


def test_ctrl_c_returns_the_best_world_of_an_annealing_so_far():
    cut = fw.anneal(Interrupting(clustering(), at=400), SINGLETONS, steps=10**6, looks=10**5, engine="plain")
    assert cut.interrupted
    assert 1 <= cut.trace.shape[1] < 10**5
    assert cut.best_score >= cut.trace.max()


def test_an_error_in_one_chain_ends_them_all():
    class Failing(Interrupting):
        def disturb(self):
            raise ZeroDivisionError("broken")

    with pytest.raises(ZeroDivisionError, match="broken"):
        fw.sample(Failing(clustering(), at=20), SINGLETONS, draws=10**9, threads=2, engine="plain")


def test_the_plain_and_the_compiled_engine_draw_the_same_clusterings():
    options = {"draws": 60, "thin": 2, "chains": 2, "seed": 6, "pairs": PAIRS}
    plain, compiled = (
        fw.sample(clustering(), SINGLETONS, engine=engine, **options) for engine in ("plain", "compiled")
    )
    np.testing.assert_array_equal(plain.together, compiled.together)
    np.testing.assert_array_equal(plain.accepted, compiled.accepted)
    np.testing.assert_allclose(plain.scores, compiled.scores, atol=1e-5)
    assert plain.best == compiled.best


def test_the_plain_and_the_compiled_engine_draw_the_same_labels():
    kernel, world = labeling()
    plain, compiled = (fw.sample(kernel, world, draws=60, engine=engine) for engine in ("plain", "compiled"))
    np.testing.assert_array_equal(plain.label_counts, compiled.label_counts)
    np.testing.assert_allclose(plain.scores, compiled.scores)


def test_a_sampler_without_a_compiled_form_walks_plainly_and_says_so_once():
    kernel, world = labeling()
    with pytest.warns(mcmc.PlainEngineWarning, match="has no compiled form") as caught:
        samples = fw.sample(Interrupting(kernel), world, draws=10, chains=3)
    assert [warning.filename for warning in caught] == [__file__]
    plain = fw.sample(kernel, world, draws=10, chains=3, engine="plain")
    np.testing.assert_allclose(
        samples.scores, plain.scores, rtol=1e-12
    )  # gains are added up in another order
    np.testing.assert_array_equal(samples.label_counts, plain.label_counts)


def test_a_sampler_without_a_compiled_form_is_refused_where_one_is_asked_for():
    kernel, world = labeling()
    with pytest.raises(InvalidArgumentError, match="has no compiled form"):
        fw.sample(Interrupting(kernel), world, engine="compiled")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"draws": 0}, "draws must be at least 1, but 0"),
        ({"thin": 0}, "thin must be at least 1"),
        ({"burn_in": -1}, "burn_in must be zero or more"),
        ({"chains": 0}, "chains must be at least 1"),
        ({"threads": 0}, "threads must be at least 1, or None for all processors, but 0"),
        ({"temperature": 0.0}, "temperature must be greater than zero"),
        ({"engine": "fast"}, "engine must be 'auto', 'compiled' or 'plain', but 'fast'"),
        ({"seed": -1}, "seed must be zero or more"),
        ({"pairs": [(0, 1), (2, 5)]}, r"items 0 to 4, but \(2, 5\) is among them"),
        ({"pairs": [(-1, 2)]}, r"items 0 to 4, but \(-1, 2\)"),
    ],
)
def test_an_argument_outside_its_range_is_refused(options, message):
    with pytest.raises(InvalidArgumentError, match=message):
        fw.sample(clustering(), SINGLETONS, **options)


@pytest.mark.parametrize("pairs", [[(0, 1, 2), (2, 3, 4)], [0, 1], [(0.5, 1.0)]])
def test_pairs_of_another_shape_are_refused(pairs):
    with pytest.raises(ShapeError, match=r"give \[\(0, 1\), \.\.\.\]"):
        fw.sample(clustering(), SINGLETONS, pairs=pairs)


@pytest.mark.parametrize("name", ["steps", "looks", "chains", "threads"])
def test_annealing_refuses_arguments_below_one(name):
    with pytest.raises(InvalidArgumentError, match=f"{name} must be at least 1"):
        fw.anneal(clustering(), SINGLETONS, **{"steps": 10, name: 0})


@pytest.mark.parametrize("schedule", [mcmc.Geometric, mcmc.Linear])
def test_schedules_go_from_start_to_end_and_refuse_to_heat(schedule):
    cooling = schedule(4.0, 0.5)
    assert cooling.temperature(0.0) == pytest.approx(4.0)
    assert cooling.temperature(1.0) == pytest.approx(0.5)
    assert 0.5 < cooling.temperature(0.5) < 4.0
    with pytest.raises(InvalidArgumentError, match="start >= end > 0"):
        schedule(1.0, 2.0)
    with pytest.raises(InvalidArgumentError, match="greater than zero"):
        mcmc.Constant(0.0)


def test_what_was_not_noted_cannot_be_asked_for():
    kernel, world = labeling()
    with pytest.raises(InvalidArgumentError, match=r"use sample\(\.\.\., pairs="):
        fw.sample(clustering(), SINGLETONS, draws=1).co_clustering()
    with pytest.raises(InvalidArgumentError, match="use co_clustering"):
        fw.sample(clustering(), SINGLETONS, draws=1).label_marginals()
    with pytest.raises(InvalidArgumentError, match="partition worlds only: leave pairs out"):
        fw.sample(kernel, world, pairs=[(0, 1)])


def test_kernels_and_worlds_of_different_kinds_are_refused():
    kernel, labels = labeling()
    for engine in ("auto", "plain"):
        with pytest.raises(InvalidArgumentError, match=r"Gibbs does not support a Partition.*PartitionGibbs"):
            fw.sample(kernel, fw.Partition.singletons(4), draws=1, engine=engine)
        with pytest.raises(InvalidArgumentError, match="PartitionGibbs does not support a Assignment"):
            fw.sample(mcmc.PartitionGibbs(kernel.model), labels, draws=1, engine=engine)
    with pytest.raises(InvalidArgumentError, match="Model is not a transition kernel: give Metropolis"):
        fw.sample(kernel.model, labels, draws=1)
    with pytest.raises(InvalidArgumentError, match="an Assignment, but a list"):
        fw.sample(kernel, [0, 1], draws=1)
