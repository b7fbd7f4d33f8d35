"""The interfaces of inference methods: two protocols, and the results that they return."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from factorwise.model.grounding import FactorGraph
from factorwise.types import Floats


@dataclass(frozen=True, slots=True)
class Convergence:
    """How an iterative method ended.

    converged
        Whether the change fell below the tolerance.
    iterations
        Sweeps made.
    residual
        Largest change of a message or belief in the last sweep.
    trace
        Residual after each sweep.
    """

    converged: bool
    iterations: int
    residual: float
    trace: Floats


@dataclass(frozen=True, slots=True)
class Marginals:
    """Probabilities of a factor graph, exact or approximate.

    log_partition
        Log of the sum over all settings of exp(score), or the method's approximation of it.
    node
        One array of label probabilities per variable.
    factor
        One array of joint probabilities per factor, shaped by its scope.
    entropy
        Entropy of the distribution, or the method's approximation of it (Bethe, tree-reweighted...).
    convergence
        How an iterative method ended; None for exact ones.
    """

    log_partition: float
    node: tuple[Floats, ...]
    factor: tuple[Floats, ...]
    entropy: float
    convergence: Convergence | None = None


@dataclass(frozen=True, slots=True)
class Best:
    """A most probable setting.

    values : int64[variables]
    score
        Its score, as the graph computes it.
    exact
        Whether it is certain that no setting scores higher.
    """

    values: NDArray[np.int64]
    score: float
    exact: bool = True
    convergence: Convergence | None = field(default=None)


class MarginalOracle(Protocol):
    """A method that computes marginals and log Z from scores, whatever they are used for."""

    def marginals(self, graph: FactorGraph) -> Marginals:
        """Return node and factor marginals, the log partition function and the entropy."""
        ...


class MapOracle(Protocol):
    """A method that computes a best setting from scores."""

    def best(self, graph: FactorGraph) -> Best:
        """Return a most probable setting."""
        ...
