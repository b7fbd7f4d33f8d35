"""Metropolis-Hastings over worlds of any kind."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from factorwise.inference.mcmc.kernel import Proposal, Proposer, Step, tempered
from factorwise.model.model import Model
from factorwise.rng import Stream


def log_acceptance(gain: float, proposal: Proposal, temperature: float = 1.0) -> float:
    r"""Log of the Metropolis-Hastings acceptance probability.

    .. math:: \log\alpha = \min\{0,\; \Delta/T + \log q(w \mid w') - \log q(w' \mid w)\}

    with :math:`\Delta` = ``gain``, :math:`T` = ``temperature``.
    Implements: singh2012montecarlo, Sec. 2, in log space; T is the inverse of its exponent tau.
    """
    if gain == math.inf:
        return 0.0  # out of a forbidden world, whatever the way back
    if gain == -math.inf or proposal.log_backward == -math.inf:
        return -math.inf
    return min(0.0, tempered(gain, temperature) + proposal.log_backward - proposal.log_forward)


@dataclass(frozen=True, slots=True)
class Metropolis:
    """Propose, weigh, decide: samples ``exp(score / temperature)``."""

    model: Model
    proposer: Proposer

    def step(self, stream: Stream, world: Any, temperature: float = 1.0) -> Step:
        """Decide one step."""
        proposal = self.proposer.draw(stream, world)
        chance = stream.uniform()  # drawn even when nothing is proposed: a step has one shape
        if proposal.diff is None:
            return Step(None, 0.0, 0.0, False)
        gain = self.model.gain(world, proposal.diff)
        log_accept = log_acceptance(gain, proposal, temperature)
        return Step(proposal.diff, gain, log_accept, chance < math.exp(log_accept))

    def transitions(self, world: Any, temperature: float = 1.0) -> Iterator[tuple[Any, float]]:
        """Enumerate where one step may lead."""
        for proposal in self.proposer.support(world):
            if proposal.diff is not None:
                gain = self.model.gain(world, proposal.diff)
                log_accept = log_acceptance(gain, proposal, temperature)
                yield proposal.diff, math.exp(proposal.log_forward + log_accept)
