"""Many sequences at once, compiled: the same as the plain solvers, one by one."""

import numpy as np
import pytest

from factorwise.errors import InvalidArgumentError, ShapeError, WeightError
from factorwise.inference.message_passing.projection import (
    RDA,
    ChainBase,
    Losses,
    MirrorDescent,
    TiedMeasurement,
    absolute,
    hinge,
    huber,
    multinomial,
    poisson,
    project,
    smoothed_hinge,
    squared,
)
from factorwise.inference.message_passing.projection.sequences import SequenceEnergy, project_sequences
from factorwise.kernels.compile.threads import Team

LABELS = 3
ROWS = [
    {("all", 0): 1.0},
    {("pair", 0, 1): 1.0, ("pair", 2, 1): 1.0, ("first", 1): 1.0},
    {("position", 2): 1.0, ("position", 0): 0.5},
    {("last", 2): 1.0},
    {("all", 1): 0.5, ("pair", 1, 1): 0.2},
]
PLAIN = {
    "hinge": hinge([2.0, 0.5, 1.0, 0.3, 1.0]),
    "smoothed hinge": smoothed_hinge([2.0, 0.5, 1.0, 0.3, 1.0], 0.3),
    "absolute": absolute([2.0, 0.5, 1.0, 0.3, 1.0]),
    "squared": squared([2.0, 0.5, 1.0, 0.3, 1.0]),
    "huber": huber([2.0, 0.5, 1.0, 0.3, 1.0], 0.2),
    "poisson": poisson([2.0, 0.0, 1.0, 1.0, 1.0]),
    "multinomial": multinomial([2.0, 1.0, 1.0, 1.0, 0.0]),
}


def sequences(seed=0, lengths=(1, 2, 5, 9, 4), labels=LABELS):
    random = np.random.default_rng(seed)
    return [random.normal(0.0, 1.0, (t, labels)) for t in lengths], random.normal(0.0, 1.0, (labels, labels))


def tied(rows=ROWS):
    return TiedMeasurement.rows(LABELS, rows)


def own(scores, found, index):
    return found.node[found.start[index] : found.start[index + 1]]


