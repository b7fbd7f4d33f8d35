"""Every solver on every convex energy, against an independent solver over joint distributions."""

import functools
from itertools import islice, pairwise

import numpy as np
import pytest
from scipy.special import entr

from factorwise.errors import ConvexityError, EnergyError, InvalidArgumentError
from factorwise.inference.exact import JunctionTree
from factorwise.inference.message_passing import TreeReweighted
from factorwise.inference.message_passing.projection import (
    RDA,
    AcceleratedRDA,
    ChainBase,
    CouplingEnergy,
    DualLBFGS,
    GraphBase,
    Losses,
    MeasuredEnergy,
    Measurement,
    MirrorDescent,
    NearestEnergy,
    SumEnergy,
    UserEnergy,
    choose_solver,
    hinge,
    inverse_time,
    poisson_counts,
    project,
    squared,
)
from factorwise.inference.message_passing.projection.problem import Problem
from factorwise.model.grounding import FactorGraph
from projection_cases import BASES, KINKED, SMOOTH, Enumerated, chain, energy, loop, optimum, tree

SEED = 3


@functools.cache
def solved(name, kind):
    base = BASES[name](SEED)
    chosen = energy(kind, base, SEED)
    return base, chosen, optimum(base, chosen)


def problems(kinds):
    return pytest.mark.parametrize(("name", "kind"), [(name, kind) for name in BASES for kind in kinds])


def check(result, least, tolerance):
    size = max(1.0, abs(least))
    assert result.ended == "converged"
    assert result.objective - least == pytest.approx(0.0, abs=tolerance * size)
    assert result.gap <= tolerance * size
    # the certificate is honest: the minimum is not below what it says, but for the other solver's error
    assert result.objective - result.gap <= least + 1e-7 * size


@problems(SMOOTH + KINKED)
@pytest.mark.parametrize("solver", [DualLBFGS(), MirrorDescent()], ids=lambda solver: type(solver).__name__)
def test_dual_and_adaptive_descent_reach_the_optimum(name, kind, solver):
    base, chosen, least = solved(name, kind)
    check(project(base, chosen, solver=solver, max_iterations=3_000), least, 1e-6)


@problems(SMOOTH)
def test_acceleration_reaches_the_optimum_of_smooth_energies(name, kind):
    base, chosen, least = solved(name, kind)
    check(project(base, chosen, solver=AcceleratedRDA()), least, 1e-6)


NEARBY = ["poisson nearby", "multinomial nearby"]  # slopes of logarithms have no bound far away


@problems(["hinge", "hinge on edges", "absolute", "smoothed hinge", "squared", "huber", *NEARBY])
def test_plain_averaging_comes_within_a_thousandth(name, kind):
    base, chosen, least = solved(name, kind)
    check(project(base, chosen, solver=RDA(), tolerance=1e-3, max_iterations=3_000), least, 1e-3)


@problems(SMOOTH + KINKED)
def test_plain_averaging_with_a_beta_that_is_found_comes_within_a_thousandth_of_every_energy(name, kind):
    base, chosen, least = solved(name, kind)
    found = project(base, chosen, solver=RDA(beta=None), tolerance=1e-3, max_iterations=1_500)
    assert found.objective - least <= 1e-3 * max(1.0, abs(least))


def test_beta_holds_back_steps_that_would_go_too_far():
    base = chain(1)
    chosen = energy("poisson", base, 1)
    least = project(base, chosen, tolerance=1e-9).objective
    held = project(base, chosen, solver=RDA(beta=10.0), tolerance=0.0, max_iterations=300)
    assert held.objective - least <= 1e-3
    free = project(base, chosen, solver=RDA(), tolerance=0.0, max_iterations=300)
    assert free.objective - least > 0.1


