"""Gibbs sampling for assignments: one variable at a time, or blocks of variables jointly.

A step resamples from the exact conditional distribution given everything else. With ``scan="random"`` a step
visits one block, drawn uniformly; with ``scan="systematic"`` a step is one sweep through all blocks in order.
Draws: the block (random scan only), then for each visit one number that picks the setting.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from factorwise.errors import InvalidArgumentError
from factorwise.inference.mcmc.assignment_proposals import JointScores, joint_scores, log_sum, pick
from factorwise.inference.mcmc.kernel import Step, tempered
from factorwise.model.model import Model
from factorwise.model.template import finite_difference
from factorwise.rng import Stream
from factorwise.variables.variable import Variables
from factorwise.world.assignment import Assignment, Relabel

Scan = Literal["random", "systematic"]
Block = tuple[int, ...]
MAX_SETTINGS = 4096

_STAY = Step(None, 0.0, 0.0, False)


@dataclass(frozen=True, slots=True)
class Gibbs:
    """Resample one hidden variable at a time."""

    model: Model
    scan: Scan = "random"

    def __post_init__(self) -> None:
        _require_scan(self.scan)

    def blocks_of(self, variables: Variables) -> list[Block]:
        """Return each movable variable on its own."""
        return [(variable,) for variable in variables.movable.tolist()]

    def step(self, stream: Stream, world: Assignment, temperature: float = 1.0) -> Step:
        """Decide one step."""
        movable = world.variables.movable
        if not len(movable):
            return _STAY
        if self.scan == "random":
            return _visit(self.model, stream, world, (int(movable[stream.below(len(movable))]),), temperature)
        return _sweep(self.model, stream, world, self.blocks_of(world.variables), temperature)

    def transitions(self, world: Assignment, temperature: float = 1.0) -> Iterator[tuple[Relabel, float]]:
        """Enumerate where one step may lead."""
        yield from _transitions(self.model, self.scan, world, self.blocks_of(world.variables), temperature)


class BlockGibbs:
    """Resample the labels of a block of hidden variables jointly, by enumerating its settings.

    blocks
        Flat variable numbers of each block; blocks may overlap. Variables in no block keep their labels.
    limit
        Most settings a block may have.
    """

    def __init__(
        self, model: Model, blocks: Sequence[Sequence[int]], scan: Scan = "random", limit: int = MAX_SETTINGS
    ) -> None:
        _require_scan(scan)
        self.model = model
        self.blocks: list[Block] = [tuple(int(variable) for variable in block) for block in blocks]
        self.scan: Scan = scan
        self.limit = limit
        if not self.blocks or not all(self.blocks):
            raise InvalidArgumentError("BlockGibbs needs at least one block, and a variable in each block.")
        if any(len(set(block)) < len(block) for block in self.blocks):
            raise InvalidArgumentError("a block of BlockGibbs names a variable twice: name each once.")
        self._checked: Variables | None = None

    def blocks_of(self, variables: Variables) -> list[Block]:
        """Return the blocks, after checking that they can be resampled."""
        if self._checked is not variables:
            for number, block in enumerate(self.blocks):
                self._check(number, block, variables)
            self._checked = variables
        return self.blocks

    def step(self, stream: Stream, world: Assignment, temperature: float = 1.0) -> Step:
        """Decide one step."""
        blocks = self.blocks_of(world.variables)
        if self.scan == "random":
            return _visit(self.model, stream, world, blocks[stream.below(len(blocks))], temperature)
        return _sweep(self.model, stream, world, blocks, temperature)

    def transitions(self, world: Assignment, temperature: float = 1.0) -> Iterator[tuple[Relabel, float]]:
        """Enumerate where one step may lead."""
        yield from _transitions(self.model, self.scan, world, self.blocks_of(world.variables), temperature)

    def _check(self, number: int, block: Block, variables: Variables) -> None:
        if not 0 <= min(block) <= max(block) < len(variables):
            raise InvalidArgumentError(
                f"block {number} names variables {min(block)} to {max(block)}: there are {len(variables)}."
            )
        fixed = [variable for variable in block if variables.observed[variable]]
        if fixed:
            raise InvalidArgumentError(
                f"block {number} names variable {fixed[0]}, which is observed: leave it out of the block."
            )
        settings = math.prod(variables.cardinality[list(block)].tolist())
        if settings > self.limit:
            raise InvalidArgumentError(
                f"block {number} has {len(block)} variables with {settings} joint settings, and the limit is"
                f" {self.limit}: use smaller blocks, or raise limit= if the time is there."
            )


def _require_scan(scan: str) -> None:
    if scan not in ("random", "systematic"):
        raise InvalidArgumentError(f"scan must be 'random' or 'systematic', but {scan!r} was given.")


def _tempered_scores(joint: JointScores, temperature: float) -> NDArray[np.float64]:
    return np.array([tempered(score, temperature) for score in joint.scores.tolist()])


def _visit(model: Model, stream: Stream, world: Assignment, block: Block, temperature: float) -> Step:
    """Resample one block."""
    chance = stream.uniform()
    joint = joint_scores(model, world, block)
    chosen = pick(chance, _tempered_scores(joint, temperature))
    if chosen == joint.current:
        return _STAY
    gain = finite_difference(float(joint.scores[chosen]), float(joint.scores[joint.current]))
    return Step(_between(block, joint.settings[joint.current], joint.settings[chosen]), gain, 0.0, True)


def _sweep(model: Model, stream: Stream, world: Assignment, blocks: list[Block], temperature: float) -> Step:
    """Resample all blocks in order, on a copy, and return the whole change as one diff."""
    copy = world.copy()
    gain = 0.0
    for block in blocks:
        step = _visit(model, stream, copy, block, temperature)
        if step.accepted:
            copy.apply(step.diff)
            gain += step.gain
    changed = tuple(np.flatnonzero(copy.values != world.values).tolist())
    if not changed:
        return _STAY
    return Step(world.relabel(changed, copy.values[list(changed)].tolist()), gain, 0.0, True)


def _transitions(
    model: Model, scan: Scan, world: Assignment, blocks: list[Block], temperature: float
) -> Iterator[tuple[Relabel, float]]:
    if scan == "random":
        for block in blocks:
            for there, chance in _outcomes(model, world, block, temperature):
                if there != world:
                    yield _net(world, there), chance / len(blocks)
        return
    reached = {world.canonical(): (world, 1.0)}
    for block in blocks:
        following: dict[bytes, tuple[Assignment, float]] = {}
        for here, probability in reached.values():
            for there, chance in _outcomes(model, here, block, temperature):
                _, sofar = following.get(there.canonical(), (there, 0.0))
                following[there.canonical()] = (there, sofar + probability * chance)
        reached = following
    for there, probability in reached.values():
        if there != world:
            yield _net(world, there), probability


def _outcomes(
    model: Model, world: Assignment, block: Block, temperature: float
) -> Iterator[tuple[Assignment, float]]:
    joint = joint_scores(model, world, block)
    scores = _tempered_scores(joint, temperature)
    total = log_sum(scores)
    for setting, score in zip(joint.settings, scores.tolist(), strict=True):
        if score > -math.inf:
            yield world.after(world.relabel(block, setting)), math.exp(score - total)


def _net(before: Assignment, after: Assignment) -> Relabel:
    changed = np.flatnonzero(before.values != after.values).tolist()
    return before.relabel(changed, after.values[changed].tolist())


def _between(block: Block, old: tuple[int, ...], new: tuple[int, ...]) -> Relabel:
    """Return the diff between two settings of ``block``, naming only what differs."""
    changed = [place for place in range(len(block)) if old[place] != new[place]]
    return Relabel(
        tuple(block[place] for place in changed),
        tuple(old[place] for place in changed),
        tuple(new[place] for place in changed),
    )
