r"""The rankings met along a walk as one convex program, solved at once.

.. math:: \min_{w, \xi} \; \tfrac{1}{2} \|w\|^2 + C \sum_i \xi_i \quad \text{subject to} \quad
          w \cdot x_i \ge 1 - \xi_i, \; \xi_i \ge 0

where row :math:`x_i` is the statistics of a better world minus those of a worse one. It is the batch
alternative to learning step by step, and its yardstick. The paper's program has no margin and no norm: its
constraints :math:`w \cdot x_i \ge 0` leave zero weights feasible, and optimal whenever the program has an
optimum at all, since every feasible point may be scaled. The margin of one takes that way out.

Solved by liblinear, whose dual coordinate descent keeps its multipliers to itself. Each row is therefore
given a small coordinate of its own, whose weight tells the row's multiplier: with both sides known, the
result says how far it may be from the optimum.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import block_diag, csr_array, diags_array, hstack
from sklearn.exceptions import ConvergenceWarning as SolverWarning
from sklearn.svm import LinearSVC

from factorwise.errors import ConvergenceWarning, InvalidArgumentError, ShapeError, require
from factorwise.learning.ranking_bounds import ConstraintsLike, constraint_rows, largest_margin
from factorwise.model.weights import SparseVector
from factorwise.rng import Stream, as_stream

Rows: TypeAlias = Any  # csr_array of float64; SciPy's sparse arrays have no types of their own

# The coordinates of the rows may raise the gap by this share of what is allowed.
OWN_SHARE = 0.1
FIRST_PASSES = 1_000  # of the solver, before it starts again in another order
FINEST = 1e-13  # violation of the conditions that the solver can still be asked to reach


@dataclass(frozen=True, slots=True, eq=False)
class RankingProgram:
    """Weights that minimize the program, and what shows that they do.

    weights : float64[weights]
        At most ``sqrt(2 * gap)`` from the optimum, whatever the constraints.
    slacks : float64[n]
        By how much each lead falls short of one.
    multipliers : float64[n]
        Of the constraints, between 0 and C; the weights are the sum of the rows times these.
    objective
        Value of the program at ``weights``.
    gap
        Objective minus the value of the dual program at ``multipliers``; the optimum lies between the two.
    """

    weights: NDArray[np.float64]
    slacks: NDArray[np.float64]
    multipliers: NDArray[np.float64]
    objective: float
    gap: float

    @property
    def support(self) -> NDArray[np.int64]:
        """Rows that hold the weights where they are: those with a multiplier above zero, int64[support]."""
        return np.flatnonzero(self.multipliers > 1e-9 * self.multipliers.max(initial=0.0)).astype(np.int64)


def solve_ranking_program(
    constraints: ConstraintsLike, *, C: float = 1.0, tolerance: float = 1e-6, max_passes: int = 100_000
) -> RankingProgram:
    """Find the weights that best satisfy ``constraints``, all at once.

    constraints : float64[n, weights], an array or a SciPy sparse one
        Better minus worse statistics, a row for each pair of worlds. Rows that repeat are solved as one and
        counted as often as they occur. A row of zeros, which no weights satisfy, has a slack of one.
    C
        Price of slack. Infinity allows none: then the constraints must be separable.
    tolerance
        Largest gap, as a share of the objective.
    max_passes
        Most passes of the solver over the constraints; if they do not suffice, there is a warning and the gap
        says what was reached. A large C on constraints that contradict each other takes many.

    Implements: wick2009samplerank, Sec. 3.2, the sampled convex program, with a margin and slack.

    >>> program = solve_ranking_program([[1.0, 0.0], [0.0, 0.5]], C=10.0)
    >>> program.weights.round(2).tolist(), round(program.objective, 2)
    ([1.0, 2.0], 2.5)
    """
    require(C > 0.0, "C", C, "greater than zero")
    require(0.0 < tolerance < 1.0, "tolerance", tolerance, "between 0 and 1, neither included")
    require(max_passes >= 1, "max_passes", max_passes, "at least 1")
    rows = constraint_rows(constraints)
    if math.isinf(C):
        return _without_slack(rows)
    distinct, owner, count = _distinct(rows)
    found = _priced(rows, np.full(rows.shape[0], C), C)
    precision, passes, spent, attempt = 100.0 * tolerance, FIRST_PASSES, 0, 0
    while found.gap > tolerance * found.objective and spent < max_passes and precision > FINEST:
        passes = min(passes, max_passes - spent)
        multipliers, taken = _multipliers(
            rows[distinct], C * count, tolerance, precision=precision, max_passes=passes, seed=attempt
        )
        shared = np.append(multipliers / count, C)  # the last is for rows of zeros
        found = min(found, _priced(rows, shared[owner], C), key=lambda program: program.gap)
        spent, attempt = spent + taken, attempt + 1
        if taken < passes:
            precision *= 0.1
        else:  # rows wrongly set aside can hold it up for long; another order seldom meets the same trap
            passes *= 4
    if found.gap > tolerance * found.objective:
        warnings.warn(
            f"the gap of the program is {found.gap:.3g}, at an objective of {found.objective:.6g}, after"
            f" {spent} passes. Raise max_passes or tolerance, or lower C.",
            ConvergenceWarning,
            stacklevel=2,
        )
    return found


def _priced(rows: Rows, multipliers: NDArray[np.float64], C: float) -> RankingProgram:
    """Fill in all that follows from the multipliers."""
    weights = np.asarray(rows.T @ multipliers, dtype=np.float64)
    slacks = np.maximum(0.0, 1.0 - rows @ weights)
    squared, cost = float(weights @ weights), C * float(slacks.sum())
    gap = max(0.0, squared + cost - float(multipliers.sum()))
    return RankingProgram(weights, slacks, multipliers, 0.5 * squared + cost, gap)


def _without_slack(rows: Rows) -> RankingProgram:
    """Shortest weights that give every row a lead of one."""
    if not rows.shape[0]:
        return _priced(rows, np.zeros(0), 0.0)
    found = largest_margin(rows)
    if found is None:
        raise InvalidArgumentError(
            f"no weights satisfy all {rows.shape[0]} constraints, and C is infinite. Give a finite C, so that"
            " some may be violated at a price."
        )
    weights, multipliers = found.direction / found.margin, found.shares / found.margin**2
    squared, dual = float(weights @ weights), np.asarray(rows.T @ multipliers)
    gap = max(0.0, 0.5 * squared - float(multipliers.sum()) + 0.5 * float(dual @ dual))
    return RankingProgram(weights, np.zeros(rows.shape[0]), multipliers, 0.5 * squared, gap)


def _multipliers(
    rows: Rows,
    price: NDArray[np.float64],
    tolerance: float,
    *,
    precision: float,
    max_passes: int,
    seed: int,
) -> tuple[NDArray[np.float64], int]:
    """Solve for rows that differ, none of them zero; return their multipliers and the passes taken."""
    n, weights = rows.shape
    # A coordinate of size s adds s^2 * price * multiplier at most to the gap, and the multipliers sum to no
    # more than twice the objective.
    own = np.sqrt(0.5 * OWN_SHARE * tolerance / price)
    # The solver wants two classes, and stops when all rows violate their conditions by the same amount, be it
    # large (a row and its opposite do). Two rows of the other class, alike and apart from all others, prevent
    # that: in every pass one of them violates nothing.
    wide = block_diag([hstack([rows, diags_array(own)]), [[-1.0], [-1.0]]], format="csr")
    wide.indices, wide.indptr = wide.indices.astype(np.int32), wide.indptr.astype(np.int32)
    side = np.append(np.ones(n), [-1.0, -1.0])
    solver = LinearSVC(
        loss="hinge", dual=True, fit_intercept=False, tol=precision, max_iter=max_passes, random_state=seed
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SolverWarning)  # the gap says it better
        solver.fit(wide, side, sample_weight=np.append(price, [2.0, 2.0]))
    return np.clip(solver.coef_[0, weights:-1] / own, 0.0, price), int(solver.n_iter_)


def _distinct(rows: Rows) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Find rows that repeat: the first of each kind, the kind of each row, and how many there are of a kind.

    The kind of a row of zeros is -1.
    """
    kinds: dict[tuple[bytes, bytes], int] = {}
    first: list[int] = []
    owner = np.full(rows.shape[0], -1, dtype=np.int64)
    for row, (start, end) in enumerate(zip(rows.indptr[:-1].tolist(), rows.indptr[1:].tolist(), strict=True)):
        if start == end:
            continue
        key = rows.indices[start:end].tobytes(), rows.data[start:end].tobytes()
        owner[row] = kinds.setdefault(key, len(kinds))
        if owner[row] == len(first):
            first.append(row)
    count = np.bincount(owner[owner >= 0], minlength=len(first)).astype(np.float64)
    return np.array(first, dtype=np.int64), owner, count


