"""What `infer` returns: the answer, how it was found, and how sure it is."""

from __future__ import annotations

from dataclasses import dataclass, field

from factorwise.inference.base import Best, Marginals


@dataclass(frozen=True, slots=True)
class Answer:
    """Probabilities and a best setting of a factor graph, with the methods that found them.

    marginals
        Probabilities of labels and the log partition function; None if they were not asked for.
    best
        A best setting; None if it was not asked for, or if no setting was met that is possible.
    log_partition_bounds
        Numbers between which the log partition function lies for certain; equal if it is exact. An upper
        bound of infinity means that none was found.
    score_bound
        A score that no setting exceeds; that of ``best`` where it is known to be optimal.
    marginals_method, best_method
        The method that was chosen, in words.

    Notes
        Why methods were not chosen, and what to know about the answer.
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
        """Whether everything that was asked for is exact."""
        bounds = self.log_partition_bounds
        sure = bounds is None or bounds[0] == bounds[1]
        return sure and (not self.best_method or (self.best is not None and self.best.exact))

    @property
    def log_partition(self) -> float | None:
        """The log partition function or its approximation; None if it was not asked for."""
        return None if self.marginals is None else self.marginals.log_partition

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self) -> list[str]:
        """Say in a few lines what was found, how, and how sure it is."""
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
