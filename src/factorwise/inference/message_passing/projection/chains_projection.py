"""Project many chains at once, with an energy that pulls each towards the nearest of its targets.

One run of a solver over the union of the chains is a run for each of them; every chain keeps the point with
its own lowest objective.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import reduce
from itertools import islice

import numpy as np

from factorwise.errors import InvalidArgumentError, ShapeError
from factorwise.inference.message_passing.projection.bases import Answer
from factorwise.inference.message_passing.projection.chains_base import ChainsBase
from factorwise.inference.message_passing.projection.mirror_descent import MirrorDescent
from factorwise.inference.message_passing.projection.nearest import NearestParts
from factorwise.inference.message_passing.projection.problem import Problem
from factorwise.inference.message_passing.projection.rda import RDA
from factorwise.types import Floats, Int64s
from factorwise.validation import check_count

SETTLED = 1e-9  # a shift this close to the slope is at a stationary point


@dataclass(frozen=True, slots=True, eq=False)
class ChainProjections:
    """The result for each chain: of the points visited, the one with the lowest objective.

    shift, measured : float64[measurements]
        See `Projection`.
    marginals : float64[places * S]
        Marginals of the variables of all chains, one chain after the other.
    objective : float64[chains]
    trace : float64[iterations + 1, chains]
        Objective at the start and after each iteration, for one candidate after the other.
    """

    base: ChainsBase = field(repr=False)
    energy: NearestParts = field(repr=False)
    shift: Floats = field(repr=False)
    measured: Floats = field(repr=False)
    marginals: Floats = field(repr=False)
    objective: Floats = field(repr=False)
    trace: Floats = field(repr=False)

    def best(self) -> Int64s:
        """Return best paths at the shifted scores, one after the other: the prediction."""
        return self.base.best(self.energy.measurement.adjoint(self.shift))


def project_chains(
    base: ChainsBase,
    energy: NearestParts,
    *,
    solver: RDA | MirrorDescent | None = None,
    max_iterations: int = 20,
    candidates: int = 1,
) -> ChainProjections:
    """Project every chain.

    energy
        An energy with one part for each chain, over the marginals of its variables.
    solver
        `RDA`, the default, or `MirrorDescent`, with steps of given lengths.
    max_iterations
        Largest number of steps; fewer are made if all chains are at stationary points.
    candidates
        The number of targets, nearest at the start, that are tried in turn; the lowest objective wins. With
        as many as there are targets, weights of zero or more and an infinite reach, the result is a global
        minimum. With one, the solver follows the gradient.
    """
    chosen = solver or RDA()
    chains = len(base.start) - 1
    if (chosen.beta is None) if isinstance(chosen, RDA) else (chosen.step == "adaptive"):
        raise InvalidArgumentError(
            f"{chosen} would adapt its steps to all chains together: use RDA(beta=...) or"
            " MirrorDescent(step=...), or project() for each chain."
        )
    check_count("max_iterations", max_iterations, 0)
    if len(energy.which) != chains or energy.measurement.size != base.layout.node_size:
        raise ShapeError(
            f"the energy {energy.name!r} has {len(energy.which)} parts and reads {energy.measurement.size}"
            f" marginals, but there are {chains} chains with {base.layout.node_size} of variables: give it a"
            " part for each chain."
        )
    check_count("candidates", candidates)
    if candidates == 1:
        return _followed(base, energy, energy, chosen, max_iterations)
    measured = energy.measurement.apply(base.answers(np.zeros(base.layout.node_size))[0])
    tried = [energy.drawn_to(only) for only in energy.ranked_of(measured, candidates).T]
    return reduce(_lower, (_followed(base, energy, each, chosen, max_iterations) for each in tried))


def _followed(
    base: ChainsBase, energy: NearestParts, leading: NearestParts, solver: RDA | MirrorDescent, limit: int
) -> ChainProjections:
    """Make the steps that lower one energy, and keep the points with the lowest value of another."""
    chains = _Separately(base)
    projections: ChainProjections | None = None
    for iterate in islice(solver.steps(Problem(chains, leading)), limit + 1):
        point = iterate.point
        objective = energy.weights * energy.distances_of(point.measured)
        objective -= energy.summed(point.shift * point.measured) + chains.log_partitions
        own = ChainProjections(
            base, energy, point.shift, point.measured, point.marginals, objective, objective[None]
        )
        projections = own if projections is None else _lower(projections, own)
        if np.abs(point.slope - point.shift).max() <= SETTLED:
            break
    assert projections is not None, "a run visits its start"
    return projections


def _lower(left: ChainProjections, right: ChainProjections) -> ChainProjections:
    """For each chain take the result with the lower objective; the traces are concatenated."""
    lower, energy, base = right.objective < left.objective, left.energy, left.base
    wide, wide_chains = energy.spread(lower), np.repeat(lower, np.diff(base.start) * len(base.edge))
    return ChainProjections(
        base,
        energy,
        np.where(wide, right.shift, left.shift),
        np.where(wide, right.measured, left.measured),
        np.where(wide_chains, right.marginals, left.marginals),
        np.where(lower, right.objective, left.objective),
        np.concatenate([left.trace, right.trace]),
    )


class _Separately:
    """A union of chains that remembers log Z of each from its last answer."""

    def __init__(self, base: ChainsBase) -> None:
        self.base = base
        self.layout = base.layout
        self.log_partitions: Floats = np.zeros(0)
        self.marginals, self.scores, self.best = base.marginals, base.scores, base.best

    def answer(self, shift: Floats) -> Answer:
        """Answer as the union."""
        marginals, self.log_partitions = self.base.answers(shift)
        return Answer(marginals, float(self.log_partitions.sum()))