@pytest.mark.parametrize("kind", ["hinge on edges", "squared"])
def test_averaged_marginals_are_feasible_and_converge(kind):
    base, chosen, least = solved("chain", kind)
    errors = []
    for iterations in (30, 300, 3_000):
        found = project(base, chosen, solver=RDA(average=True), tolerance=0.0, max_iterations=iterations)
        node, factor = base.layout.split(found.marginals)
        assert factor[0].sum(axis=0) == pytest.approx(node[1])
        # the entropy of a chain from its marginals
        entropy = sum(entr(table).sum() for table in factor) - entr(node[1]).sum()
        theta = base.scores(np.zeros(base.layout.node_size))
        objective = -theta @ found.marginals - entropy + chosen.value(found.marginals)
        assert least - 1e-7 <= objective <= found.objective + 1e-9
        assert found.objective - least <= found.gap + 1e-7
        errors.append(found.objective - least)
    assert errors[1] < 0.3 * errors[0]
    assert errors[2] < 0.3 * errors[1]


@pytest.mark.parametrize("kind", ["squared", "squared on edges", "huber", "poisson"])
def test_acceleration_needs_fewer_iterations_than_plain_averaging(kind):
    base, chosen, _ = solved("chain", kind)
    plain = project(base, chosen, solver=RDA(beta=3.0), tolerance=1e-5, max_iterations=5_000)
    fast = project(base, chosen, solver=AcceleratedRDA(), tolerance=1e-5, max_iterations=5_000)
    assert fast.converged
    assert 2 * fast.iterations < plain.iterations


@pytest.mark.parametrize("step", [0.3, inverse_time(), inverse_time(0.5)], ids=["constant", "1/t", "2/t"])
def test_scheduled_descent_comes_near_the_optimum(step):
    base, chosen, least = solved("chain", "smoothed hinge")
    found = project(base, chosen, solver=MirrorDescent(step=step), tolerance=1e-3, max_iterations=2_000)
    check(found, least, 1e-3)


@pytest.mark.parametrize("solver", [DualLBFGS(), MirrorDescent(), RDA(), AcceleratedRDA()])
def test_marginals_are_those_of_the_shifted_scores(solver):
    base, chosen, _ = solved("chain", "squared on edges")
    found = project(base, chosen, solver=solver, tolerance=1e-4)
    every = Enumerated.of(base)
    scores = found.scores @ every.marginals
    probability = np.exp(scores - scores.max())
    probability /= probability.sum()
    np.testing.assert_allclose(found.marginals, every.marginals @ probability, atol=1e-12)
    assert found.objective == pytest.approx(every.objective(chosen, probability), abs=1e-10)
    assert found.measured == pytest.approx(chosen.measurement.apply(found.marginals))


def test_at_the_optimum_scores_are_shifted_by_the_gradient():
    base, chosen, _ = solved("tree", "squared on edges")
    found = project(base, chosen, tolerance=1e-13)
    expected = base.scores(chosen.gradient(found.marginals))
    np.testing.assert_allclose(found.scores, expected, atol=1e-5)


def test_the_prediction_is_the_best_setting_at_the_shifted_scores():
    base = chain(5)
    chosen = MeasuredEnergy(Measurement.label_counts(base.layout), squared([3.0, 0.0, 0.0]), 30.0)
    found = project(base, chosen)
    every = Enumerated.of(base)
    best = every.marginals[:, np.argmax(found.scores @ every.marginals)]
    path = found.best()
    assert all(best[base.layout.node(place, label)] == 1.0 for place, label in enumerate(path))
    assert path.tolist() == [0, 0, 0]
    assert base.best(np.zeros(9)).tolist() != [0, 0, 0]


def test_convexified_belief_propagation_serves_as_oracle():
    base = loop(SEED)
    graph = base.graph(np.zeros(base.layout.node_size))
    loose = GraphBase(graph, TreeReweighted(tolerance=1e-13, max_iterations=5_000))
    chosen = energy("squared", base, SEED)
    by_dual = project(loose, chosen, solver=DualLBFGS(), tolerance=1e-9)
    by_descent = project(loose, chosen, solver=MirrorDescent(), tolerance=1e-9)
    assert by_dual.objective == pytest.approx(by_descent.objective, abs=1e-8)
    # its entropy is no smaller than the true one
    assert by_dual.objective < project(base, chosen).objective