@pytest.mark.parametrize("solver", [MirrorDescent(), RDA(), RDA(beta=2.0)], ids=repr)
@pytest.mark.parametrize("loss", PLAIN)
@pytest.mark.parametrize("pairs", [False, True])
def test_compiled_projection_takes_the_steps_of_the_plain_one(solver, loss, pairs):
    nodes, edge = sequences()
    rows = ROWS if pairs else [ROWS[0], ROWS[2], ROWS[3], {("first", 1): 0.7}, {("all", 1): 2.0}]
    # no sum by position in a sequence of one place: a logarithm would have nothing to see
    nodes = nodes[1:] if "nomial" in loss or loss == "poisson" else nodes
    weights = np.random.default_rng(1).uniform(0.2, 2.0, (len(nodes), 5))
    energy = SequenceEnergy(tied(rows), PLAIN[loss], weights)
    found = project_sequences(
        nodes, edge, energy, solver=solver, max_iterations=12, tolerance=1e-5, pairs=pairs
    )
    for index, scores in enumerate(nodes):
        base = ChainBase(scores, edge)
        plain = project(base, energy.of(len(scores), index), solver=solver, max_iterations=12, tolerance=1e-5)
        assert (found.iterations[index], found.calls[index]) == (plain.iterations, plain.calls)
        assert found.converged[index] == plain.converged
        np.testing.assert_allclose(found.shift[index], plain.shift, rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(found.measured[index], plain.measured, rtol=1e-6, atol=1e-8)
        assert found.objective[index] == pytest.approx(plain.objective, abs=1e-8)
        assert found.gap[index] == pytest.approx(np.inf if plain.gap is None else plain.gap, abs=1e-7)
        np.testing.assert_allclose(own(scores, found, index), np.array(plain.node), atol=1e-8)
        if pairs:
            summed = sum(plain.factor, np.zeros((LABELS, LABELS)))
            np.testing.assert_allclose(found.pairs[index], summed, atol=1e-8)
        path = found.best()[found.start[index] : found.start[index + 1]]
        assert base.scores(base_shift(plain, energy, index, scores)) @ indicator(base, path) == pytest.approx(
            base.scores(base_shift(plain, energy, index, scores)) @ indicator(base, plain.best())
        )


def base_shift(plain, energy, index, scores):
    return energy.of(len(scores), index).measurement.adjoint(plain.shift)


def indicator(base, path):
    statistics = np.zeros(base.layout.size)
    for place, label in enumerate(path):
        statistics[base.layout.node(place, int(label))] = 1.0
        if place > 0:
            statistics[base.layout.factor(place - 1, (int(path[place - 1]), int(label)))] = 1.0
    return statistics


def test_threads_do_not_change_the_answer():
    nodes, edge = sequences(2, lengths=[3, 7, 1, 4] * 6)
    energy = SequenceEnergy(tied(), PLAIN["smoothed hinge"], np.full(5, 1.5))
    alone = project_sequences(nodes, edge, energy)
    with Team(2) as team:
        together = project_sequences(nodes, edge, energy, team=team)
        assert (together.best(team) == alone.best()).all()
    assert (together.node == alone.node).all()
    assert (together.shift == alone.shift).all()
    assert alone.converged.all()


def test_each_sequence_may_have_a_table_of_its_own():
    nodes, edge = sequences(4)
    tables = np.stack([edge, 2.0 * edge.T, -edge])
    which = [2, 0, 1, 1, 0]
    energy = SequenceEnergy(tied(), PLAIN["smoothed hinge"], np.full(5, 1.5))
    together = project_sequences(nodes, tables, energy, table=which, pairs=True)
    for index, scores in enumerate(nodes):
        alone = project_sequences([scores], tables[which[index]], energy, pairs=True)
        np.testing.assert_allclose(own(nodes, together, index), alone.node, atol=1e-10)
        np.testing.assert_allclose(together.pairs[index], alone.pairs[0], atol=1e-10)
        path = together.best()[together.start[index] : together.start[index + 1]]
        assert (path == alone.best()).all()
    with pytest.raises(
        ShapeError, match="3 tables of transitions were given for 5 sequences: say with table="
    ):
        project_sequences(nodes, tables, energy)
    with pytest.raises(InvalidArgumentError, match="names tables 0 to 3, but there are 3"):
        project_sequences(nodes, tables, energy, table=[0, 1, 2, 3, 0])
    with pytest.raises(ShapeError, match=r"edge_scores has shape \(3,\)"):
        project_sequences(nodes, np.zeros(3), energy)


@pytest.mark.parametrize("count", [2, 60])
def test_few_pairs_are_summed_one_by_one_and_many_at_once_with_the_same_result(count):
    labels = 10
    random = np.random.default_rng(count)
    nodes, edge = sequences(6, lengths=(1, 2, 7, 12), labels=labels)
    chosen = random.choice(labels * labels, count, replace=False)
    row = {("pair", *map(int, divmod(pair, labels))): 1.0 for pair in chosen}
    energy = SequenceEnergy(TiedMeasurement.rows(labels, [row]), squared(3.0), np.ones(1))
    found = project_sequences(nodes, edge, energy)
    wanted = project_sequences(nodes, edge, energy, pairs=True)
    np.testing.assert_allclose(found.measured, wanted.measured, rtol=1e-9)
    np.testing.assert_allclose(found.node, wanted.node, atol=1e-9)
    expected = wanted.pairs.reshape(len(nodes), -1)[:, chosen].sum(axis=1)
    np.testing.assert_allclose(found.measured[:, 0], expected, rtol=1e-9)


def test_transitions_that_are_moved_too_far_are_left_to_the_plain_path():
    nodes, edge = sequences(5)
    rows = [{("pair", 0, 1): 1.0, ("pair", 2, 1): 1.0, ("pair", 1, 0): 1.0}]
    energy = SequenceEnergy(tied(rows), hinge([9.0]), np.array([900.0]))
    found = project_sequences(nodes, edge, energy, max_iterations=5)
    for index, scores in enumerate(nodes):
        plain = project(
            ChainBase(scores, edge), energy.of(len(scores)), solver=MirrorDescent(), max_iterations=5
        )
        assert found.objective[index] == pytest.approx(plain.objective)
        np.testing.assert_allclose(own(nodes, found, index), np.array(plain.node), atol=1e-8)


def test_scores_that_reach_too_far_are_left_to_the_plain_path():
    nodes, edge = sequences(3)
    edge = np.where(np.eye(LABELS, dtype=bool), 0.0, -800.0)
    nodes[2] = np.zeros((5, LABELS))
    nodes[2][0], nodes[2][-1] = [0.0, -300.0, -300.0], [-2_000.0, 0.0, 0.0]
    energy = SequenceEnergy(tied(), PLAIN["squared"], np.ones(5))
    found = project_sequences(nodes, edge, energy, pairs=True)
    plain = project(ChainBase(nodes[2], edge), energy.of(5), solver=MirrorDescent())
    assert found.objective[2] == pytest.approx(plain.objective)
    np.testing.assert_allclose(own(nodes, found, 2), np.array(plain.node), atol=1e-8)
    np.testing.assert_allclose(found.pairs[2], sum(plain.factor), atol=1e-8)


@pytest.mark.parametrize("length", [1, 2, 6])
def test_measurements_of_a_length_and_of_a_path_agree(length):
    random = np.random.default_rng(length)
    path = random.integers(0, LABELS, length)
    base = ChainBase(np.zeros((length, LABELS)), np.zeros((LABELS, LABELS)))
    expected = tied().of_length(length).apply(indicator(base, path))
    other = random.integers(0, LABELS, 4)
    start = np.array([0, 4, 4 + length])
    found = tied().of_paths(np.concatenate([other, path]), start)
    assert found[1] == pytest.approx(expected)
    nodes_only = tied(ROWS[2:4]).of_length(length)
    assert nodes_only.size == length * LABELS
    assert nodes_only.apply(indicator(base, path)) == pytest.approx(expected[2:4])


def test_bad_sequences_and_measurements_are_named():
    nodes, edge = sequences()
    energy = SequenceEnergy(tied(), hinge(1.0), np.ones(5))
    with pytest.raises(InvalidArgumentError, match=r"'both', 1.*is not a statistic"):
        TiedMeasurement.rows(3, [{("both", 1): 1.0}])
    with pytest.raises(InvalidArgumentError, match="names a label that does not exist: use 0 to 2"):
        TiedMeasurement.rows(3, [{("pair", 1, 3): 1.0}])
    with pytest.raises(ShapeError, match="sequence 1 has scores of shape"):
        project_sequences([nodes[0], np.zeros((2, 4))], edge, energy)
    with pytest.raises(InvalidArgumentError, match=r"sequence 0 hold \+inf or NaN"):
        project_sequences([np.full((2, 3), np.nan)], edge, energy)
    with pytest.raises(ShapeError, match="weights for 2 sequences were given, but there are 5"):
        project_sequences(nodes, edge, SequenceEnergy(tied(), hinge(1.0), np.ones((2, 5))))
    with pytest.raises(WeightError, match="weight 4"):
        project_sequences(nodes, edge, SequenceEnergy(tied(), hinge(1.0), np.array([1, 1, 1, 1, -0.1])))
    with pytest.raises(InvalidArgumentError, match="adaptive steps only"):
        project_sequences(nodes, edge, energy, solver=MirrorDescent(step=0.1))


def test_a_single_loss_serves_all_measurements():
    nodes, edge = sequences()
    one = project_sequences(nodes, edge, SequenceEnergy(tied(), hinge(1.0), np.ones(5)))
    all_five = project_sequences(nodes, edge, SequenceEnergy(tied(), hinge(np.ones(5)), np.ones(5)))
    assert isinstance(hinge(1.0), Losses)
    assert (one.node == all_five.node).all()
