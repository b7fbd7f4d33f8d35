"""Measurements of sequences of any length: the same coefficients at every position."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from factorwise.errors import InvalidArgumentError, ShapeError
from factorwise.inference.message_passing.projection.layout import Layout
from factorwise.inference.message_passing.projection.measurements import Measurement
from factorwise.types import Floats, Ints

SUMS = ("all", "position", "first", "last")


@dataclass(frozen=True, slots=True, eq=False)
class TiedMeasurement:
    """Numbers measured of a sequence through its statistics, which are sums over its positions.

    For each label: the expected number of positions with it (``"all"``), the same with each position weighted
    from 0 at the first to 1 at the last (``"position"``), and its probability at the ``"first"`` and the
    ``"last"`` position. For each pair of labels: the expected number of neighbors with them (``"pair"``).

    labels
        How many labels there are, S.
    matrix : sparse float64[measurements, 4 S + S S]
        Coefficients of the statistics, in the order above.
    """

    labels: int
    matrix: Any

    @classmethod
    def rows(cls, labels: int, rows: Iterable[Mapping[tuple[Hashable, ...], float]]) -> TiedMeasurement:
        """Build from one ``{statistic: coefficient}`` per measurement.

        A statistic is ``("all", label)``, ``("position", label)``, ``("first", label)``, ``("last", label)``
        or ``("pair", left, right)``.
        """
        listed = list(rows)
        columns = [_column(labels, key) for row in listed for key in row]
        values = [value for row in listed for value in row.values()]
        if not np.isfinite(values).all():
            raise InvalidArgumentError("a coefficient of a tied measurement is NaN or infinite.")
        bounds = np.cumsum([0, *map(len, listed)])
        width = len(SUMS) * labels + labels * labels
        return cls(labels, sparse.csr_array((np.array(values, float), columns, bounds), (len(listed), width)))

    @property
    def count(self) -> int:
        """How many numbers are measured."""
        return int(self.matrix.shape[0])

    @property
    def pairs_used(self) -> bool:
        """Whether any measurement reads pairs."""
        return bool((self.matrix.indices >= len(SUMS) * self.labels).any())

    def of_length(self, length: int) -> Measurement:
        """Return the same measurements of the marginals of a chain with ``length`` positions."""
        size, layout = self.labels, Layout.chain(length, self.labels)
        along = np.arange(length) / max(length - 1, 1)
        ends = np.eye(length)[[0, -1]]
        profiles = np.stack([np.ones(length), along, *ends])
        parts = [sparse.kron(profiles, sparse.eye_array(size))]
        if self.pairs_used:
            parts.append(sparse.kron(np.ones((1, length - 1)), sparse.eye_array(size * size)))
            statistics = sparse.block_diag(parts, format="csr")
            return Measurement.of(self.matrix @ statistics)
        return Measurement.of(self.matrix[:, : len(SUMS) * size] @ sparse.csr_array(parts[0])).widened(
            layout.node_size
        )

    def of_paths(self, path: Ints, start: Ints) -> Floats:
        """Return the measurements of label sequences, float64[sequences, measurements].

        path : int[places]
            Labels of all sequences, one after the other.
        start : int[sequences + 1]
            Where each begins.
        """
        size, lengths = self.labels, np.diff(start)
        if len(path) != start[-1] or (len(path) and not 0 <= path.min() <= path.max() < size):
            raise ShapeError(
                f"{len(path)} labels were given for sequences of {int(start[-1])} positions: give one"
                f" for each, from 0 to {size - 1}."
            )
        owner = np.repeat(np.arange(len(lengths)), lengths)
        position = np.arange(len(path)) - np.repeat(start[:-1], lengths)
        last = np.repeat(lengths, lengths) - 1
        amounts = np.stack(
            [np.ones(len(path)), position / np.maximum(last, 1), position == 0, position == last]
        )
        statistics = np.zeros((len(lengths), self.matrix.shape[1]))
        for kind, amount in enumerate(amounts):
            np.add.at(statistics, (owner, kind * size + path), amount)
        left = np.flatnonzero(position < last)
        np.add.at(statistics, (owner[left], len(SUMS) * size + path[left] * size + path[left + 1]), 1.0)
        return np.asarray(statistics @ self.matrix.T)


def _column(labels: int, key: tuple[Hashable, ...]) -> int:
    name, *arguments = key
    wanted = 2 if name == "pair" else 1
    known = name == "pair" or name in SUMS
    if not known or len(arguments) != wanted or not all(isinstance(p, (int, np.integer)) for p in arguments):
        raise InvalidArgumentError(
            f"{key!r} is not a statistic of a sequence: use ('all', label), ('position', label),"
            " ('first', label), ('last', label) or ('pair', left, right)."
        )
    numbers = [int(place) for place in arguments if isinstance(place, (int, np.integer))]
    if not all(0 <= number < labels for number in numbers):
        raise InvalidArgumentError(f"{key!r} names a label that does not exist: use 0 to {labels - 1}.")
    if name == "pair":
        return len(SUMS) * labels + numbers[0] * labels + numbers[1]
    return SUMS.index(str(name)) * labels + numbers[0]