def test_chain_base_and_graph_base_agree():
    base = chain(SEED)
    factors = [((t,), base.node[t]) for t in range(3)] + [((t, t + 1), base.edge[t]) for t in range(2)]
    graph = GraphBase(FactorGraph.build([3] * 3, [*factors, ((), 0.7)]), JunctionTree())
    chosen = energy("squared on edges", base, SEED)
    one, other = project(base, chosen), project(graph, chosen)
    np.testing.assert_allclose(one.marginals, other.marginals, atol=1e-9)
    assert one.objective == pytest.approx(other.objective + 0.7)
    assert one.best().tolist() == other.best().tolist()


def test_chains_whose_scores_reach_far_are_solved_in_logs():
    node, edge = np.zeros((3, 2)), np.zeros((2, 2, 2))
    node[0, 1], edge[0, 0], edge[1] = -900.0, [-900.0, 0.0], [[0.0, -900.0], [-900.0, -900.0]]
    base = ChainBase(node, edge)
    found = base.answer(np.zeros(6))
    factors = [((t,), node[t]) for t in range(3)] + [((t, t + 1), edge[t]) for t in range(2)]
    graph = GraphBase(FactorGraph.build([2] * 3, factors), JunctionTree())
    expected = graph.answer(np.zeros(6))
    np.testing.assert_allclose(found.marginals, expected.marginals, atol=1e-12)
    assert found.log_partition == pytest.approx(expected.log_partition)
    np.testing.assert_allclose(base.marginals(np.zeros(6)), graph.marginals(np.zeros(6)), atol=1e-12)


def nonconvex(base, random):
    layout = base.layout
    counts = Measurement.label_counts(layout)
    targets = [[2.0, 1.0, 0.0], [0.0, 0.0, 3.0], [1.0, 1.0, 1.0]]
    return {
        "nearest counts": NearestEnergy(counts, targets, 2.0, width=0.05),
        "nearest path": NearestEnergy(
            Measurement.identity(layout.node_size), np.eye(layout.node_size)[[0, 4, 8]], 1.5
        ),
        "coupling": CouplingEnergy(layout, [((0, 2), random.normal(0.0, 2.0, (3, 3)))]),
        "three-way coupling": CouplingEnergy(layout, [((2, 0, 1), random.normal(0.0, 2.0, (3, 3, 3)))], 2.0),
        "user": UserEnergy(
            Measurement.identity(layout.node_size),
            lambda a, w: np.sin(3.0 * a).sum(),
            lambda a, w: 3.0 * np.cos(3.0 * a),
        ),
    }


@pytest.mark.parametrize("name", nonconvex(chain(0), np.random.default_rng(0)))
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_objective_of_energies_that_are_not_convex_falls(name, seed):
    base = chain(seed)
    chosen = nonconvex(base, np.random.default_rng(seed))[name]
    found = project(base, chosen, max_iterations=300)
    assert (np.diff(found.trace) <= 1e-10).all()
    assert found.trace[-1] < found.trace[0] - 1e-4
    assert found.gap is None
    assert found.method == "mirror descent"


def test_coupling_that_ends_is_a_stationary_point():
    base = chain(2)
    chosen = nonconvex(base, np.random.default_rng(2))["coupling"]
    found = project(base, chosen, tolerance=1e-12)
    assert found.converged
    assert found.shift == pytest.approx(chosen.slope_of(found.measured), abs=1e-5)


def test_a_convex_energy_of_the_user_gets_a_certificate():
    base = chain(SEED)
    known = energy("squared", base, SEED)
    again = UserEnergy(
        known.measurement,
        lambda a, w: known.value_of(a),
        lambda a, w: known.slope_of(a),
        convex=True,
        name="mine",
    )
    _, _, least = solved("chain", "squared")
    for solver in (None, AcceleratedRDA()):
        check(project(base, again, solver=solver), least, 1e-6)


def test_a_sum_of_energies_is_solved_like_the_joined_one():
    base = chain(SEED)
    parts = energy("squared", base, SEED), energy("hinge on edges", base, SEED)
    joined = project(base, parts[0] + parts[1])
    apart = project(base, SumEnergy(*parts))
    assert joined.method == "dual L-BFGS"
    assert apart.method == "mirror descent"
    assert apart.objective == pytest.approx(joined.objective, abs=2e-5)


