"""Evaluators as parts of a walk: templates that hold other templates and look at some of their factors.

Pairs of items are sampled, whichever templates score them: a pair is one factor. What a template says of
whole clusters is always examined, as in plain evaluation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from factorwise.errors import NoCompiledFormError
from factorwise.inference.mcmc.parts import Surroundings
from factorwise.kernels.clusterings.samples import accept_delayed
from factorwise.kernels.compile.programs import Pointers, Program


class Sampled(NamedTuple):
    """The programs of a walk whose gains are estimated.

    templates
        In place of the model's.
    pairs
        Those of the model's whose factors are sampled.
    found : float64[2]
        What the sampling template notes of each move.
    """

    templates: list[Program]
    pairs: list[Program]
    found: np.ndarray[Any, np.dtype[np.float64]]


def sampled_programs(
    parts: Surroundings, gain: Callable[..., Any], rule: Sequence[float], options: Sequence[int]
) -> Sampled:
    """Put one template that samples in the place of all whose factors are pairs.

    gain, rule, options
        Of the template, see `factorwise.kernels.clusterings.samples`.
    """
    for template in parts.model.templates:
        if getattr(template, "examined", "") not in ("pairs", "whole"):
            raise NoCompiledFormError(
                f"template {template.name!r} ({type(template).__name__}) lists its factors in Python"
                " only: walks"
                " sample those of PairTemplate, VectorPairTemplate and CountedTemplate and always"
                " examine those of"
                " whole clusters. Run with engine='plain'."
            )
    pairs = [program for program in parts.templates if "pairs" in program.functions]
    others = [program for program in parts.templates if "pairs" not in program.functions]
    n = parts.world.n_items
    found = np.zeros(2)
    arrays = {
        "inner": Pointers(pairs, ("pairs",)),
        "order": np.arange(n, dtype=np.int32),
        "swapped": np.zeros(n, np.int32),
        "changes": np.zeros(n),
        "rule": np.asarray(rule, dtype=np.float64),
        "options": np.asarray(options, dtype=np.int64),
        "sums": np.zeros((2, 3)),
        "found": found,
    }
    sampler = Program(name="sampled pairs", arrays=arrays, gain=gain)
    begun = [_only(("begin",), program) for program in pairs if "begin" in program.functions]
    return Sampled([sampler, *begun, *others], pairs, found)


def delayed_programs(sampled: Sampled, *, balanced: bool) -> dict[str, Any]:
    """Return an acceptance that takes the exact gain of what passes a test of the estimated one.

    balanced
        Whether the proposer's ratio counts.
    """
    if any("gain" not in program.functions for program in sampled.pairs):
        raise NoCompiledFormError(
            "tables of pairs say how statistics change and not what a move gains, so that no second"
            " stage can be"
            " compiled beside them: run with engine='plain'."
        )
    kept = [_only(("applied",), program) for program in sampled.pairs if "applied" in program.functions]
    arrays = {
        "exact": Pointers(sampled.pairs, ("gain",)),
        "found": sampled.found,
        "balanced": np.array([balanced], np.int64),
    }
    accept = Program(name="delayed acceptance", arrays=arrays, accept=accept_delayed)
    return {"templates": [*sampled.templates, *kept], "accept": accept}


def _only(roles: tuple[str, ...], program: Program) -> Program:
    """Return some functions of a program, over the same arrays."""
    functions: dict[str, Any] = {role: program.functions[role] for role in roles}
    return Program(name=program.name, arrays=program.arrays, **functions)
