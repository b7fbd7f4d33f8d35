"""Evaluators as parts of a walk: templates that contain other templates and examine some of their factors.

Pairs of items are sampled, whichever templates score them, because a pair is one factor. Factors of whole
clusters are always examined, as in plain evaluation.
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
        The programs that replace those of the model.
    pairs
        The model's programs whose factors are sampled.
    found : float64[2]
        The record of the sampling template for each move.
    """

    templates: list[Program]
    pairs: list[Program]
    found: np.ndarray[Any, np.dtype[np.float64]]


def sampled_programs(
    parts: Surroundings, gain: Callable[..., Any], rule: Sequence[float], options: Sequence[int]
) -> Sampled:
    """Replace all templates whose factors are pairs by one that samples.

    gain, rule, options
        Of the sampling template, see `factorwise.kernels.clusterings.samples`.
    """
    for template in parts.model.templates:
        if getattr(template, "examined", "") not in ("pairs", "whole"):
            raise NoCompiledFormError(
                f"template {template.name!r} ({type(template).__name__}) lists its factors in Python"
                " only: compiled walks can sample those of PairTemplate, VectorPairTemplate and"
                " CountedTemplate, and always examine those of whole clusters. Use engine='plain'."
            )
    pairs = [program for program in parts.templates if "pairs" in program.functions]
    unsampled = [program for program in parts.templates if "pairs" not in program.functions]
    n = parts.world.n_items
    record = np.zeros(2)
    arrays = {
        "inner": Pointers(pairs, ("pairs",)),
        "order": np.arange(n, dtype=np.int32),
        "swapped": np.zeros(n, np.int32),
        "changes": np.zeros(n),
        "rule": np.asarray(rule, dtype=np.float64),
        "options": np.asarray(options, dtype=np.int64),
        "sums": np.zeros((2, 3)),
        "found": record,
    }
    sampler = Program(name="sampled pairs", arrays=arrays, gain=gain)
    begun = [_only(("begin",), program) for program in pairs if "begin" in program.functions]
    return Sampled([sampler, *begun, *unsampled], pairs, record)


def delayed_programs(sampled: Sampled, *, balanced: bool) -> dict[str, Any]:
    """Return an acceptance that uses the exact gain of moves that pass a test of the estimated one.

    balanced
        Whether the proposer's ratio counts.
    """
    if any("gain" not in program.functions for program in sampled.pairs):
        raise NoCompiledFormError(
            "tables of pairs compute changes of statistics but not the gain of a move, so no second"
            " stage can be compiled with them: use engine='plain'."
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
    """Return a program with only some of the functions, over the same arrays."""
    functions: dict[str, Any] = {role: program.functions[role] for role in roles}
    return Program(name=program.name, arrays=program.arrays, **functions)