def test_a_run_can_be_stopped_at_any_time():
    base, chosen, _ = solved("chain", "squared")
    seen = []
    called = project(
        base, chosen, solver=RDA(), tolerance=0.0, callback=lambda at: seen.append(at) or len(seen) == 4
    )
    assert (called.ended, called.iterations) == ("callback", 3)
    assert [progress.iteration for progress in seen] == [0, 1, 2, 3]
    timed = project(base, chosen, solver=RDA(), tolerance=0.0, seconds=0.05, max_iterations=10**9)
    assert timed.ended == "time"
    limited = project(base, chosen, tolerance=0.0, max_iterations=0)
    assert (limited.ended, limited.iterations) == ("iterations", 0)
    for result in (called, timed, limited):
        assert [float(row.sum()) for row in result.node] == pytest.approx([1.0] * 3)


@pytest.mark.parametrize("solver", [DualLBFGS(), MirrorDescent(), RDA(), AcceleratedRDA()])
def test_an_interrupt_leaves_the_best_marginals_so_far(solver):
    base, chosen, _ = solved("chain", "squared")

    def interrupt(progress):
        if progress.iteration == 2:
            raise KeyboardInterrupt

    found = project(base, chosen, solver=solver, tolerance=0.0, callback=interrupt)
    assert found.ended == "interrupted"
    assert found.objective == found.trace.min()
    assert len(found.trace) == 3


def test_the_dual_is_chosen_where_there_is_one():
    base = chain(0)
    assert isinstance(choose_solver(energy("hinge", base)), DualLBFGS)
    assert isinstance(choose_solver(CouplingEnergy(base.layout, [])), MirrorDescent)


@pytest.mark.parametrize("solver", [DualLBFGS(), AcceleratedRDA()])
def test_solvers_for_convex_energies_refuse_others(solver):
    base = chain(0)
    with pytest.raises(ConvexityError, match=r"'nearest' is not known to be convex.*MirrorDescent"):
        project(base, NearestEnergy(Measurement.identity(9), np.eye(9)), solver=solver)


def test_acceleration_refuses_kinks():
    base = chain(0)
    with pytest.raises(ConvexityError, match=r"'hinge' has kinks.*smoothed"):
        project(base, energy("hinge", base), solver=AcceleratedRDA())


def test_the_dual_refuses_energies_without_a_conjugate():
    plain = UserEnergy(Measurement.identity(9), lambda a, w: 0.0, lambda a, w: 0.0 * a, convex=True)
    with pytest.raises(InvalidArgumentError, match=r"conjugate.*'user'.*MirrorDescent"):
        project(chain(0), plain, solver=DualLBFGS())


@pytest.mark.parametrize(
    ("function", "gradient", "message"),
    [
        (lambda a, w: np.nan, lambda a, w: a, "'mine' returned nan"),
        (lambda a, w: -np.inf, lambda a, w: a, "'mine' returned -inf"),
        (lambda a, w: a, lambda a, w: a, r"'mine' returned a value of shape \(9,\)"),
        (lambda a, w: a.sum(), lambda a, w: a[:3], r"gradient of the energy 'mine' has shape \(3,\)"),
        (
            lambda a, w: a.sum(),
            lambda a, w: a * np.nan,
            "entry 0 of the gradient of the energy 'mine' is nan",
        ),
    ],
)
def test_energies_that_return_what_they_must_not_are_named(function, gradient, message):
    with pytest.raises(EnergyError, match=message):
        project(chain(0), UserEnergy(Measurement.identity(9), function, gradient, name="mine"))


def test_an_energy_for_another_model_is_refused():
    with pytest.raises(
        EnergyError, match="reads 5 marginals, but the model has 9 of variables and 27 in all"
    ):
        project(chain(0), MeasuredEnergy(Measurement.identity(5), hinge(1.0)))


def test_a_count_where_nothing_can_be_is_refused():
    node = np.zeros((2, 2))
    node[0, 0] = -np.inf
    counts = poisson_counts(np.ones((2, 2)), population=2.0)
    with pytest.raises(EnergyError, match="infinite at the marginals of the base model"):
        project(ChainBase(node, np.zeros((2, 2))), counts)


