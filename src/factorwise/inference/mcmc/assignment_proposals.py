"""Proposals for assignments: relabel a variable, blindly or by its local scores; swap labels; mixtures.

Every draw takes its random numbers in a fixed order, stated in its docstring, so that the compiled sampler
follows the same trace. Only hidden variables with more than one label are proposed.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from factorwise.errors import InvalidArgumentError, require
from factorwise.inference.mcmc.kernel import Proposal
from factorwise.model.model import Model
from factorwise.rng import Stream
from factorwise.world.assignment import Assignment, Relabel

NOTHING = Proposal(None, 0.0, 0.0)  # staying needs no probabilities: it is never weighed


class JointScores(NamedTuple):
    """Scores of all joint labels of some variables, given the rest of the world.

    settings
        Every joint setting, the last variable changing fastest.
    scores : float64[settings]
        Score of each up to a common constant; ``-inf`` where it is forbidden.
    current
        Position of the present setting.
    """

    settings: list[tuple[int, ...]]
    scores: NDArray[np.float64]
    current: int


def joint_scores(model: Model, world: Assignment, variables: tuple[int, ...]) -> JointScores:
    """Score all joint labels of ``variables``, from the factors they touch."""
    settings = list(itertools.product(*(range(int(world.variables.cardinality[v])) for v in variables)))
    present = tuple(world.values[list(variables)].tolist())
    scores = _gains(model, world, variables, settings, present)
    if (scores == math.inf).any():  # the present setting is forbidden: measure from one that is not
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
) -> NDArray[np.float64]:
    return np.array(
        [0.0 if new == present else model.gain(world, Relabel(variables, present, new)) for new in settings]
    )


def log_sum(scores: NDArray[np.float64], without: int = -1) -> float:
    """Log of the sum of exponentials, leaving out position ``without``."""
    kept = [score for position, score in enumerate(scores.tolist()) if position != without]
    top = max(kept, default=-math.inf)
    if top == -math.inf:
        return top
    return top + math.log(sum(math.exp(score - top) for score in kept))


def pick(chance: float, scores: NDArray[np.float64], without: int = -1) -> int:
    """Return the position at which ``chance``, uniform in [0, 1), falls when drawing from exp(scores).

    Position ``without`` is left out; -1 is returned if nothing else is allowed.
    """
    kept = [(p, s) for p, s in enumerate(scores.tolist()) if p != without and s > -math.inf]
    if not kept:
        return -1
    top = max(score for _, score in kept)
    rest = chance * sum(math.exp(score - top) for _, score in kept)
    for position, score in kept:
        rest -= math.exp(score - top)
        if rest < 0.0:
            return position
    return kept[-1][0]


class AssignmentProposer(Protocol):
    """What a mixture asks of its components, beyond drawing and enumerating."""

    def draw(self, stream: Stream, world: Assignment) -> Proposal:
        """Draw one proposal."""
        ...

    def support(self, world: Assignment) -> Iterator[Proposal]:
        """Enumerate all proposals; their forward probabilities sum to one."""
        ...

    def available(self, world: Assignment) -> bool:
        """Whether there is anything to propose in ``world``."""
        ...

    def log_probability(self, world: Assignment, diff: Relabel) -> float:
        """Log-probability of proposing ``diff`` in ``world``."""
        ...


@dataclass(frozen=True, slots=True)
class UniformRelabel:
    """A random hidden variable gets a uniformly random other label.

    Draws: the variable, the label.
    """

    def draw(self, stream: Stream, world: Assignment) -> Proposal:
        """Draw one proposal."""
        movable = world.variables.movable
        if not len(movable):
            return NOTHING
        variable = int(movable[stream.below(len(movable))])
        old = int(world.values[variable])
        others = int(world.variables.cardinality[variable]) - 1
        label = stream.below(others)
        log_chance = -math.log(len(movable)) - math.log(others)
        diff = Relabel((variable,), (old,), (label + (label >= old),))
        return Proposal(diff, log_chance, log_chance)

    def support(self, world: Assignment) -> Iterator[Proposal]:
        """Enumerate all proposals."""
        if not self.available(world):
            yield NOTHING
        for variable, old, new in _single_changes(world):
            diff = Relabel((variable,), (old,), (new,))
            log_chance = self.log_probability(world, diff)
            yield Proposal(diff, log_chance, log_chance)

    def available(self, world: Assignment) -> bool:
        """Whether a hidden variable has another label."""
        return len(world.variables.movable) > 0

    def log_probability(self, world: Assignment, diff: Relabel) -> float:
        """Log-probability of proposing ``diff``."""
        if len(diff.variables) != 1:
            return -math.inf
        others = int(world.variables.cardinality[diff.variables[0]]) - 1
        return -math.log(len(world.variables.movable)) - math.log(others)


@dataclass(frozen=True, slots=True)
class LocalRelabel:
    r"""A random hidden variable gets another label, drawn by its local scores.

    .. math:: q(w' \mid w) = \frac{1}{m} \frac{e^{\beta s(l')}}{\sum_{k \ne l} e^{\beta s(k)}}

    with :math:`m` the number of movable variables, :math:`l` and :math:`l'` the variable's label before and
    after, :math:`s(k)` the model's score with label :math:`k` and :math:`\beta` = ``sharpness``. The present
    label is never proposed: a step that would stay is spent on a change instead.
    A variable whose other labels are all forbidden proposes to stay.

    Draws: the variable, the label.
    """

    model: Model
    sharpness: float = 1.0

    def __post_init__(self) -> None:
        require(0.0 < self.sharpness < math.inf, "sharpness", self.sharpness, "positive and finite")

    def draw(self, stream: Stream, world: Assignment) -> Proposal:
        """Draw one proposal."""
        movable = world.variables.movable
        if not len(movable):
            return NOTHING
        variable = int(movable[stream.below(len(movable))])
        chance = stream.uniform()
        scores = self._scores(world, variable)
        old = int(world.values[variable])
        new = pick(chance, scores, without=old)
        return NOTHING if new < 0 else self._proposal(world, variable, scores, old, new)

    def support(self, world: Assignment) -> Iterator[Proposal]:
        """Enumerate all proposals."""
        movable = world.variables.movable
        stuck = 0 if len(movable) else 1
        for variable in movable.tolist():
            scores = self._scores(world, variable)
            old = int(world.values[variable])
            allowed = [new for new in np.flatnonzero(scores > -math.inf).tolist() if new != old]
            stuck += not allowed
            for new in allowed:
                yield self._proposal(world, variable, scores, old, new)
        if stuck:
            log_stay = math.log(stuck / max(len(movable), 1))
            yield Proposal(None, log_stay, log_stay)

    def available(self, world: Assignment) -> bool:
        """Whether a hidden variable has another label."""
        return len(world.variables.movable) > 0

    def log_probability(self, world: Assignment, diff: Relabel) -> float:
        """Log-probability of proposing ``diff``."""
        if len(diff.variables) != 1:
            return -math.inf
        scores = self._scores(world, diff.variables[0])
        return self._log_chance(world, scores, diff.old[0], diff.new[0])

    def _scores(self, world: Assignment, variable: int) -> NDArray[np.float64]:
        return self.sharpness * joint_scores(self.model, world, (variable,)).scores

    def _log_chance(self, world: Assignment, scores: NDArray[np.float64], old: int, new: int) -> float:
        if scores[new] == -math.inf:
            return -math.inf
        return float(scores[new]) - log_sum(scores, without=old) - math.log(len(world.variables.movable))

    def _proposal(
        self, world: Assignment, variable: int, scores: NDArray[np.float64], old: int, new: int
    ) -> Proposal:
        log_forward = self._log_chance(world, scores, old, new)
        log_backward = self._log_chance(world, scores, new, old)
        if log_backward == -math.inf:  # a forbidden label is never proposed, so that it must be left freely
            log_backward = log_forward
        return Proposal(Relabel((variable,), (old,), (new,)), log_forward, log_backward)


@dataclass(frozen=True, slots=True)
class Swap:
    """Two random hidden variables of one domain exchange their labels; equal labels propose to stay.

    Draws: the first variable among all that have a partner, the second among the first one's partners.
    """

    def draw(self, stream: Stream, world: Assignment) -> Proposal:
        """Draw one proposal."""
        pools = world.variables.pools
        if not pools:
            return NOTHING
        place = stream.below(sum(map(len, pools)))
        number = 0
        while place >= len(pools[number]):
            place -= len(pools[number])
            number += 1
        pool = pools[number]
        partner = stream.below(len(pool) - 1)
        partner += partner >= place
        first, second = sorted((int(pool[place]), int(pool[partner])))
        old = (int(world.values[first]), int(world.values[second]))
        if old[0] == old[1]:
            return NOTHING
        log_chance = _log_pair(pools, pool)
        return Proposal(Relabel((first, second), old, (old[1], old[0])), log_chance, log_chance)

    def support(self, world: Assignment) -> Iterator[Proposal]:
        """Enumerate all proposals."""
        moving = 0.0
        for pool in world.variables.pools:
            log_chance = _log_pair(world.variables.pools, pool)
            for first, second in itertools.combinations(sorted(pool.tolist()), 2):
                old = (int(world.values[first]), int(world.values[second]))
                if old[0] != old[1]:
                    moving += math.exp(log_chance)
                    yield Proposal(Relabel((first, second), old, (old[1], old[0])), log_chance, log_chance)
        if moving < 1.0:
            yield Proposal(None, math.log(1.0 - moving), math.log(1.0 - moving))

    def available(self, world: Assignment) -> bool:
        """Whether two variables of one domain have different labels."""
        return any(
            bool((world.values[pool] != world.values[pool[0]]).any()) for pool in world.variables.pools
        )

    def log_probability(self, world: Assignment, diff: Relabel) -> float:
        """Log-probability of proposing ``diff``."""
        if len(diff.variables) != 2 or diff.new != diff.old[::-1]:
            return -math.inf
        for pool in world.variables.pools:
            if np.isin(diff.variables, pool).all():
                return _log_pair(world.variables.pools, pool)
        return -math.inf


class Mixture:
    """One of several proposers, chosen by weight among those that have something to propose.

    A diff that several components can produce counts for all of them, forward and backward, and so does the
    set of components that are available before and after it.

    Draws: the component, then what the component draws.
    """

    def __init__(
        self, components: Sequence[AssignmentProposer], weights: Sequence[float] | None = None
    ) -> None:
        self.components = tuple(components)
        self.weights = (
            tuple(float(w) for w in weights) if weights is not None else (1.0,) * len(self.components)
        )
        if not self.components or len(self.components) != len(self.weights):
            raise InvalidArgumentError(
                f"a mixture of {len(self.components)} proposers was given {len(self.weights)} weights: give"
                " at least one proposer and one weight for each."
            )
        if not all(0.0 < weight < math.inf for weight in self.weights):
            raise InvalidArgumentError(
                f"the weights of a mixture are positive and finite, but {list(self.weights)} were given:"
                " leave a proposer out to switch it off."
            )
        if any(isinstance(component, Mixture) for component in self.components):
            raise InvalidArgumentError(
                "a mixture cannot contain a mixture: list all proposers in one, weights multiplied."
            )

    def draw(self, stream: Stream, world: Assignment) -> Proposal:
        """Draw one proposal."""
        chance = stream.uniform()
        offered = [component.available(world) for component in self.components]
        total = sum(weight for weight, offer in zip(self.weights, offered, strict=True) if offer)
        if total == 0.0:
            return NOTHING
        rest = chance * total
        chosen = -1
        for number, weight in enumerate(self.weights):
            if offered[number]:
                chosen = number
                rest -= weight
                if rest < 0.0:
                    break
        diff = self.components[chosen].draw(stream, world).diff
        return NOTHING if diff is None else self._proposal(world, diff)

    def support(self, world: Assignment) -> Iterator[Proposal]:
        """Enumerate all proposals, each once."""
        diffs: dict[Relabel, None] = {}
        stay = 0.0 if self.available(world) else 1.0
        for component, share in self._shares(world):
            for proposal in component.support(world):
                if proposal.diff is None:
                    stay += share * math.exp(proposal.log_forward)
                else:
                    diffs[proposal.diff] = None
        if stay > 0.0:
            yield Proposal(None, math.log(stay), math.log(stay))
        for diff in diffs:
            yield self._proposal(world, diff)

    def available(self, world: Assignment) -> bool:
        """Whether a component has something to propose."""
        return any(component.available(world) for component in self.components)

    def log_probability(self, world: Assignment, diff: Relabel) -> float:
        """Log-probability that any component proposes ``diff``."""
        parts = [math.log(share) + c.log_probability(world, diff) for c, share in self._shares(world)]
        return log_sum(np.array(parts))

    def _shares(self, world: Assignment) -> list[tuple[AssignmentProposer, float]]:
        offered = [
            (component, weight)
            for component, weight in zip(self.components, self.weights, strict=True)
            if component.available(world)
        ]
        total = sum(weight for _, weight in offered)
        return [(component, weight / total) for component, weight in offered]

    def _proposal(self, world: Assignment, diff: Relabel) -> Proposal:
        backward = self.log_probability(world.after(diff), diff.inverse())
        return Proposal(diff, self.log_probability(world, diff), backward)


def _single_changes(world: Assignment) -> Iterator[tuple[int, int, int]]:
    for variable in world.variables.movable.tolist():
        old = int(world.values[variable])
        for new in range(int(world.variables.cardinality[variable])):
            if new != old:
                yield variable, old, new


def _log_pair(pools: tuple[NDArray[np.int64], ...], pool: NDArray[np.int64]) -> float:
    """Log-probability of one pair of ``pool``, in either order."""
    return math.log(2.0) - math.log(sum(map(len, pools))) - math.log(len(pool) - 1)
