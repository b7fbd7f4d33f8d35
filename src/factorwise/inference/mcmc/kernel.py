"""The grammar of MCMC: proposal, proposer, step, transition kernel.

A step decides and returns; it never changes the world it was given. The loop that asked applies the diff.
Temperature enters through `factorwise.walks.tempered` and nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

from factorwise.model.model import Model
from factorwise.rng import Stream


class Proposal(NamedTuple):
    """A diff with the log-probability of proposing it and of proposing the way back.

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
    """What one step decided.

    diff
        The change that was considered; None where there was none.
    gain
        Its change of score.
    log_accept
        Log-probability with which it is accepted.
    accepted
        Whether the loop shall apply it.
    examined
        Factors that an evaluator looked at to decide; 0 where the exact gain was taken, uncounted.
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
        """Whose scores it samples."""
        ...

    def step(self, stream: Stream, world: Any, temperature: float = 1.0) -> Step:
        """Decide one step."""
        ...
