"""Checks that any proposer and any transition kernel must pass, on small worlds that can be enumerated.

>>> from factorwise.inference.exact.clusterings import all_partitions
>>> from factorwise.inference.mcmc.proposals.mixtures import PartitionMixture
>>> from factorwise.inference.mcmc.proposals.partition_moves import Merge, Split
>>> for check in proposer_checks(PartitionMixture([Merge(), Split()]), all_partitions(3)):
...     check()

Every check is a `functools.partial` that raises ``AssertionError``; `check_name` names it for a test report.
They use only the protocols of `factorwise.inference.mcmc.kernel` and a world's ``after`` and ``canonical``.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from factorwise.inference.mcmc.kernel import Proposal, Proposer, TransitionKernel
from factorwise.model.model import Model
from factorwise.rng import Stream

_DRAWS = 20
_TEMPERATURE = 0.7  # not 1, so that tempering twice or not at all is detected
_GAINS = (-40.0, -3.0, -1.0, -0.3, 0.0, 0.3, 1.0, 3.0, 40.0)


def proposer_checks(
    proposer: Proposer, worlds: Sequence[Any], *, tolerance: float = 1e-9
) -> Iterator[partial[None]]:
    """Yield the checks any proposer must pass.

    worlds
        The worlds in which it proposes; proposals may lead to others.
    tolerance
        Largest error of a probability, or of the logarithm of a ratio.
    """
    known = _Supports(proposer)
    for world in worlds:
        name = repr(world)
        yield partial(_forward_probabilities_sum_to_one, known, world, tolerance, name=name)
        yield partial(_every_proposal_is_balanced_by_its_way_back, known, world, tolerance, name=name)
        yield partial(_draws_are_among_the_support, known, world, tolerance, name=name)
        yield partial(_same_seed_same_draw, proposer, world, name=name)
        yield partial(_a_draw_leaves_the_world_alone, proposer, world, name=name)


def kernel_checks(kernel: TransitionKernel, worlds: Sequence[Any]) -> Iterator[partial[None]]:
    """Yield the checks any transition kernel must pass."""
    for world in worlds:
        name = repr(world)
        yield partial(_same_seed_same_step, kernel, world, name=name)
        yield partial(_a_step_leaves_its_input_alone, kernel, world, name=name)


def exact_distribution(model: Model, worlds: Sequence[Any], temperature: float = 1.0) -> NDArray[np.float64]:
    """Return the probability of each world, if ``worlds`` are all there are."""
    scores = np.array([model.score(world) for world in worlds]) / temperature
    weights = np.exp(scores - scores.max())
    return np.asarray(weights / weights.sum())


class _Ways(NamedTuple):
    """The worlds to which proposals lead, and all proposals for each."""

    there: Any
    proposals: list[Proposal]


class _Supports:
    """The possible proposals of each world, enumerated once.

    A diff names clusters by ids, which equal worlds need not share, so the worlds to which diffs lead are
    stored.
    """

    def __init__(self, proposer: Proposer) -> None:
        self.proposer = proposer
        self._known: dict[Hashable, list[Proposal]] = {}
        self._ways: dict[Hashable, dict[Hashable, _Ways]] = {}

    def of(self, world: Any) -> list[Proposal]:
        key = world.canonical()
        if key not in self._known:
            self._known[key] = list(self.proposer.support(world))
        return self._known[key]

    def ways(self, world: Any) -> dict[Hashable, _Ways]:
        """Return the proposals by the world to which they lead; those that stay are left out."""
        key = world.canonical()
        if key not in self._ways:
            ways: dict[Hashable, _Ways] = {}
            for proposal in self.of(world):
                if proposal.diff is not None and proposal.log_forward > -math.inf:
                    target = world.after(proposal.diff)
                    ways.setdefault(target.canonical(), _Ways(target, [])).proposals.append(proposal)
            ways.pop(key, None)
            self._ways[key] = ways
        return self._ways[key]


def _forward_probabilities_sum_to_one(known: _Supports, world: Any, tolerance: float, *, name: str) -> None:
    total = math.fsum(math.exp(proposal.log_forward) for proposal in known.of(world))
    assert abs(total - 1.0) <= tolerance, f"forward probabilities in {name} sum to {total}"


def _every_proposal_is_balanced_by_its_way_back(
    known: _Supports, world: Any, tolerance: float, *, name: str
) -> None:
    """Compare the flow of accepted proposals in both directions, whatever the gain between the two worlds.

    If one proposal leads there and one back, the backward probability of each must be the forward probability
    of the other. A proposer that conditions on auxiliary variables lists a proposal for each of their values;
    the flows then agree in sum.
    """
    for target, proposals in known.ways(world).values():
        back = known.ways(target).get(world.canonical(), _Ways(world, [])).proposals
        assert back or all(p.log_backward == -math.inf for p in proposals), (
            f"{proposals[0].diff} leads from {name} to {target}, but no proposal leads back"
        )
        for gain in _GAINS:
            out = math.fsum(_accepted(p.log_forward, p.log_backward, gain) for p in proposals)
            home = math.fsum(_accepted(p.log_backward, p.log_forward, gain) for p in back)
            assert abs(out - home) <= tolerance * max(out, home), (
                f"the flow from {name} to {target} is {out} at a gain of {gain}, and the flow back is"
                f" {home}: the declared backward probability is"
                f" {_total(p.log_backward for p in proposals)}, but the forward probability of the way"
                f" back is {_total(p.log_forward for p in back)}"
            )


def _accepted(log_forward: float, log_backward: float, gain: float) -> float:
    """Return the probability of proposing and accepting a change with this gain at temperature 1."""
    return math.exp(min(log_forward, log_backward + gain))


def _total(logs: Iterator[float]) -> float:
    return math.fsum(math.exp(value) for value in logs)


def _draws_are_among_the_support(known: _Supports, world: Any, tolerance: float, *, name: str) -> None:
    """The ratio of backward to forward must be a declared one: auxiliary variables cancel from it."""
    ways = known.ways(world)
    for seed in range(_DRAWS):
        drawn = known.proposer.draw(Stream(seed), world)
        target = world.canonical() if drawn.diff is None else world.after(drawn.diff).canonical()
        if target == world.canonical():
            continue
        assert target in ways, f"{drawn.diff} was drawn in {name}, but it is not in the support"
        ratio = drawn.log_backward - drawn.log_forward
        declared = [p.log_backward - p.log_forward for p in ways[target].proposals]
        assert any(ratio == d or abs(ratio - d) <= tolerance for d in declared), (
            f"{drawn.diff} was drawn in {name} with log backward minus log forward {ratio}, but"
            f" {declared} is declared"
        )


def _same_seed_same_draw(proposer: Proposer, world: Any, *, name: str) -> None:
    for seed in range(_DRAWS):
        first, second = (proposer.draw(Stream(seed), world) for _ in range(2))
        assert first == second, f"two draws in {name} with the same seed differ: {first}, {second}"


def _a_draw_leaves_the_world_alone(proposer: Proposer, world: Any, *, name: str) -> None:
    before = world.canonical()
    for seed in range(_DRAWS):
        proposer.draw(Stream(seed), world)
        assert world.canonical() == before, f"a draw changed {name} to {world}"


def _same_seed_same_step(kernel: TransitionKernel, world: Any, *, name: str) -> None:
    for seed in range(_DRAWS):
        first, second = (kernel.step(Stream(seed), world, _TEMPERATURE) for _ in range(2))
        assert first == second, f"a step in {name} depends on something besides its arguments"


def _a_step_leaves_its_input_alone(kernel: TransitionKernel, world: Any, *, name: str) -> None:
    before = world.canonical()
    for seed in range(_DRAWS):
        kernel.step(Stream(seed), world, _TEMPERATURE)
        assert world.canonical() == before, f"a step changed {name} to {world} by itself"
