"""The jumps from one world as a family of distributions, which the cross-entropy method fits."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from typing import NamedTuple

import numpy as np
from threadpoolctl import ThreadpoolController

from factorwise.inference.cross_entropy.fitting import climb
from factorwise.inference.mcmc.adaptive.jumps import Jump, Jumps
from factorwise.kernels.clusterings.adaptive.jump_odds import MERGE, MOVE, SPLIT
from factorwise.rng import Stream
from factorwise.types import Float32s, Float64s, Int64s

ROUND_STEPS = 40  # of L-BFGS in a round; the next iteration continues from where they end
LAST_STEPS = 300  # of the last fit
SMALLEST_VARIANCE = 1e-3  # of a feature that hardly differs between the choices


class WeightedChoice(NamedTuple):
    """One choice among rows of features, by the split weights or the merge weights."""

    rows: Float32s
    chosen: Int64s
    shares: Float64s
    of_merge: bool


class JumpFamily:
    r"""Log-linear choices among the clusters and pairs of clusters of one world.

    A split chooses a cluster, a merge a pair, a move a cluster and a target for the part that leaves it. The
    outcomes of different kinds are disjoint, so the log-likelihood is a sum of terms :math:`\lambda \cdot
    \phi_k - \log \sum_j e^{\lambda \cdot \phi_j}`, each concave. The choice of a kind and the share of
    uniform choices do not matter here. `cross_entropy` can search with it; `tune` takes the pieces one by
    one, because it learns from all improving jumps of a round.

    Implements: rohanimanesh2009inference, Remark 1.
    """

    def __init__(self, jumps: Jumps) -> None:
        self._jumps = jumps
        self.between, self.within = jumps.features()
        self.width = jumps.proposer.features.size

    @property
    def size(self) -> int:
        """Number of split weights and merge weights."""
        return 2 * self.width

    def scales(self) -> Float64s:
        """Return the variance of each feature among the choices.

        A ridge in these units treats features alike.
        """
        parts = [
            rows.var(axis=0, dtype=np.float64) if len(rows) > 1 else np.ones(self.width)
            for rows in (self.within, self.between)
        ]
        return np.asarray(np.maximum(np.concatenate(parts), SMALLEST_VARIANCE))

    def sample(self, parameters: Float64s, count: int, stream: Stream) -> list[Jump]:
        """Set the proposer's weights to these parameters and draw jumps from the world."""
        self._jumps.weights = self._jumps.weights.with_vector(parameters)
        return self._jumps.draw(stream, count)

    def log_prob(self, parameters: Float64s, samples: Sequence[Jump]) -> Float64s:
        """Return the log-probability of each jump, given its kind and the parts that it moves."""
        return np.array([_likelihood(self.choices([jump], np.ones(1)), parameters)[0] for jump in samples])

    def log_prob_gradient(self, parameters: Float64s, samples: Sequence[Jump], shares: Float64s) -> Float64s:
        """Return the gradient of the sum of log-probabilities, weighted by ``shares``."""
        return _likelihood(self.choices(samples, shares), parameters)[1]

    def fit(self, samples: Sequence[Jump], shares: Float64s, previous: Float64s, ridge: float) -> Float64s:
        """Return the weights under which the jumps are most likely, with a ridge in units of `scales`."""
        return fit_choices(
            self.choices(samples, shares), previous, ridge * self.scales(), steps=ROUND_STEPS, quiet=True
        )

    def choices(self, samples: Sequence[Jump], shares: Float64s) -> list[WeightedChoice]:
        """Return the choices behind the jumps; choices among the same rows are grouped."""
        merges = [
            (jump.row, share) for jump, share in zip(samples, shares, strict=True) if jump.kind == MERGE
        ]
        moves = [(jump, share) for jump, share in zip(samples, shares, strict=True) if jump.kind != MERGE]
        choices = []
        if merges:
            choices.append(_choice(self.between, merges, of_merge=True))
        if moves:
            choices.append(_choice(self.within, [(jump.row, share) for jump, share in moves], of_merge=False))
        for jump, share in moves:
            if jump.kind != SPLIT:
                rows, target = self._targets(jump)
                choices.append(_choice(rows, [(target, share)], of_merge=True))
        return choices

    def _targets(self, jump: Jump) -> tuple[Float32s, int]:
        """Return the features of the moving part with each cluster but its own, and the row of the target."""
        ids = self._jumps.clusters(1)
        rows = self._jumps.part_features(jump)[ids != jump.source]
        return rows, int(np.flatnonzero(ids[ids != jump.source] == jump.target)[0])


class Lesson(NamedTuple):
    """Good jumps from one world: the choices behind them, and the variances of the features.

    kinds
        Share of splits, merges and moves among the jumps.
    """

    choices: list[WeightedChoice]
    scales: Float64s
    kinds: Float64s

    @classmethod
    def of(cls, family: JumpFamily, jumps: Sequence[Jump]) -> Lesson:
        """Learn from jumps that all have the same weight."""
        shares = np.full(len(jumps), 1.0 / max(len(jumps), 1))
        kinds = np.zeros(MOVE + 1)
        np.add.at(kinds, np.array([jump.kind for jump in jumps], np.int64), shares)
        return cls(family.choices(jumps, shares), family.scales(), kinds)


def fit_choices(
    choices: Sequence[WeightedChoice],
    previous: Float64s,
    ridge: Float64s,
    *,
    steps: int = LAST_STEPS,
    quiet: bool = False,
) -> Float64s:
    """Return the weights under which the choices are most likely, with a ridge around zero.

    Implements: rohanimanesh2009inference, Eq. 2.
    """
    with _linear_algebra().limit(limits=1, user_api="blas"):
        return climb(partial(_likelihood, choices), previous, ridge, steps=steps, quiet=quiet)


@cache
def _linear_algebra() -> ThreadpoolController:
    """Return a context that limits linear algebra to one thread, which is faster for small products."""
    return ThreadpoolController()


def _choice(rows: Float32s, made: Sequence[tuple[int, float]], *, of_merge: bool) -> WeightedChoice:
    chosen, shares = zip(*made, strict=True)
    return WeightedChoice(rows, np.array(chosen, np.int64), np.array(shares), of_merge)


def _likelihood(choices: Sequence[WeightedChoice], parameters: Float64s) -> tuple[float, Float64s]:
    """Return the weighted sum of the log-probabilities of choices, and its gradient."""
    half = len(parameters) // 2
    value, gradient = 0.0, np.zeros(len(parameters))
    for rows, chosen, shares, of_merge in choices:
        own = slice(half, None) if of_merge else slice(0, half)
        # OpenBLAS also sums uninitialised stack memory and discards the result
        with np.errstate(invalid="ignore"):
            logits = (rows @ parameters[own].astype(np.float32)).astype(np.float64)
        top = logits.max()
        odds = np.exp(logits - top)
        value += float(shares @ (logits[chosen] - top - np.log(odds.sum())))
        expected = (-shares.sum() / odds.sum()) * odds
        np.add.at(expected, chosen, shares)
        with np.errstate(invalid="ignore"):
            gradient[own] += expected.astype(np.float32) @ rows
    return value, gradient
