"""A walk that learns in plain Python, over worlds of any kind, for parts without programs.

Every part is called by its own methods: the proposer's ``draw``, the model's ``difference`` of a diff, the
preference's ``watch``, the world's ``apply``. The loop is the uncompiled one of compiled walks; its move
consists of one change, which stands for a whole diff.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from factorwise.errors import ShapeError
from factorwise.inference.mcmc.acceptances import Acceptance, log_ratio
from factorwise.inference.mcmc.evaluators.exact import Exact
from factorwise.inference.mcmc.kernel import Proposal
from factorwise.inference.mcmc.walk import check_start
from factorwise.kernels.compile.programs import Program
from factorwise.kernels.walks.frames import Parts, make_frame
from factorwise.kernels.walks.layouts import STAY
from factorwise.kernels.walks.loops import ACCEPTED
from factorwise.learning.samplerank.preferences import Judge
from factorwise.model.weights import SparseVector
from factorwise.rng import Stream
from factorwise.types import Float64s, Int64s

BEFORE, AFTER = range(2)  # source and target of the change that stands for a diff


class PlainWalk:
    """One chain that learns in plain Python, on a copy of the start of its training world.

    factors_seen
        Number of factors that sampling evaluators have examined.
    """

    def __init__(
        self,
        training: Any,
        acceptance: Acceptance,
        *,
        weights: Float64s,
        clock: Int64s,
        best_of: int = 1,
        journal: int = 0,
        judged: bool = False,
        **roles: Any,
    ) -> None:
        """Prepare to walk.

        best_of
            How many proposals to draw for each that is considered: the one with the highest gain.
        journal
            How many moves an episode has that are undone after it.
        judged
            Whether the preference is called at every step.
        """
        check_start(training, training.start)
        self.training = training
        self.weights = weights
        self.factors_seen = 0
        self._tries = best_of
        self._stream = Stream(0)
        frame = make_frame((), self._stream.state, weights=len(weights))
        frame.step["dense"] = 0
        if judged:
            roles["judge"] = Program(judge=self._ask, name="the preference")
        self._parts = Parts(
            frame,
            Program(apply=self._apply, name="the world"),
            [
                Program(gradient=self._list_gradient, name="the model"),
                Program(gain=self._constant, name="constants"),
            ],
            stream=self._stream,
            weights=weights,
            learning=True,
            clock=clock,
            journal=journal,
            draw=Program(draw=self._draw, name="the proposer"),
            accept=acceptance.program(),
            **roles,
        )
        self._keeps = journal > 0
        self.reset(training.start)

    def reset(self, world: Any) -> None:
        """Set the current world to a copy of ``world``."""
        start = self.training.start
        if hasattr(start, "layout_key") and world.layout_key() != start.layout_key():
            raise ShapeError(
                f"the walk is over {start!r}, but it was to be reset to {world!r}: give a world of the"
                " same items and types."
            )
        self._world = world.copy()
        preference = self.training.preference
        self._judge: Judge | None = preference.watch(self._world) if preference is not None else None

    @property
    def view(self) -> Any:
        """The current world itself: read it only until the next step."""
        return self._world

    @property
    def value(self) -> float:
        """The metric behind the preference; NaN without one."""
        return math.nan if self._judge is None else self._judge.value

    def advance(self, stream: Stream, temperature: float, steps: int, *, episode: int = 0) -> int:
        """Make ``steps`` steps; return how many changed the world."""
        before = int(self._parts.walk.tally[ACCEPTED])
        self._number = 0
        self._backs: dict[int, Any] = {}
        self._stream.state[:] = stream.state
        self._parts.advance(steps, float(temperature), episode=episode)
        stream.state[:] = self._stream.state
        return int(self._parts.walk.tally[ACCEPTED]) - before

    def _draw(self, move: Any) -> float:
        """Let the proposer draw; of several proposals keep the one with the highest gain."""
        self._proposal = Proposal(None, 0.0, 0.0)
        self._found: tuple[SparseVector, float] | None = None
        highest = -math.inf
        for _ in range(self._tries):
            proposal = self.training.proposer.draw(self._stream, self._world)
            if proposal.diff is None:
                continue
            if self._tries == 1:
                self._proposal = proposal
                break
            difference = self._gradient(proposal.diff)
            gain = difference[0].dot(self.weights) + difference[1]
            if self._proposal.diff is None or gain > highest:
                self._proposal, self._found, highest = proposal, difference, gain
        if self._proposal.diff is None:
            return STAY
        self._number += 1
        move.item, move.source, move.target = self._number, BEFORE, AFTER
        move.log_ratio = log_ratio(self._proposal)
        return 1.0

    def _gradient(self, diff: Any) -> tuple[SparseVector, float]:
        """Return the change of the statistics and constants, from the factors that the evaluator examines."""
        model, evaluator = self.training.model, self.training.evaluator
        if isinstance(evaluator, Exact):
            constant = sum(t.constant_gain(self._world, diff) for t in model.templates)
            return model.difference(self._world, diff), constant
        listed = model.contributions(self._world, diff, self.weights)
        multiplier = evaluator.multipliers(self._stream, listed.gain[None], listed.stratum, listed.certain)
        self.factors_seen += int(np.count_nonzero(multiplier))
        return listed.gradient(multiplier), replace(listed, gain=listed.constant).total(multiplier)

    def _list_gradient(self, move: Any, gradient: Any) -> None:
        if self._found is None:
            self._found = self._gradient(self._proposal.diff)
        found = self._found[0]
        move.entries = len(found.index)
        gradient.index[: move.entries], gradient.value[: move.entries] = found.index, found.value

    def _constant(self) -> float:
        """Return the part of the gain that no weight multiplies; called after the gradient."""
        return self._found[1] if self._found is not None else 0.0

    def _ask(self) -> float:
        """Return how much better the preference finds the world after the proposal."""
        return self._judge.gain(self._world, self._proposal.diff) if self._judge is not None else 0.0

    def _apply(self, move: Any) -> None:
        """Apply the current proposal, or undo an earlier one by its number."""
        diff = self._proposal.diff if move.target == AFTER else self._backs.pop(move.item)
        if self._judge is not None:
            self._judge.applied(self._world, diff)
        back = self._world.apply(diff)
        if self._keeps and move.target == AFTER:
            self._backs[move.item] = back
