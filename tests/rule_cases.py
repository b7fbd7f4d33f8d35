"""Update rules taught one gradient at a time, as the loop of a walk would."""

from __future__ import annotations

import numpy as np

from factorwise.kernels.compile.binding import Bound, Interpreted
from factorwise.kernels.walks.frames import make_frame, run
from factorwise.kernels.walks.layouts import Gradient, Record
from factorwise.kernels.walks.library import put
from factorwise.kernels.walks.loops import MISRANKED, STEPS, UPDATES


class Taught:
    """A rule and what it has learned.

    compiled
        Run its function compiled, not as it is written.
    dense
        How many weights are in the gradient's head: all by default; the others are listed where they are not
        zero.
    """

    def __init__(self, rule, size, *, compiled=False, dense=None):
        self.arrays = rule.arrays(size)
        frame = make_frame((), np.zeros(2, np.uint64), weights=size)
        gradient = Gradient(np.arange(3 * size, dtype=np.int32), np.zeros(3 * size), frame.gradient.mark)
        self.frame = frame._replace(gradient=gradient)
        self.dense = size if dense is None else dense
        self.frame.step["dense"] = self.dense
        program = rule.program(self.arrays)
        self.bound = Bound(program, self.frame) if compiled else Interpreted(program, self.frame, None)

    def enter(self, gradient):
        """Let a gradient, given as an array of all weights, be that of the move at hand."""
        listed, dense = self.frame.gradient, self.dense
        others = dense + np.flatnonzero(gradient[dense:])
        entries = dense + len(others)
        listed.index[dense:entries], listed.value[dense:entries] = others, gradient[others]
        listed.value[:dense] = gradient[:dense]
        self.frame.step["entries"] = entries

    def put(self, weight, value):
        """Add an entry to the list."""
        put(self.frame.gradient, Record(self.frame.step), weight, value)

    def learn(self, gradient, direction, lead, truth_gain=1.0):
        """Learn from a move that makes the world better (1) or worse (-1); return whether weights changed."""
        self.enter(np.asarray(gradient, np.float64))
        return self.learn_at_hand(direction, lead, truth_gain)

    def learn_at_hand(self, direction, lead, truth_gain=1.0):
        step = self.frame.step
        step["gain"], step["better"] = direction * lead, direction * truth_gain
        self.arrays.clock[MISRANKED] += lead <= 0.0
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            changed = run(self.bound, "update") != 0.0
        self.arrays.clock[UPDATES] += changed
        return changed

    def end_step(self):
        self.arrays.clock[STEPS] += 1
