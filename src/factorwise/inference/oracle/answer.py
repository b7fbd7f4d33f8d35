"""The result of `infer`: the answer, the methods that computed it, and how certain it is."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from factorwise.inference.base import Best, Marginals
from factorwise.inference.exports import Labels, Names, marginals_array, marginals_frame
from factorwise.types import Floats
from factorwise.views import html_table


@dataclass(frozen=True, slots=True)
class Answer:
    """Probabilities and a best setting of a factor graph, with the methods that found them.

    marginals
        Probabilities of labels and the log partition function; None if they were not requested.
    best
        A best setting; None if it was not requested, or if no possible setting was found.
    log_partition_bounds
        Certain lower and upper bounds of the log partition function; equal if it is exact. An upper bound of
        infinity means that none was found.
    score_bound
        A score that no setting exceeds; that of ``best`` if it is known to be optimal.
    marginals_method, best_method
        The method that was chosen, in words.

    Notes
        Why methods were not chosen, and remarks on the answer.
    seconds
        Time taken.
    """

    marginals: Marginals | None = None
    best: Best | None = None
    log_partition_bounds: tuple[float, float] | None = None
    score_bound: float | None = None
    marginals_method: str = ""
    best_method: str = ""
    notes: tuple[str, ...] = field(default=())
    seconds: float = 0.0

    @property
    def exact(self) -> bool:
        """Whether everything that was requested is exact."""
        bounds = self.log_partition_bounds
        sure = bounds is None or bounds[0] == bounds[1]
        return sure and (not self.best_method or (self.best is not None and self.best.exact))

    @property
    def log_partition(self) -> float | None:
        """The log partition function or its approximation; None if it was not requested."""
        return None if self.marginals is None else self.marginals.log_partition

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def to_pandas(self, names: Names = None, labels: Labels = None) -> Any:
        """Return label probabilities as a ``pandas.DataFrame`` with a row for each variable and label.

        The probabilities are 0 and 1 if only a best setting was requested.

        names, labels
            Names of the variables and of the labels of each, as a ``Network`` has them; numbers by default.
        """
        return marginals_frame(self._node(labels), names, labels)

    def to_xarray(self, names: Names = None, labels: Labels = None) -> Any:
        """Return label probabilities as an ``xarray.DataArray`` over variables and labels.

        See `to_pandas`.
        """
        return marginals_array(self._node(labels), names, labels)

    def _node(self, labels: Labels) -> tuple[Floats, ...]:
        if self.marginals is not None:
            return self.marginals.node
        values = [] if self.best is None else self.best.values.tolist()
        sizes = [value + 1 for value in values] if labels is None else [len(own) for own in labels]
        return tuple(np.eye(size)[value] for size, value in zip(sizes, values, strict=True))

    def _repr_html_(self) -> str:
        return html_table("Answer", (), [(line,) for line in self.lines()])

    def lines(self) -> list[str]:
        """Return a few lines that say what was computed, how, and how certain it is."""
        lines = []
        if self.marginals is not None and self.log_partition_bounds is not None:
            low, high = self.log_partition_bounds
            sure = "exact" if low == high else f"approximate; log Z is between {low:.6g} and {high:.6g}"
            lines.append(f"log Z {self.marginals.log_partition:.10g} by {self.marginals_method}: {sure}")
        if self.best is not None and self.score_bound is not None:
            gap = self.score_bound - self.best.score
            sure = "optimal" if self.best.exact else f"at most {gap:.6g} below the optimum"
            lines.append(f"best score {self.best.score:.10g} by {self.best_method}: {sure}")
        elif self.best_method:
            lines.append(f"no possible setting was found by {self.best_method}")
        return [*lines, *self.notes, f"{self.seconds:.2f} seconds"]
