"""Gibbs sampling for assignments: one variable at a time, or blocks of variables jointly.

A step resamples from the exact conditional distribution given everything else. With ``scan="random"``, a step
visits one block, drawn uniformly; with ``scan="systematic"``, a step is one sweep through all blocks in
order. A random scan draws the block; each visit then draws one number, which picks the setting.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from factorwise.errors import InvalidArgumentError
from factorwise.inference.mcmc.evaluators.base import FactorSampler
from factorwise.inference.mcmc.evaluators.exact import EXACT, Exact
from factorwise.inference.mcmc.kernel import Step
from factorwise.inference.mcmc.metropolis import require_exact
from factorwise.inference.mcmc.parts import Surroundings
from factorwise.inference.mcmc.proposals.assignment_proposals import JointScores, joint_scores, pick
from factorwise.kernels.assignments import blocks as visits
from factorwise.kernels.assignments import choices
from factorwise.kernels.compile.programs import Pointers, Program
from factorwise.kernels.walks.acceptances import accept_always, choose_by_score
from factorwise.kernels.walks.frames import make_adapters
from factorwise.kernels.walks.library import room_for, tempered
from factorwise.model.contributions import Contributions
from factorwise.model.model import Model
from factorwise.model.template import finite_difference
from factorwise.rng import Stream
from factorwise.variables.sparse_rows import starts_of
from factorwise.variables.variable import Variables
from factorwise.world.assignment import Assignment, Relabel

Scan = Literal["random", "systematic"]
Block = tuple[int, ...]
MAX_SETTINGS = 4096
LARGE = 1 << 23  # bytes of a model above which random visits wait for memory

_STAY = Step(None, 0.0, 0.0, False)


@dataclass(frozen=True, slots=True)
class Gibbs:
    """Resample one hidden variable at a time.

    evaluator
        How labels are scored: by `Exact`, or from a sample of the variable's factors, one sample for all
        labels (`ConfidenceSample` draws until the widest interval over the differences of two labels is
        narrow enough). As in Metropolis-Hastings, sampling changes the distribution of the chain.
    """

    model: Model
    scan: Scan = "random"
    evaluator: FactorSampler = EXACT

    changes = "one"
    worlds = (Assignment,)
    walks_over = ("variables",)

    def __post_init__(self) -> None:
        _require_scan(self.scan)
        if not hasattr(self.evaluator, "multipliers"):
            raise InvalidArgumentError(
                f"a Gibbs step cannot use {self.evaluator!r}, which decides between two worlds only:"
                " use Exact(), UniformSample(share) or ConfidenceSample(interval)."
            )

    def programs(self, parts: Surroundings) -> dict[str, Program]:
        """Return the programs that offer a variable all its labels and choose by score."""
        require_exact(self)
        if self.scan == "systematic":
            at = np.zeros(1, np.int64)
            offered = Program(support=choices.offer_next, arrays={"at": at}, name="every variable in turn")
        elif _size_of(parts.templates) > LARGE:
            arrays = {
                "templates": Pointers(parts.templates, ("fetch",)),
                "scout": np.zeros(2, np.uint64),
                "left": np.zeros(1, np.int64),
                "fetched": np.zeros(1),
            }
            offered = Program(support=choices.offer_fetched, arrays=arrays, name="a random variable")
        else:
            offered = Program(support=choices.offer_random, name="a random variable")
        return {"support": offered, "choose": Program(choose=choose_by_score, name="Gibbs")}

    def visits(self, world: Assignment) -> int:
        """Return how many variables one step visits."""
        return max(1, len(world.variables.movable)) if self.scan == "systematic" else 1

    def blocks_of(self, variables: Variables) -> list[Block]:
        """Return each movable variable on its own."""
        return [(variable,) for variable in variables.movable.tolist()]

    def step(self, stream: Stream, world: Assignment, temperature: float = 1.0) -> Step:
        """Decide one step."""
        movable = world.variables.movable
        if not len(movable):
            return _STAY
        if self.scan == "random":
            block = (int(movable[stream.below(len(movable))]),)
            return _visit(self.model, stream, world, block, temperature, self.evaluator)
        blocks = self.blocks_of(world.variables)
        return _sweep(self.model, stream, world, blocks, temperature, self.evaluator)


class BlockGibbs:
    """Resample the labels of a block of hidden variables jointly, by enumerating its settings.

    blocks
        Flat variable numbers of each block; blocks may overlap. Variables in no block keep their labels.
    limit
        The largest number of settings that a block may have.
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

    changes = "many"
    worlds = (Assignment,)
    walks_over = ("variables",)

    def programs(self, parts: Surroundings) -> dict[str, Program]:
        """Return the programs that draw the labels of a block, or of all blocks in order, and accept them."""
        variables = parts.world.variables
        blocks = [np.array(block, np.int64) for block in self.blocks_of(variables)]
        largest = max(math.prod(variables.cardinality[block].tolist()) for block in blocks)
        settings = room_for(largest)
        templates = [*parts.templates, *make_adapters(parts.templates, choices=False)]
        arrays = {
            "start": starts_of(np.array([len(block) for block in blocks])),
            "variable": np.concatenate(blocks).astype(np.int32),
            "sweep": [int(self.scan == "systematic")],
            "templates": Pointers(templates, ("gain", "applied")),
            "score": np.zeros(settings),
            "broken": np.zeros(settings, np.int64),
            "share": np.zeros(settings),
            "before": np.zeros(len(variables), np.int32),
            "label": np.zeros(len(variables), np.int32),
        }
        return {
            "draw": Program(draw=visits.draw_blocks, arrays=arrays, name="block Gibbs"),
            "accept": Program(accept=accept_always, name="everything"),
        }

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

    def _check(self, number: int, block: Block, variables: Variables) -> None:
        if not 0 <= min(block) <= max(block) < len(variables):
            raise InvalidArgumentError(
                f"block {number} names variables {min(block)} to {max(block)}, but there are only"
                f" {len(variables)} variables."
            )
        fixed = [variable for variable in block if variables.observed[variable]]
        if fixed:
            raise InvalidArgumentError(
                f"block {number} names variable {fixed[0]}, which is observed: leave it out of the block."
            )
        settings = math.prod(variables.cardinality[list(block)].tolist())
        if settings > self.limit:
            raise InvalidArgumentError(
                f"block {number} has {len(block)} variables with {settings} joint settings, but the"
                f" limit is {self.limit}: use smaller blocks, or raise limit= if you can wait."
            )


