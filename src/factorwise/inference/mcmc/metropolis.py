"""Metropolis-Hastings over worlds of any kind, with gains from any evaluator."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, cast

import numpy as np

from factorwise.errors import InvalidArgumentError, NoCompiledFormError
from factorwise.inference.mcmc.evaluators.base import Evaluator, Outcomes
from factorwise.inference.mcmc.evaluators.exact import EXACT, Exact
from factorwise.inference.mcmc.kernel import Proposal, Proposer, Step, tempered
from factorwise.model.model import Model
from factorwise.rng import Stream


def log_acceptance(
    gain: float, proposal: Proposal, temperature: float = 1.0, correction: float = 0.0
) -> float:
    r"""Log of the Metropolis-Hastings acceptance probability.

    .. math:: \log\alpha = \min\{0,\; \Delta/T + \log q(w \mid w') - \log q(w' \mid w)\} + \min\{0, \Gamma/T\}

    with :math:`\Delta` = ``gain``, :math:`T` = ``temperature`` and :math:`\Gamma` = ``correction``, what a
    test in two stages found missing from an estimated gain.
    Implements: singh2012montecarlo, Sec. 2, in log space; T is the inverse of its exponent tau.
    """
    if gain == math.inf:
        return 0.0  # out of a forbidden world, whatever the way back
    if gain == -math.inf or proposal.log_backward == -math.inf:
        return -math.inf
    first = min(0.0, tempered(gain, temperature) + proposal.log_backward - proposal.log_forward)
    return first + min(0.0, tempered(correction, temperature))


@dataclass(frozen=True, slots=True)
class Metropolis:
    """Propose, weigh, decide: samples ``exp(score / temperature)``, if the evaluator is exact.

    evaluator
        How gains are obtained. None or "auto" leaves it to the library, which examines all factors: templates
        that declare counts are summed from their counts when the walk is compiled, exactly.
    hastings
        Whether the ratio of the proposal probabilities is weighed. Without it, as in the paper on sampled
        factors, proposers must be symmetric or the chain samples something else.
    """

    model: Model
    proposer: Proposer
    evaluator: Evaluator | Literal["auto"] | None = EXACT
    hastings: bool = True

    def __post_init__(self) -> None:
        if self.evaluator is None or self.evaluator == "auto":
            object.__setattr__(self, "evaluator", Exact())
        elif not hasattr(self.evaluator, "evaluate"):
            raise InvalidArgumentError(
                f"{self.evaluator!r} is not an evaluator: give Exact(), UniformSample(share),"
                " ConfidenceSample(interval), PoissonMinibatch() or DelayedAcceptance(first), or 'auto'."
            )

    def step(self, stream: Stream, world: Any, temperature: float = 1.0) -> Step:
        """Decide one step; draws: the proposal, the number that decides, what the evaluator asks for.

        The gain in the step is exact whatever the evaluator, so that running scores stay true.
        """
        proposal = self.proposer.draw(stream, world)
        chance = stream.uniform()  # drawn even when nothing is proposed: a step has one shape
        if proposal.diff is None:
            return Step(None, 0.0, 0.0, False)
        weighed = self._weighed(proposal)
        if isinstance(self._evaluator, Exact):
            gain = self.model.gain(world, proposal.diff)
            log_accept = log_acceptance(gain, weighed, temperature)
            return Step(proposal.diff, gain, log_accept, chance < math.exp(log_accept))
        listed = self.model.contributions(world, proposal.diff, bounds=self._evaluator.needs_bounds)
        found = self._evaluator.evaluate(stream, listed, temperature)
        log_accept = first = log_acceptance(found.gain, weighed, temperature)
        examined = found.examined
        if found.correction is not None and chance < math.exp(first):  # one number serves both stages
            log_accept = log_acceptance(found.gain, weighed, temperature, found.correction)
            examined = len(listed)
        accepted = chance < math.exp(log_accept)
        return Step(proposal.diff, listed.total(), log_accept, accepted, examined)

    def transitions(self, world: Any, temperature: float = 1.0) -> Iterator[tuple[Any, float]]:
        """Enumerate where one step may lead, over everything the evaluator may find."""
        for proposal in self.proposer.support(world):
            if proposal.diff is None:
                continue
            weighed = self._weighed(proposal)
            if isinstance(self._evaluator, Exact):
                gain = self.model.gain(world, proposal.diff)
                accept = math.exp(log_acceptance(gain, weighed, temperature))
            else:
                listed = self.model.contributions(world, proposal.diff, bounds=self._evaluator.needs_bounds)
                accept = mean_acceptance(self._evaluator.outcomes(listed, temperature), weighed, temperature)
            yield proposal.diff, math.exp(proposal.log_forward) * accept

    @property
    def _evaluator(self) -> Evaluator:
        return cast(Evaluator, self.evaluator)  # settled when the kernel was made

    def _weighed(self, proposal: Proposal) -> Proposal:
        return proposal if self.hastings else Proposal(proposal.diff, 0.0, 0.0)


def require_exact(kernel: Any) -> None:
    """Refuse, for a walk that has the exact acceptance compiled in, a kernel that asks for another."""
    evaluator = getattr(kernel, "evaluator", EXACT)
    if not isinstance(evaluator, Exact):
        raise NoCompiledFormError(
            f"{type(evaluator).__name__} has no compiled form in this walk: run with engine='plain', or with"
            " evaluator=Exact()."
        )
    if not getattr(kernel, "hastings", True):
        raise NoCompiledFormError(
            "this walk has the proposal ratio compiled in: run with engine='plain', or with hastings=True."
        )


def mean_acceptance(outcomes: Outcomes, proposal: Proposal, temperature: float = 1.0) -> float:
    """Acceptance probability averaged over everything an evaluator may find; as `log_acceptance` of each."""
    gain = outcomes.gain
    ratio = proposal.log_backward - proposal.log_forward
    if proposal.log_backward == -math.inf:
        return float(outcomes.probability @ (gain == math.inf))
    first = np.minimum(0.0, tempered(gain, temperature) + ratio)
    second = np.minimum(0.0, tempered(outcomes.correction, temperature))
    return float(outcomes.probability @ np.exp(first + second))
