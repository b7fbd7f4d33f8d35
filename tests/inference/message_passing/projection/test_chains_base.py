"""A union of chains: the same as each chain alone."""

import numpy as np
import pytest

from factorwise.errors import InvalidArgumentError, ShapeError
from factorwise.inference.message_passing.projection import (
    RDA,
    ChainBase,
    ChainsBase,
    Measurement,
    NearestEnergy,
    SumEnergy,
    project,
)
from factorwise.kernels.compile.threads import Team

LABELS = 3


def chains(seed=0, lengths=(4, 1, 3)):
    random = np.random.default_rng(seed)
    return [random.normal(size=(t, LABELS)) for t in lengths], random.normal(size=(LABELS, LABELS))


@pytest.mark.parametrize("pairs", [False, True])
def test_answers_are_those_of_each_chain(pairs):
    nodes, edge = chains()
    union = ChainsBase(nodes, edge)
    layout = union.layout
    assert (layout.node_size, layout.size) == (8 * 3, 8 * 3 + 5 * 9)
    shift = np.random.default_rng(1).normal(size=layout.size if pairs else layout.node_size)
    found, log_partitions = union.answers(shift)
    assert union.answer(shift).log_partition == pytest.approx(log_partitions.sum())
    whole, scores, best = union.marginals(shift), union.scores(shift), union.best(shift)
    begin, first = 0, layout.node_size
    for chain, scores_of in enumerate(nodes):
        base = ChainBase(scores_of, edge)
        size, tables = scores_of.size, (len(scores_of) - 1) * 9
        own = np.concatenate([shift[begin : begin + size], shift[first : first + tables]])
        expected = base.answer(own)
        assert log_partitions[chain] == pytest.approx(expected.log_partition)
        np.testing.assert_allclose(found[begin : begin + size], expected.marginals[:size], atol=1e-13)
        for flat, alone in ((whole, base.marginals(own)), (scores, base.scores(own))):
            np.testing.assert_allclose(flat[begin : begin + size], alone[:size], atol=1e-13)
            np.testing.assert_allclose(flat[first : first + tables], alone[size:], atol=1e-13)
        assert best[begin // 3 : (begin + size) // 3].tolist() == base.best(own).tolist()
        begin, first = begin + size, first + tables


def test_averaging_over_the_union_is_averaging_over_each():
    nodes, edge = chains(2)
    targets = [np.random.default_rng(t).random((2, scores.size)) for t, scores in enumerate(nodes)]
    alone = [
        project(
            ChainBase(scores, edge),
            NearestEnergy(Measurement.identity(scores.size), target, 2.0),
            solver=RDA(beta=1.0),
            max_iterations=6,
            tolerance=0.0,
        )
        for scores, target in zip(nodes, targets, strict=True)
    ]
    with Team(2) as team:
        union = ChainsBase(nodes, edge, team)
        identity, begin, parts = np.eye(union.layout.node_size), 0, []
        for scores, target in zip(nodes, targets, strict=True):
            own = Measurement.of(identity[begin : begin + scores.size])
            parts.append(NearestEnergy(own, target, 2.0))
            begin += scores.size
        found = project(union, SumEnergy(*parts), solver=RDA(beta=1.0), max_iterations=6, tolerance=0.0)
    np.testing.assert_allclose(found.trace, sum(each.trace for each in alone), atol=1e-11)


def test_a_chain_whose_scores_reach_far_is_computed_in_logs():
    nodes, _ = chains(3)
    edge = np.where(np.eye(LABELS, dtype=bool), 0.0, -800.0)
    nodes[2] = np.array([[0.0, -300.0, -300.0], [0.0, 0.0, 0.0], [-2_000.0, 0.0, 0.0]])
    found, log_partitions = ChainsBase(nodes, edge).answers(np.zeros(24))
    expected = ChainBase(nodes[2], edge).answer(np.zeros(9))
    np.testing.assert_allclose(found[-9:], expected.marginals, atol=1e-12)
    assert log_partitions[2] == pytest.approx(expected.log_partition)


def test_bad_chains_are_named():
    nodes, edge = chains()
    with pytest.raises(ShapeError, match=r"chain 1 has scores of shape \(2, 2\)"):
        ChainsBase([nodes[0], np.zeros((2, 2))], edge)
    with pytest.raises(InvalidArgumentError, match="give at least one chain"):
        ChainsBase([], edge)
    with pytest.raises(InvalidArgumentError, match=r"largest score of position 0.*is -inf"):
        ChainsBase([np.full((1, 3), -np.inf)], edge)