def _size_of(programs: Sequence[Program]) -> int:
    """Return how many bytes the arrays of some programs have."""
    arrays = (array for program in programs for array in program.arrays.values())
    return sum(getattr(array, "nbytes", 0) for array in arrays)


def _require_scan(scan: str) -> None:
    if scan not in ("random", "systematic"):
        raise InvalidArgumentError(f"scan must be 'random' or 'systematic', but {scan!r} was given.")


def _tempered_scores(joint: JointScores, temperature: float) -> NDArray[np.float64]:
    return np.array([tempered(score, temperature) for score in joint.scores.tolist()])


def _visit(
    model: Model,
    stream: Stream,
    world: Assignment,
    block: Block,
    temperature: float,
    sampler: FactorSampler = EXACT,
) -> Step:
    """Resample one block; draws the number that picks a setting, and what the sampler draws.

    The gain in the step is exact whatever the sampler, so that running scores stay correct.
    """
    chance = stream.uniform()
    joint = estimated = joint_scores(model, world, block)
    examined = 0
    listed = None if isinstance(sampler, Exact) else _listed(model, world, block[0])
    if listed is not None:
        multiplier = sampler.multipliers(stream, *_alternatives(listed))
        estimated = joint._replace(scores=_estimated(listed, multiplier, joint.current))
        examined = int(np.count_nonzero(multiplier))
    chosen = pick(chance, _tempered_scores(estimated, temperature))
    if chosen == joint.current:
        return _STAY._replace(examined=examined)
    gain = finite_difference(float(joint.scores[chosen]), float(joint.scores[joint.current]))
    diff = _between(block, joint.settings[joint.current], joint.settings[chosen])
    return Step(diff, gain, 0.0, True, examined)


def _listed(model: Model, world: Assignment, variable: int) -> list[Contributions] | None:
    """List the variable's factors under each other label; None if the current label is forbidden."""
    present = int(world.values[variable])
    alternatives = (label for label in range(int(world.variables.cardinality[variable])) if label != present)
    listed = [model.contributions(world, Relabel((variable,), (present,), (new,))) for new in alternatives]
    return None if any((contributions.gain == math.inf).any() for contributions in listed) else listed


def _alternatives(
    listed: list[Contributions],
) -> tuple[NDArray[np.float64], NDArray[np.int8], NDArray[np.bool_]]:
    return np.array([contributions.gain for contributions in listed]), listed[0].stratum, listed[0].certain


def _estimated(
    listed: list[Contributions], multiplier: NDArray[np.float64], present: int
) -> NDArray[np.float64]:
    """Return the estimated score of each label relative to the current one."""
    return np.insert([contributions.total(multiplier) for contributions in listed], present, 0.0)


def _sweep(
    model: Model,
    stream: Stream,
    world: Assignment,
    blocks: list[Block],
    temperature: float,
    sampler: FactorSampler = EXACT,
) -> Step:
    """Resample all blocks in order, on a copy, and return the whole change as one diff."""
    copy = world.copy()
    gain, examined = 0.0, 0
    for block in blocks:
        step = _visit(model, stream, copy, block, temperature, sampler)
        examined += step.examined
        if step.accepted:
            copy.apply(step.diff)
            gain += step.gain
    changed = tuple(np.flatnonzero(copy.values != world.values).tolist())
    if not changed:
        return _STAY._replace(examined=examined)
    return Step(world.relabel(changed, copy.values[list(changed)].tolist()), gain, 0.0, True, examined)


def _between(block: Block, old: tuple[int, ...], new: tuple[int, ...]) -> Relabel:
    """Return the diff between two settings of ``block``, which names only the variables that differ."""
    changed = [k for k in range(len(block)) if old[k] != new[k]]
    return Relabel(
        tuple(block[k] for k in changed),
        tuple(old[k] for k in changed),
        tuple(new[k] for k in changed),
    )
