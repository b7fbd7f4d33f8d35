"""Projection of many chains at once, with an energy that pulls each towards the nearest of its targets.

One run of a solver over the union of the chains is a run for each of them; every chain keeps the point where
its own objective was lowest.
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

SETTLED = 1e-9  # a shift this near to the slope is at a stationary point


@dataclass(frozen=True, slots=True, eq=False)
class ChainProjections:
    """What was found for each chain: of the points visited, the one with the lowest objective.

    shift, measured : float64[measurements]
        See `Projection`.
    marginals : float64[places * S]
        Of the variables of all chains, one after the other.
    objective : float64[chains]
    trace : float64[iterations + 1, chains]
        Objective at the start and after each iteration; one candidate after the other.
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
        With one part for each chain, of the marginals of its variables.
    solver
        `RDA`, the default, or `MirrorDescent`, with steps of given lengths.
    max_iterations
        Steps to make at most; fewer if all chains are at stationary points.
    candidates
        With more than one, so many of the targets that are nearest at the start are tried in turn, and the
        lowest objective wins. With as many as there are targets, weights of zero or more and an endless
        reach, no local minimum is left. With one, the solver goes where the gradient leads.
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
    """Take the steps that lower one energy, and keep what is lowest by another."""
    told = _Separately(base)
    found: ChainProjections | None = None
    for iterate in islice(solver.steps(Problem(told, leading)), limit + 1):
        point = iterate.point
        objective = energy.weights * energy.distances_of(point.measured)
        objective -= energy.summed(point.shift * point.measured) + told.log_partitions
        own = ChainProjections(
            base, energy, point.shift, point.measured, point.marginals, objective, objective[None]
        )
        found = own if found is None else _lower(found, own)
        if np.abs(point.slope - point.shift).max() <= SETTLED:
            break
    assert found is not None, "a run visits its start"
    return found


def _lower(one: ChainProjections, other: ChainProjections) -> ChainProjections:
    """Take each chain from where its objective is lower; the traces go one after the other."""
    lower, energy, base = other.objective < one.objective, one.energy, one.base
    wide, places = energy.spread(lower), np.repeat(lower, np.diff(base.start) * len(base.edge))
    return ChainProjections(
        base,
        energy,
        np.where(wide, other.shift, one.shift),
        np.where(wide, other.measured, one.measured),
        np.where(places, other.marginals, one.marginals),
        np.where(lower, other.objective, one.objective),
        np.concatenate([one.trace, other.trace]),
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
