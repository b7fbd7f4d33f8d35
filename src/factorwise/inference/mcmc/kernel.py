"""The grammar of MCMC: proposal, proposer, step, transition kernel.

A step decides and returns its decision; it never changes the world it was given. The loop that called it
applies the diff. Temperature enters only through `factorwise.walks.tempered`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

from factorwise.model.model import Model
from factorwise.rng import Stream


class Proposal(NamedTuple):
    """A diff, with the log-probabilities of proposing it and of proposing the way back.

    A diff of None proposes to stay.
    """

    diff: Any
    log_forward: float
    log_backward: float


class Proposer(Protocol):
    """A distribution over diffs."""

    def draw(self, stream: Stream, world: Any) -> Proposal:
        """Draw one proposal."""
        ...

    def support(self, world: Any) -> Iterator[Proposal]:
        """Enumerate all proposals; their forward probabilities sum to one."""
        ...


class Step(NamedTuple):
    """The decision of one step.

    diff
        The change that was considered; None if there was none.
    gain
        Its change of score.
    log_accept
        Log-probability with which it is accepted.
    accepted
        Whether the loop must apply it.
    examined
        Number of factors that an evaluator examined to decide; 0 if the exact gain was computed without
        counting.
    """

    diff: Any
    gain: float
    log_accept: float
    accepted: bool
    examined: int = 0


class TransitionKernel(Protocol):
    """A Markov chain over worlds that leaves exp(score / temperature) invariant."""

    @property
    def model(self) -> Model:
        """The model whose scores it samples."""
        ...

    def step(self, stream: Stream, world: Any, temperature: float = 1.0) -> Step:
        """Decide one step."""
        ...
