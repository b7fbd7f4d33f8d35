"""Proposals for assignments: relabel a variable or a span, uniformly or by local scores; swap labels.

Only hidden variables with more than one label are proposed. Each proposer is a program (see
`factorwise.kernels.assignments.relabels`), which compiled walks and ``draw`` both follow.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from factorwise.errors import InvalidArgumentError, NoCompiledFormError
from factorwise.inference.mcmc.parts import ProgramProposer, Surroundings
from factorwise.kernels.assignments import relabels
from factorwise.kernels.compile.programs import Pointers, Program
from factorwise.kernels.walks.frames import make_adapters
from factorwise.kernels.walks.library import pick_share, room_for, take_shares
from factorwise.model.model import Model
from factorwise.types import Float64s, Ints
from factorwise.validation import check_count, check_number
from factorwise.variables.sparse_rows import starts_of
from factorwise.world.assignment import Assignment, Relabel


class JointScores(NamedTuple):
    """Scores of all joint labels of some variables, given the rest of the world.

    settings
        Every joint setting, the last variable changing fastest.
    scores : float64[settings]
        Score of each up to a common constant; ``-inf`` if it is forbidden.
    current
        Position of the current setting.
    """

    settings: list[tuple[int, ...]]
    scores: Float64s
    current: int


def joint_scores(model: Model, world: Assignment, variables: tuple[int, ...]) -> JointScores:
    """Score all joint labels of ``variables``, from the factors they touch."""
    settings = list(itertools.product(*(range(int(world.variables.cardinality[v])) for v in variables)))
    present = tuple(world.values[list(variables)].tolist())
    scores = _gains(model, world, variables, settings, present)
    if (scores == math.inf).any():  # the current setting is forbidden: measure from one that is not
        allowed = settings[int(np.argmax(scores))]
        scores = _gains(
            model, world.after(Relabel(variables, present, allowed)), variables, settings, allowed
        )
    return JointScores(settings, scores, settings.index(present))


def _gains(
    model: Model,
    world: Assignment,
    variables: tuple[int, ...],
    settings: list[tuple[int, ...]],
    present: tuple[int, ...],
) -> Float64s:
    return np.array(
        [0.0 if new == present else model.gain(world, Relabel(variables, present, new)) for new in settings]
    )


def pick(chance: float, scores: Float64s) -> int:
    """Return the position at which ``chance``, uniform in [0, 1), falls when drawing from exp(scores)."""
    count, share = len(scores), np.zeros(len(scores))
    return int(pick_share(share, count, chance * take_shares(share, scores, count, 1.0, -1)))


@dataclass(frozen=True)
class UniformRelabel(ProgramProposer):
    """Give a random hidden variable a uniformly random other label.

    It draws the variable, then the label.
    """

    worlds = (Assignment,)

    def program(self, parts: Surroundings) -> Program:
        """Return the program that draws a variable and a label other than its own."""
        return Program(draw=relabels.draw_label, name="uniform relabelling")


@dataclass(frozen=True)
class LocalRelabel(ProgramProposer):
    r"""Give a random hidden variable another label, drawn by its local scores.

    .. math:: q(w' \mid w) = \frac{1}{m} \frac{e^{\beta s(l')}}{\sum_{k \ne l} e^{\beta s(k)}}

    with :math:`m` the number of movable variables, :math:`l` and :math:`l'` the variable's label before and
    after, :math:`s(k)` the model's score with label :math:`k` and :math:`\beta` = ``sharpness``. The current
    label is never proposed, so that no step is wasted on staying. A variable whose other labels are all
    forbidden proposes to stay.

    It draws the variable, then the label.
    """

    worlds = (Assignment,)

    model: Model
    sharpness: float = 1.0

    def __post_init__(self) -> None:
        check_number("sharpness", self.sharpness, above=0, finite=True)

    def program(self, parts: Surroundings) -> Program:
        """Return the program that draws a variable, and a label by the scores of the walk's templates."""
        arrays = {
            "templates": _pointers(self, parts, ("gains",)),
            "sharpness": [self.sharpness],
        }
        return Program(draw=relabels.draw_scored_label, arrays=arrays, name="relabelling by scores")

    def _surroundings(self, world: Assignment) -> Surroundings:
        return _scored_by(self.model, world)