@pytest.mark.parametrize("kind", ["hinge", "absolute", "squared", "poisson", "multinomial"])
@pytest.mark.parametrize(
    "solver", [DualLBFGS(), MirrorDescent(), RDA()], ids=lambda solver: type(solver).__name__
)
def test_measurements_without_weight_do_not_count(kind, solver):
    base = chain(SEED)
    chosen = energy(kind, base, SEED)
    weights = np.where(np.arange(len(chosen.weights)) % 2 == 0, chosen.weights, 0.0)
    kept = np.flatnonzero(weights)
    losses = Losses(chosen.losses.kind[kept], chosen.losses.target[kept], chosen.losses.width[kept])
    fewer = MeasuredEnergy(chosen.measurement.taken(kept), losses, weights[kept])
    results = [
        project(base, each, solver=solver, max_iterations=50)
        for each in (chosen.with_weights(weights), fewer)
    ]
    np.testing.assert_allclose(results[0].marginals, results[1].marginals, atol=1e-9)
    assert results[0].iterations == results[1].iterations
    nothing = project(base, chosen.with_weights(0.0 * weights), solver=solver)
    assert nothing.converged
    np.testing.assert_allclose(nothing.marginals, base.marginals(np.zeros(9)), atol=1e-12)


def test_trees_with_labels_of_different_number_keep_their_layout():
    base = tree(1)
    layout = base.layout
    assert (layout.node_size, layout.size) == (9, 9 + 6 + 4 + 4)
    marginals = base.marginals(np.zeros(9))
    node, factor = layout.split(marginals)
    assert [len(row) for row in node] == [2, 3, 2, 2]
    assert [table.shape for table in factor] == [(2, 3), (2, 2), (2, 2)]
    assert factor[0].sum(axis=1) == pytest.approx(node[0])
    assert marginals[layout.factor(0, (1, 2))] == factor[0][1, 2]
    assert marginals[layout.node(1, 2)] == node[1][2]


@pytest.mark.parametrize("step", [0.25, lambda time: 3.0 / time], ids=["constant", "falling"])
def test_a_scheduled_step_goes_its_share_of_the_way_to_the_gradient(step):
    base, chosen, _ = solved("chain", "squared")
    iterates = MirrorDescent(step=step).steps(Problem(base, chosen))
    before = next(iterates).point
    for time in range(1, 4):
        length = step(time) if callable(step) else step
        after = next(iterates).point
        expected = (before.shift + length * before.slope) / (1.0 + length)
        np.testing.assert_allclose(after.shift, expected, rtol=1e-12)
        before = after


@pytest.mark.parametrize("solver", [RDA(), MirrorDescent(), MirrorDescent(step=0.25)], ids=repr)
def test_an_iterate_says_what_share_of_the_way_to_the_gradient_it_went(solver):
    base, chosen, _ = solved("chain", "squared")
    for before, after in pairwise(islice(solver.steps(Problem(base, chosen)), 5)):
        expected = (1.0 - after.share) * before.point.shift + after.share * before.point.slope
        np.testing.assert_allclose(after.point.shift, expected, rtol=1e-9, atol=1e-12)


def test_acceleration_weighs_the_mean_gradient_by_four_times_the_smoothness():
    """From a start without a shift, with a smoothness that is known to be enough."""
    base, chosen, _ = solved("chain", "squared")
    smoothness = 50.0
    iterates = AcceleratedRDA(smoothness=smoothness, restart=False)._steps(Problem(base, chosen))
    start, first = next(iterates).point, next(iterates).point
    np.testing.assert_array_equal(start.shift, 0.0)
    np.testing.assert_allclose(first.shift, 2.0 / (4.0 * smoothness + 2.0) * start.slope, rtol=1e-12)
    # the second looks a third of the way back to the first mean, and holds its constant for smaller
    share, smoothness = 2.0 / 3.0, 0.8 * smoothness
    looked = (1.0 - share) * first.measured + share * first.measured
    mean = (1.0 - share) * start.slope + share * chosen.slope_of(looked)
    expected = 6.0 / (4.0 * smoothness + 6.0) * mean
    np.testing.assert_allclose(next(iterates).point.shift, expected, rtol=1e-12)