class ConstraintCollector:
    """Keeps the constraints that a walk meets: all of them, or a uniform sample once they are too many.

    n_weights
        Length of the weight vector.
    capacity
        Most constraints to keep.
    seed
        Decides which are kept when there are more.

    >>> collector = ConstraintCollector(2)
    >>> collector.append([1.0, -1.0], direction=-0.25)
    >>> collector.matrix().toarray().tolist()
    [[-1.0, 1.0]]
    """

    def __init__(
        self, n_weights: int, *, capacity: int = 100_000, seed: int | np.random.Generator | Stream = 0
    ) -> None:
        require(n_weights >= 1, "n_weights", n_weights, "at least 1")
        require(capacity >= 1, "capacity", capacity, "at least 1")
        self.n_weights, self.capacity = n_weights, capacity
        self.seen = 0
        self._stream = as_stream(seed)
        self._kept: list[SparseVector] = []

    def __len__(self) -> int:
        """Number of constraints kept; ``seen`` counts those met."""
        return len(self._kept)

    def append(self, gradient: SparseVector | ArrayLike, direction: float = 1.0) -> None:
        """Take the change of statistics of one proposal.

        gradient : float64[weights] or SparseVector
            Statistics of the proposed world minus those of the present one.
        direction
            Positive if the proposed world is the better one, negative if it is the worse one: the truth gain
            will do. Zero is a tie, which is no constraint.
        """
        if math.isnan(direction):
            raise InvalidArgumentError("direction is not a number. Give the truth gain, or zero for a tie.")
        row = gradient if isinstance(gradient, SparseVector) else self._sparse(gradient)
        if len(row.index) and not 0 <= row.index[0] <= row.index[-1] < self.n_weights:
            raise ShapeError(
                f"the gradient has entries from {row.index[0]} to {row.index[-1]}, but there are"
                f" {self.n_weights} weights. Give the collector the size of the model's weights."
            )
        if direction == 0.0:
            return
        self.seen += 1
        if len(self._kept) < self.capacity:
            self._kept.append(row.scaled(math.copysign(1.0, direction)))
            return
        place = self._stream.below(self.seen)
        if place < self.capacity:
            self._kept[place] = row.scaled(math.copysign(1.0, direction))

    def matrix(self) -> Rows:
        """Return better minus worse statistics of the pairs kept, sparse float64[kept, weights]."""
        start = np.cumsum([0, *(len(row.index) for row in self._kept)])
        index = np.concatenate([np.zeros(0, dtype=np.int64), *(row.index for row in self._kept)])
        value = np.concatenate([np.zeros(0), *(row.value for row in self._kept)])
        return csr_array((value, index, start), shape=(len(self._kept), self.n_weights))

    def _sparse(self, gradient: ArrayLike) -> SparseVector:
        dense = np.asarray(gradient, dtype=np.float64)
        if dense.shape != (self.n_weights,):
            raise ShapeError(
                f"the gradient has shape {dense.shape}, but there are {self.n_weights} weights."
                " Give one number per weight, in a flat array."
            )
        return SparseVector.from_dense(dense)
