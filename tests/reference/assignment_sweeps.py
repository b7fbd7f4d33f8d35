"""Gibbs sampling for assignments, from the definition: every candidate world is scored as a whole.

Worlds are lists of codes; every function changes ``values`` in place and returns how many steps changed it.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from factorwise.model.grounding import FactorGraph
from factorwise.model.unrolling import CountFactors
from factorwise.rng import Stream
from reference.assignment_gains import joint_scores, pick_position


@dataclass(frozen=True)
class Problem:
    """A grounded model with the variables that may change.

    movable
        Variables that may change.
    pools
        Lists of variables that may exchange labels.
    """

    graph: FactorGraph
    counts: CountFactors
    movable: Sequence[int]
    pools: Sequence[Sequence[int]]


def gibbs_steps(
    problem: Problem, stream: Stream, values: list[int], systematic: bool, temperature: float, steps: int
) -> int:
    """Resample one variable a step, or all of them in order."""
    blocks = [[variable] for variable in problem.movable]
    return block_gibbs_steps(problem, stream, values, blocks, systematic, temperature, steps)


def block_gibbs_steps(
    problem: Problem,
    stream: Stream,
    values: list[int],
    blocks: Sequence[Sequence[int]],
    systematic: bool,
    temperature: float,
    steps: int,
) -> int:
    """Resample one block of variables jointly a step, or all blocks in order."""
    changed = 0
    for _ in range(steps):
        before = list(values)
        for block in blocks if systematic else [blocks[stream.below(len(blocks))]]:
            labels = [range(int(problem.graph.cardinality[variable])) for variable in block]
            settings = [dict(zip(block, setting, strict=True)) for setting in itertools.product(*labels)]
            scores = joint_scores(values, problem.graph, problem.counts, settings)
            chosen = pick_position(stream.uniform(), [score / temperature for score in scores])
            for variable, label in settings[chosen].items() if chosen >= 0 else ():
                values[variable] = label
        changed += values != before
    return changed
