"""A preference for labels of tokens by the F1 of the spans that they mark."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from factorwise.errors import InvalidArgumentError, ShapeError, require
from factorwise.inference.mcmc.parts import Surroundings
from factorwise.kernels.assignments import spans
from factorwise.kernels.compile.programs import Program
from factorwise.learning.samplerank.preferences import ProgramPreference
from factorwise.metrics.sequence import SpanCounter
from factorwise.validation import is_rising
from factorwise.world.assignment import Assignment


class SpanPreference(ProgramPreference):
    """Prefer assignments of one column by the F1 of their spans, as seqeval counts them (B-PER, I-PER).

    If nearly all labels are O, accuracy prefers no spans at all; this preference uses the metric that is
    reported in the end.

    truth
        An `Assignment` with the correct labels of all variables.
    chains : int[chains + 1]
        The variables from ``chains[k]`` to ``chains[k + 1] - 1`` are a sentence; by default all are one.
    smoothing
        This many further spans count as correct when worlds are compared: without it, a wrong span costs
        nothing while no span is correct.

    A span of several tokens is correct only once all its labels are: let half of the walks start at the truth
    (``truth_starts=0.5``).
    """

    worlds = (Assignment,)

    def __init__(self, truth: Assignment, chains: ArrayLike | None = None, *, smoothing: float = 1.0) -> None:
        if not isinstance(truth, Assignment) or len(truth.variables.columns) != 1:
            raise InvalidArgumentError(
                "the truth of a SpanPreference must be an Assignment of one column of labels: make it"
                " with Assignment.from_labels(variables, {'label': labels})."
            )
        require(smoothing >= 0.0, "smoothing", smoothing, "zero or more")
        self.truth, self.smoothing = truth, float(smoothing)
        n = len(truth.values)
        self.chains = np.array([0, n]) if chains is None else np.asarray(chains)
        ascending = self.chains.ndim == 1 and len(self.chains) > 1 and is_rising(self.chains)
        if not ascending or self.chains[0] != 0 or self.chains[-1] != n:
            raise ShapeError(f"chains must run from 0 to the {n} variables without falling.")
        self.counter = SpanCounter([str(label) for label in truth.variables.columns[0].domain.labels])

    def program(self, parts: Surroundings) -> Program:
        """Return the program that judges a change by the spans around its variable."""
        n = len(self.truth.values)
        if len(parts.world.values) != n:
            raise ShapeError(f"the truth has {n} variables, but the world has {len(parts.world.values)}.")
        true = self.counter.find(self.truth.values, self.chains)
        first, kind = np.full((2, n), -1, np.int32)
        first[true.end - 1], kind[true.end - 1] = true.start, true.type
        begins, ends, types = self.counter.boundaries
        arrays: dict[str, Any] = {
            "begins": begins,
            "ends": ends,
            "type": types,
            "low": np.repeat(self.chains[:-1], np.diff(self.chains)).astype(np.int64),
            "high": np.repeat(self.chains[1:], np.diff(self.chains)).astype(np.int64),
            "true_first": first,
            "true_type": kind,
            "smoothing": [self.smoothing],
            "count": np.array([len(true.end), 0, 0], np.int64),
        }
        return Program(
            judge=spans.judge_spans,
            applied=spans.spans_applied,
            begin=spans.begin_spans,
            value=spans.spans_value,
            arrays=arrays,
            name="span F1",
        )
