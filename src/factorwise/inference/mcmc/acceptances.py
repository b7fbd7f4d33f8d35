"""Acceptances: functions that decide whether a walk makes a proposed move."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from factorwise.errors import InvalidArgumentError
from factorwise.inference.mcmc.kernel import Proposal
from factorwise.kernels.compile.binding import Frame, Interpreted
from factorwise.kernels.compile.programs import Program, check_arguments
from factorwise.kernels.walks import acceptances
from factorwise.kernels.walks.frames import make_frame


@dataclass(frozen=True)
class Acceptance:
    """A function that decides whether a proposed move is made.

    function
        ``function(random, move)``, or any of the arguments ``world``, ``mine``, ``random`` and ``move``. It
        reads ``move.gain``, ``move.ratio`` and ``move.log_ratio``, ``move.better`` and ``move.temperature``,
        and returns whether to make the move.
    """

    function: Callable[..., Any]

    def __post_init__(self) -> None:
        check_arguments("accept", self.function)

    def program(self) -> Program:
        """Return the function as a program."""
        return Program(accept=self.function, name="the acceptance")

    def decides(
        self, stream: Any, proposal: Proposal, gain: float, temperature: float, better: float = 0.0
    ) -> bool:
        """Decide one step by calling the function as plain Python."""
        frame = _frame()
        step = frame.step
        step["gain"], step["better"], step["temperature"], step["ratio"] = gain, better, temperature, 1.0
        step["log_ratio"] = log_ratio(proposal)
        return bool(Interpreted(self.program(), frame, stream).entry("accept")(0))


def log_ratio(proposal: Proposal) -> float:
    """Return the log-probability of proposing the way back minus that of proposing the way there."""
    if proposal.log_backward == -math.inf:
        return -math.inf
    return proposal.log_backward - proposal.log_forward


def _frame() -> Frame:
    return make_frame((), np.zeros(2, np.uint64), weights=0)


METROPOLIS = Acceptance(acceptances.accept_metropolis)
"""A valid chain: the rule of Metropolis and Hastings."""
UNBALANCED = Acceptance(acceptances.accept_unbalanced)
"""The same without the proposer's ratio."""
BARKER = Acceptance(acceptances.accept_barker)
"""A valid chain that accepts with probability x / (1 + x)."""
GREEDY = Acceptance(acceptances.accept_greedy)
"""Whatever scores higher."""
ALWAYS = Acceptance(acceptances.accept_always)
"""Everything."""
BETTER = Acceptance(acceptances.accept_better)
"""What is better by the preference, and of equally good worlds the one that scores higher."""

#: Acceptances that do not use the probability of the way back.
WITHOUT_RATIO = (UNBALANCED, GREEDY, ALWAYS, BETTER)

AcceptanceName = Literal["metropolis", "unbalanced", "barker", "greedy", "always", "truth"]
ACCEPTANCES: dict[str, Acceptance] = {
    "metropolis": METROPOLIS,
    "unbalanced": UNBALANCED,
    "barker": BARKER,
    "greedy": GREEDY,
    "always": ALWAYS,
    "truth": BETTER,
}
"""The shipped acceptances by name."""


def as_acceptance(acceptance: str | Acceptance | Callable[..., Any]) -> Acceptance:
    """Return the acceptance that a name, a function or an acceptance stands for."""
    if isinstance(acceptance, Acceptance):
        return acceptance
    if callable(acceptance):
        return Acceptance(acceptance)
    if acceptance not in ACCEPTANCES:
        raise InvalidArgumentError(
            f"no acceptance is called {acceptance!r}: choose from {list(ACCEPTANCES)}, or give a"
            " function of (random, move)."
        )
    return ACCEPTANCES[acceptance]
