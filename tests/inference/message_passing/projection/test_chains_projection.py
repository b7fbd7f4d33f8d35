"""Many chains drawn to the nearest of their targets: the same as each chain alone."""

import numpy as np
import pytest

from factorwise.errors import InvalidArgumentError, ShapeError
from factorwise.inference.message_passing.projection import (
    RDA,
    ChainBase,
    ChainsBase,
    MeasuredEnergy,
    Measurement,
    MirrorDescent,
    NearestEnergy,
    NearestParts,
    Problem,
    absolute,
    project,
    project_chains,
)
from factorwise.kernels.compile.threads import Team

LABELS = 3
LENGTHS = (4, 1, 3, 4, 3)


def chains(seed=0, team=None):
    random = np.random.default_rng(seed)
    nodes = [random.normal(size=(t, LABELS)) for t in LENGTHS]
    return ChainsBase(nodes, random.normal(size=(LABELS, LABELS)), team)


def vocabulary(length, seed=0):
    return np.random.default_rng(seed + length).integers(0, LABELS, (3, length))


def nearest(base, ordered, width=0.0, weight=1.2):
    """Words of the same length, by order or by counts of labels."""
    one, lengths = np.eye(LABELS), sorted(set(LENGTHS))
    words = [one[vocabulary(length)] for length in lengths]
    which = [lengths.index(length) for length in LENGTHS]
    if ordered:
        measurement = Measurement.identity(base.layout.node_size)
        sets = [each.reshape(3, -1) for each in words]
    else:
        measurement = Measurement.label_counts_of_each(base.layout, base.start)
        sets = [each.sum(axis=1) for each in words]
    return NearestParts(measurement, sets, which, weight, width=width)


def alone(base, energy, chain, ordered, only=None):
    """One chain, and its energy: the nearest target, or the convex distance from one of them."""
    own = ChainBase(base.node[base.start[chain] : base.start[chain + 1]], base.edge)
    targets, weight = energy.sets[energy.which[chain]], energy.weights[chain]
    measurement = (
        Measurement.identity(own.layout.node_size) if ordered else Measurement.label_counts(own.layout)
    )
    if only is None:
        return own, NearestEnergy(measurement, targets, weight, width=energy.width)
    return own, MeasuredEnergy(measurement, absolute(targets[only]), weight)


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("solver", [RDA(beta=1.0), MirrorDescent(step=0.5)])
def test_every_chain_gets_what_it_gets_alone(ordered, solver):
    base = chains(1)
    energy = nearest(base, ordered)
    found = project_chains(base, energy, solver=solver, max_iterations=7)
    path = found.best()
    for chain in range(len(LENGTHS)):
        own, single = alone(base, energy, chain, ordered)
        expected = project(own, single, solver=solver, max_iterations=7, tolerance=0.0)
        trace = found.trace[:, chain]
        np.testing.assert_allclose(trace[: len(expected.trace)], expected.trace, atol=1e-11)
        assert found.objective[chain] == pytest.approx(trace.min(), abs=1e-12)
        part = slice(energy.start[chain], energy.start[chain + 1])
        np.testing.assert_allclose(found.measured[part], expected.measured, atol=1e-11)
        places = slice(base.start[chain], base.start[chain + 1])
        node = found.marginals.reshape(-1, LABELS)[places]
        np.testing.assert_allclose(node.ravel(), expected.marginals[: node.size], atol=1e-11)
        assert path[places].tolist() == expected.best().tolist()


@pytest.mark.parametrize(("ordered", "width"), [(True, 0.0), (False, 0.2)])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_objective_of_every_chain_falls_with_short_steps(ordered, width, seed):
    base = chains(seed)
    found = project_chains(
        base, nearest(base, ordered, width), solver=MirrorDescent(step=0.1), max_iterations=60
    )
    assert (np.diff(found.trace, axis=0) <= 1e-10).all()
    assert (found.trace[-1] < found.trace[0] - 1e-4).all()


@pytest.mark.parametrize("ordered", [True, False])
def test_trying_every_target_finds_the_lowest_of_all_minima(ordered):
    base = chains(3)
    energy = nearest(base, ordered, weight=1.5)
    # words make distances linear, and RDA exact; the kinks of counts leave its rate of ln(t) / t
    limit, close = (20, 1e-9) if ordered else (150, 2e-2)
    found = project_chains(base, energy, candidates=3, max_iterations=limit)
    near = project_chains(base, energy, max_iterations=limit)
    assert found.energy is energy
    for chain in range(len(LENGTHS)):
        least = min(
            project(*alone(base, energy, chain, ordered, only), tolerance=1e-9).objective for only in range(3)
        )
        assert found.objective[chain] >= least - 1e-7
        assert found.objective[chain] == pytest.approx(least, abs=close)
    assert (found.objective <= near.objective + close).all()


@pytest.mark.parametrize("candidates", [1, 3])
def test_the_objective_is_that_of_the_nearest_target_whatever_the_sign_of_weights(candidates):
    base = chains(6)
    energy = nearest(base, ordered=True, weight=[1.5, -0.5, 0.7, -1.0, 2.0])
    found = project_chains(base, energy, candidates=candidates)
    point = Problem(base, energy).point(found.shift)
    assert found.objective.sum() == pytest.approx(point.objective)
    np.testing.assert_allclose(found.marginals, point.marginals, atol=1e-12)
    assert (found.objective <= found.trace.min(axis=0) + 1e-12).all()


def test_runs_end_where_every_chain_has_come_to_rest():
    base = chains(4)
    found = project_chains(base, nearest(base, ordered=True), max_iterations=50)
    assert len(found.trace) < 10
    np.testing.assert_allclose(found.shift, found.energy.slope_of(found.measured), atol=1e-9)


def test_the_answer_does_not_depend_on_the_number_of_threads():
    with Team(2) as team:
        shared = project_chains(chains(5, team), nearest(chains(5), ordered=False), candidates=2)
    single = project_chains(chains(5), nearest(chains(5), ordered=False), candidates=2)
    assert (shared.shift == single.shift).all()
    assert (shared.trace == single.trace).all()


def test_steps_that_would_adapt_to_all_chains_are_refused():
    base = chains()
    for solver in (MirrorDescent(), RDA(beta=None)):
        with pytest.raises(InvalidArgumentError, match="would adapt its steps to all chains together"):
            project_chains(base, nearest(base, ordered=True), solver=solver)


def test_an_energy_of_other_chains_is_refused():
    base = chains()
    other = NearestParts(Measurement.identity(base.layout.node_size), [np.zeros((1, 45))], [0])
    with pytest.raises(ShapeError, match="has 1 parts and reads 45 marginals, but there are 5 chains"):
        project_chains(base, other)
