"""Metropolis-Hastings over worlds of any kind, with gains from any evaluator."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

from factorwise.errors import InvalidArgumentError, NoCompiledFormError
from factorwise.inference.mcmc.acceptances import (
    METROPOLIS,
    UNBALANCED,
    WITHOUT_RATIO,
    Acceptance,
    as_acceptance,
)
from factorwise.inference.mcmc.evaluators.base import Evaluator
from factorwise.inference.mcmc.evaluators.delayed import DelayedAcceptance
from factorwise.inference.mcmc.evaluators.exact import EXACT, Exact
from factorwise.inference.mcmc.kernel import Proposal, Proposer, Step
from factorwise.inference.mcmc.parts import Surroundings
from factorwise.kernels.walks.library import tempered
from factorwise.model.model import Model
from factorwise.rng import Stream


def log_acceptance(
    gain: float, proposal: Proposal, temperature: float = 1.0, correction: float = 0.0
) -> float:
    r"""Return the log of the Metropolis-Hastings acceptance probability.

    .. math:: \log\alpha = \min\{0,\; \Delta/T + \log q(w \mid w') - \log q(w' \mid w)\} + \min\{0, \Gamma/T\}

    with :math:`\Delta` = ``gain``, :math:`T` = ``temperature`` and :math:`\Gamma` = ``correction``, which a
    test in two stages adds to an estimated gain. Implements: singh2012montecarlo, Sec. 2, in log space; T is
    the inverse of its exponent tau.
    """
    if gain == math.inf:
        return 0.0  # a forbidden world is always left, whatever the way back
    if gain == -math.inf or proposal.log_backward == -math.inf:
        return -math.inf
    first = min(0.0, tempered(gain, temperature) + proposal.log_backward - proposal.log_forward)
    return first + min(0.0, tempered(correction, temperature))


@dataclass(frozen=True, slots=True)
class Metropolis:
    """Metropolis-Hastings: samples ``exp(score / temperature)`` if the evaluator is exact.

    proposer
        Proposes the moves.
    evaluator
        How gains are computed. None or "auto" leaves it to the library, which examines all factors; in
        compiled walks, templates that declare counts compute the exact sum from their counts.
    hastings
        Whether to use the ratio of the proposal probabilities. Without it, as in the paper on sampled
        factors, proposers must be symmetric, or the chain samples another distribution.
    acceptance
        How a step is decided: "metropolis" (the default), "barker", "greedy", "always", or your own function
        (see `Acceptance`).
    """

    model: Model
    proposer: Proposer
    evaluator: Evaluator | Literal["auto"] | None = EXACT
    hastings: bool = True
    acceptance: str | Acceptance | Callable[..., Any] = METROPOLIS

    def __post_init__(self) -> None:
        if self.evaluator is None or self.evaluator == "auto":
            object.__setattr__(self, "evaluator", Exact())
        elif not hasattr(self.evaluator, "evaluate"):
            raise InvalidArgumentError(
                f"{self.evaluator!r} is not an evaluator: use Exact(), UniformSample(share),"
                " ConfidenceSample(interval), PoissonMinibatch(), DelayedAcceptance(first) or 'auto'."
            )
        object.__setattr__(self, "acceptance", as_acceptance(self.acceptance))
        if not self.hastings and self.acceptance == METROPOLIS:
            object.__setattr__(self, "acceptance", UNBALANCED)
        if isinstance(self.evaluator, DelayedAcceptance) and self.acceptance not in (METROPOLIS, UNBALANCED):
            raise InvalidArgumentError(
                "DelayedAcceptance decides in two stages, both by the Metropolis-Hastings rule: leave"
                " the acceptance out."
            )

    def programs(self, parts: Surroundings) -> dict[str, Any]:
        """Return the programs of the proposer, the acceptance and, unless it is exact, the evaluator."""
        if not hasattr(self.proposer, "program"):
            raise NoCompiledFormError(
                f"{type(self.proposer).__name__} has no program: give it a method program(parts) that"
                " returns Program(draw=...), or use engine='plain'."
            )
        wanted = replace(parts, ratio=self._acceptance not in WITHOUT_RATIO)
        programs = {"draw": self.proposer.program(wanted), "accept": self._acceptance.program()}
        return programs | self._evaluation(parts)

    def _evaluation(self, parts: Surroundings) -> dict[str, Any]:
        """Return the programs with which the evaluator replaces templates and acceptance."""
        if isinstance(self._evaluator, Exact):
            return {}
        if not hasattr(self._evaluator, "programs"):
            require_exact(self)
        if self.changes == "many":
            raise NoCompiledFormError(
                f"{type(self._evaluator).__name__} can sample in compiled walks only for moves of one"
                " item: use RelocateToItem, RelocateToCandidate, RelocateToCluster, RelocateToNew and"
                " RetypeCluster, or engine='plain'."
            )
        return self._evaluator.programs(parts, balanced=self.hastings)  # type: ignore[attr-defined, no-any-return]

    @property
    def estimates(self) -> bool:
        """Whether gains are estimates, so that a walk does not know its score."""
        return getattr(self._evaluator, "estimates", False)

    @property
    def changes(self) -> str | int:
        """How many changes a move may have: "one", "many", or the largest number."""
        return getattr(self.proposer, "changes", "many")

    @property
    def _acceptance(self) -> Acceptance:
        return cast(Acceptance, self.acceptance)  # set by the constructor

    def step(self, stream: Stream, world: Any, temperature: float = 1.0) -> Step:
        """Decide one step; draws the proposal, what the evaluator draws, and the number that decides.

        The gain in the step is exact whatever the evaluator, so that running scores stay correct.
        """
        proposal = self.proposer.draw(stream, world)
        if proposal.diff is None:
            return Step(None, 0.0, 0.0, False)
        weighed = self._weighed(proposal)
        if isinstance(self._evaluator, Exact):
            gain = self.model.gain(world, proposal.diff)
            log_accept = log_acceptance(gain, weighed, temperature)
            accepted = self._acceptance.decides(stream, weighed, gain, temperature)
            return Step(proposal.diff, gain, log_accept, accepted)
        listed = self.model.contributions(world, proposal.diff, bounds=self._evaluator.needs_bounds)
        estimate = self._evaluator.evaluate(stream, listed, temperature)
        log_accept = first = log_acceptance(estimate.gain, weighed, temperature)
        examined = estimate.examined
        if estimate.correction is None:
            accepted = self._acceptance.decides(stream, weighed, estimate.gain, temperature)
            return Step(proposal.diff, listed.total(), log_accept, accepted, examined)
        chance = stream.uniform()  # one number serves both stages
        if chance < math.exp(first):
            log_accept = log_acceptance(estimate.gain, weighed, temperature, estimate.correction)
            examined = len(listed)
        accepted = chance < math.exp(log_accept)
        return Step(proposal.diff, listed.total(), log_accept, accepted, examined)

    @property
    def _evaluator(self) -> Evaluator:
        return cast(Evaluator, self.evaluator)  # set by the constructor

    def _weighed(self, proposal: Proposal) -> Proposal:
        return proposal if self.hastings else Proposal(proposal.diff, 0.0, 0.0)


def require_exact(kernel: Any) -> None:
    """Refuse a kernel with an evaluator or acceptance that this compiled walk does not have."""
    evaluator = getattr(kernel, "evaluator", EXACT)
    if not isinstance(evaluator, Exact):
        raise NoCompiledFormError(
            f"{type(evaluator).__name__} has no compiled form in this walk: use engine='plain' or"
            " evaluator=Exact()."
        )
