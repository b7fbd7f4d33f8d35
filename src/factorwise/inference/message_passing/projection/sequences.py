"""Project many sequences at once, compiled and on several threads.

Each sequence is a separate problem. For energies of tied measurements, the compiled path does the same as
`RDA` and adaptive `MirrorDescent`, step by step; a sequence whose scores are too large for it is solved by
the plain path.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from factorwise.errors import InvalidArgumentError, ShapeError
from factorwise.inference.message_passing.projection.chain_base import ChainBase
from factorwise.inference.message_passing.projection.energies import MeasuredEnergy
from factorwise.inference.message_passing.projection.losses import Losses
from factorwise.inference.message_passing.projection.measurements import Measurement
from factorwise.inference.message_passing.projection.mirror_descent import MirrorDescent
from factorwise.inference.message_passing.projection.problem import Problem
from factorwise.inference.message_passing.projection.rda import RDA
from factorwise.inference.message_passing.projection.results import Projection, Stopping
from factorwise.inference.message_passing.projection.tied import SUMS, TiedMeasurement
from factorwise.kernels.chains.projected_chains import (
    CONVERGED,
    LOST,
    ProjectedRun,
    best_range,
    project_range,
)
from factorwise.kernels.chains.shifted_chains import LANES, Chains, Measured, Work
from factorwise.kernels.compile.threads import Team
from factorwise.types import Bools, Floats, Int64s, Ints
from factorwise.variables.sparse_rows import starts_of

FEW_PAIRS = 1 / 10  # of all: if fewer occur, they are summed one by one


@dataclass(frozen=True, slots=True, eq=False)
class SequenceEnergy:
    """One energy for sequences of all lengths.

    measurement
    losses
        One for each measurement, or one for all.
    weights : float[measurements] or float[sequences, measurements]
        Zero or more; the same for all sequences, or one row for each.
    """

    measurement: TiedMeasurement
    losses: Losses
    weights: Floats

    def of(self, length: int, sequence: int = 0) -> MeasuredEnergy:
        """Return the energy of one sequence, for the plain solvers."""
        weights = self.weights if self.weights.ndim < 2 else self.weights[sequence]
        return MeasuredEnergy(
            self.measurement.of_length(length), self.losses, weights, name=f"energy of sequence {sequence}"
        )


@dataclass(frozen=True, slots=True, eq=False)
class SequenceProjections:
    """The result for each sequence; see `Projection`.

    node : float64[places, S]
        Marginals of all sequences, one after the other.
    pairs : float64[sequences, S, S]
        Expected number of each pair of neighbors; empty unless requested.
    shift, measured : float64[sequences, measurements]
    objective, gap : float64[sequences]
    iterations, calls : int64[sequences]
    converged : bool[sequences]
    """

    start: Ints
    node: Floats
    pairs: Floats
    shift: Floats
    measured: Floats
    objective: Floats
    gap: Floats
    iterations: Ints
    calls: Ints
    converged: Bools
    _batch: _Batch = field(repr=False)

    def best(self, team: Team | None = None) -> Int64s:
        """Return best paths at the shifted scores, int64[places], one after the other: the prediction."""
        return self._batch.best(self.shift, team or Team(1))


def project_sequences(
    node_scores: Sequence[ArrayLike],
    edge_scores: ArrayLike,
    energy: SequenceEnergy,
    *,
    table: ArrayLike | None = None,
    solver: RDA | MirrorDescent | None = None,
    tolerance: float = 1e-6,
    max_iterations: int = 1_000,
    pairs: bool = False,
    team: Team | None = None,
) -> SequenceProjections:
    """Project every sequence; the result does not depend on the number of threads.

    node_scores
        float[T, S] for each sequence.
    edge_scores : float[S, S] or float[tables, S, S]
        Of transitions, the same everywhere in a sequence.
    table : int[sequences]
        Which of several tables each sequence has.
    solver
        `MirrorDescent` with adaptive steps, the default, or `RDA`.
    tolerance, max_iterations
        See `Stopping`.
    pairs
        Whether to return the expected number of each pair.
    """
    chosen = solver or MirrorDescent()
    if isinstance(chosen, MirrorDescent) and chosen.step != "adaptive":
        raise InvalidArgumentError(
            "sequences are projected with adaptive steps only: use MirrorDescent(), or project() for each"
            " with the schedule."
        )
    stopping = Stopping(tolerance=tolerance, max_iterations=max_iterations)
    return _Batch(node_scores, edge_scores, energy, pairs, table).solve(chosen, stopping, team or Team(1))


class _Batch:
    """Sequences and their energy in the kernels' layout, with labels padded."""

    def __init__(
        self,
        node_scores: Sequence[ArrayLike],
        edge_scores: ArrayLike,
        energy: SequenceEnergy,
        pairs: bool,
        table: ArrayLike | None = None,
    ) -> None:
        rows = [np.asarray(scores, dtype=np.float64) for scores in node_scores]
        self.labels = energy.measurement.labels
        for index, scores in enumerate(rows):
            if scores.ndim != 2 or scores.shape[1] != self.labels or not len(scores):
                raise ShapeError(
                    f"sequence {index} has scores of shape {scores.shape}: give a row of {self.labels} for"
                    " each of its places, at least one."
                )
        self.rows = rows
        self.energy = energy
        self.pairs = pairs
        self.lengths = np.array([len(scores) for scores in rows], dtype=np.int64)
        self.start = starts_of(self.lengths)
        self.size = -(-self.labels // LANES) * LANES
        node = np.full((int(self.start[-1]), self.size), -np.inf)
        if len(rows):
            node[:, : self.labels] = np.concatenate(rows)
        bad = np.flatnonzero(~(node < np.inf).all(axis=1))
        if len(bad):
            index = int(np.searchsorted(self.start, bad[0], side="right")) - 1
            raise InvalidArgumentError(f"the scores of sequence {index} hold +inf or NaN.")
        self.edges, self.table = _tables(edge_scores, table, len(rows), self.labels)
        edge = np.full((len(self.edges), self.size, self.size), -np.inf)
        edge[:, : self.labels, : self.labels] = self.edges
        peak = edge.max(axis=(1, 2), initial=-np.inf)
        finite = np.where(peak > -np.inf, peak, 0.0)
        weight = np.exp(edge - finite[:, None, None])
        self.chains = Chains(node, self.start, edge, weight, finite, self.table)
        self.measured = self._measured()

    def solve(self, solver: RDA | MirrorDescent, stopping: Stopping, team: Team) -> SequenceProjections:
        """Project all."""
        count, numbers = len(self.rows), self.energy.measurement.count
        outcome = ProjectedRun(
            np.zeros((2, count, numbers)),
            np.zeros_like(self.chains.node),
            np.zeros((count if self.pairs else 0, self.size, self.size)),
            np.zeros((2, count)),
            np.zeros((3, count), dtype=np.int64),
        )
        descent = isinstance(solver, MirrorDescent)
        beta = 0.0 if isinstance(solver, MirrorDescent) else solver.beta
        if beta is None:
            raise InvalidArgumentError("RDA(beta=None) finds beta for one problem: give a number here.")

        def work(first: int, last: int) -> None:
            project_range(
                self.chains,
                self.measured,
                descent,
                beta,
                stopping.tolerance,
                stopping.max_iterations,
                self._work(),
                outcome,
                first,
                last,
            )

        team.share(count, work)
        shift, measured = outcome.points
        objective, gap = outcome.values
        iterations, calls, status = outcome.counts
        converged = status == CONVERGED
        for sequence in np.flatnonzero(status == LOST).tolist():
            converged[sequence] = self._plainly(sequence, solver, stopping, outcome)
        keep = slice(self.labels)
        return SequenceProjections(
            self.start,
            outcome.node[:, keep],
            outcome.pairs[:, keep, keep],
            shift,
            measured,
            objective,
            gap,
            iterations,
            calls,
            converged,
            self,
        )

    def best(self, shift: Floats, team: Team) -> Int64s:
        """Run Viterbi at shifted scores for all sequences."""
        path = np.zeros(int(self.start[-1]), dtype=np.int64)

        def work(first: int, last: int) -> None:
            best_range(self.chains, self.measured, shift, self._work(), path, first, last)

        team.share(len(self.rows), work)
        return path

    def _plainly(
        self, sequence: int, solver: RDA | MirrorDescent, stopping: Stopping, outcome: ProjectedRun
    ) -> bool:
        """Solve one sequence by the plain path, which can also use the log domain."""
        base = ChainBase(self.rows[sequence], self.edges[self.table[sequence]])
        energy = self.energy.of(len(self.rows[sequence]), sequence)
        projection: Projection = solver.solve(Problem(base, energy), stopping)
        nodes, size = base.layout.node_size, self.labels
        own = slice(int(self.start[sequence]), int(self.start[sequence + 1]))
        outcome.node[own, :size] = projection.marginals[:nodes].reshape(-1, size)
        if self.pairs:
            joint = projection.marginals[nodes:].reshape(-1, size, size)
            outcome.pairs[sequence, :size, :size] = joint.sum(axis=0)
        outcome.points[:, sequence] = projection.shift, projection.measured
        outcome.values[:, sequence] = (
            projection.objective,
            np.inf if projection.gap is None else projection.gap,
        )
        outcome.counts[:2, sequence] = projection.iterations, projection.calls
        return projection.converged

    def _measured(self) -> Measured:
        measurement, size = self.energy.measurement, self.labels
        array = np.atleast_2d(np.asarray(self.energy.weights, dtype=np.float64))
        weights = np.ascontiguousarray(np.broadcast_to(array, (len(array), measurement.count)))
        if len(weights) not in (1, len(self.rows)):
            raise ShapeError(
                f"weights for {len(weights)} sequences were given, but there are {len(self.rows)}: give one"
                " row for each, or one for all."
            )
        rows = measurement.matrix
        losses = MeasuredEnergy(Measurement.of(rows), self.energy.losses, weights.min(axis=0)).losses
        profile, label = np.divmod(rows.indices, size)
        left, right = np.divmod(rows.indices - len(SUMS) * size, size)
        pair = rows.indices >= len(SUMS) * size
        column = np.where(
            pair, (len(SUMS) + left) * self.size + right, np.minimum(profile, len(SUMS)) * self.size + label
        )
        used = np.bincount(profile[~pair], minlength=len(SUMS)) > 0
        occurring = np.unique(column[pair]) - len(SUMS) * self.size
        return Measured(
            rows.indptr.astype(np.int64),
            column.astype(np.int64),
            rows.data,
            used.astype(np.int64),
            occurring.astype(np.int64),
            self.pairs or len(occurring) > FEW_PAIRS * size * size,
            losses.kind,
            losses.target,
            losses.width,
            weights,
        )

    def _work(self) -> Work:
        longest, numbers = max(int(self.lengths.max(initial=1)), 2), self.energy.measurement.count
        return Work(
            np.zeros((4, longest, self.size)),
            np.zeros(longest + self.size),
            np.zeros((2, (len(SUMS) + self.size) * self.size)),
            np.zeros((1, self.size, self.size)),
            np.zeros((5, numbers)),
        )


def _tables(
    edge_scores: ArrayLike, table: ArrayLike | None, sequences: int, labels: int
) -> tuple[Floats, Ints]:
    """Return tables of transitions, float64[tables, S, S], and which one each sequence has."""
    edges = np.asarray(edge_scores, dtype=np.float64)
    edges = edges[None] if edges.ndim == 2 else edges
    if edges.ndim != 3:
        raise ShapeError(
            f"edge_scores has shape {edges.shape}: give [{labels}, {labels}], or several such tables."
        )
    checked = np.stack([ChainBase(np.zeros((2, labels)), each).edge[0] for each in edges])
    which = np.zeros(sequences, dtype=np.int64) if table is None else np.asarray(table, dtype=np.int64)
    if which.shape != (sequences,) or (table is None and len(edges) > 1):
        raise ShapeError(
            f"{len(edges)} tables of transitions were given for {sequences} sequences: say with table="
            " which one each has."
        )
    if sequences and not 0 <= which.min() <= which.max() < len(edges):
        raise InvalidArgumentError(
            f"'table' names tables {which.min()} to {which.max()}, but there are {len(edges)}: count from 0."
        )
    return checked, which