@dataclass(frozen=True)
class ResampleSpan(ProgramProposer):
    r"""Resample the labels of a random span of a chain jointly, by their scores.

    .. math:: q(w' \mid w) = \sum_s \frac{p(s)}{Z_s} \exp\Big(\beta \sum_{i \in s} d_i(l'_{i-1}, l'_i)\Big)

    with :math:`d_i(a, b)` how much higher the model scores label b than the first label at position i, after
    label a, with the rest of the span at first labels and everything else unchanged, and :math:`\beta` =
    ``sharpness``. Where only neighbors in a span depend on each other, as in a chain or a skip chain whose
    edges do not end within one span, this is the conditional distribution at temperature 1 / sharpness, and
    at that temperature every proposal is accepted.

    chains
        Flat variable numbers of each chain, such as the tokens of each sentence, in order; observed variables
        are skipped. Blocks of variables are short chains.
    shortest, longest
        The number of variables of a span; all lengths are equally likely, and shorter chains are resampled
        whole.

    It draws a position among all chains, the length, and a number for each label.
    """

    worlds = (Assignment,)

    model: Model
    chains: Sequence[Sequence[int] | Ints]
    shortest: int = 1
    longest: int = 4
    sharpness: float = 1.0

    def __post_init__(self) -> None:
        check_number("sharpness", self.sharpness, above=0, finite=True)
        check_count("shortest", self.shortest, 1)
        check_count("longest", self.longest, self.shortest)
        twice = [k for k, chain in enumerate(self.chains) if len(np.unique(chain)) < len(chain)]
        if twice:
            raise InvalidArgumentError(f"chain {twice[0]} names a variable twice: name each once.")

    @property
    def changes(self) -> int:  # type: ignore[override]
        """How many changes a move may have."""
        return max(2, min(self.longest, max(map(len, self.chains), default=0)))

    def check(self, world: Assignment) -> None:
        """Refuse a world that does not have the variables of the chains."""
        super().check(world)
        for number, chain in enumerate(self.chains):
            if len(chain) and not 0 <= min(chain) <= max(chain) < len(world.variables):
                raise InvalidArgumentError(
                    f"chain {number} names variables {min(chain)} to {max(chain)}, but there are only"
                    f" {len(world.variables)} variables."
                )

    def program(self, parts: Surroundings) -> Program:
        """Return the program that draws a span, and its labels by the scores of the walk's templates."""
        self.check(parts.world)
        variables = parts.world.variables
        movable = np.zeros(len(variables), bool)
        movable[variables.movable] = True
        chains = [np.asarray(chain, np.int32)[movable[np.asarray(chain, np.int64)]] for chain in self.chains]
        lengths = np.array([len(chain) for chain in chains], np.int64)
        longest, labels = self.changes, int(variables.cardinality.max())
        arrays = {
            "start": starts_of(lengths),
            "variable": np.concatenate([np.zeros(0, np.int32), *chains]),
            "chain": np.repeat(np.arange(len(chains), dtype=np.int32), lengths),
            "length": [min(self.shortest, longest), min(self.longest, longest)],
            "templates": _pointers(self, parts, ("gains", "applied")),
            "sharpness": [self.sharpness],
            "lead": np.zeros((longest * labels, labels)),
            "tail": np.zeros((longest, labels)),
            "score": np.zeros(room_for(labels)),
            "old": np.zeros(longest, np.int64),
        }
        return Program(draw=relabels.draw_span, arrays=arrays, name="resampling spans")

    def _surroundings(self, world: Assignment) -> Surroundings:
        return _scored_by(self.model, world)


def _pointers(proposer: Any, parts: Surroundings, functions: tuple[str, ...]) -> Pointers:
    """Return pointers to functions of the walk's templates, which must be those of the proposer's model."""
    if parts.model is not None and parts.model is not proposer.model:
        name = type(proposer).__name__
        raise NoCompiledFormError(
            f"{name} scores with another model than the walk: build {name} with the kernel's model, or"
            " use engine='plain'."
        )
    templates = [*parts.templates, *make_adapters(parts.templates, choices=True)]
    return Pointers(templates, functions, first=parts.first)


def _scored_by(model: Model, world: Assignment) -> Surroundings:
    """Return surroundings in which a model scores the offered labels."""

    def gains(move: Any, choice: Any) -> None:
        choice.out[: move.choices] += joint_scores(model, world, (move.item,)).scores

    return Surroundings(world, None, [Program(gains=gains, name="the model")])


@dataclass(frozen=True)
class Swap(ProgramProposer):
    """Exchange the labels of two random hidden variables of one domain; equal labels propose to stay.

    It draws the first variable among all that have a partner, and the second among the partners of the first.
    """

    worlds = (Assignment,)

    changes = 2

    def program(self, parts: Surroundings) -> Program:
        """Return the program that draws two variables that may exchange their labels."""
        variables = parts.world.variables
        pool = np.full(len(variables), -1, np.int32)
        for number, members in enumerate(variables.pools):
            pool[members] = number
        arrays = {
            "start": starts_of(np.array([len(members) for members in variables.pools], np.int64)),
            "member": np.concatenate([np.zeros(0, np.int32), *variables.pools]).astype(np.int32),
            "pool": pool,
        }
        return Program(draw=relabels.draw_exchange, arrays=arrays, name="swaps")
