"""The building blocks of custom parts of a walk: programs, and the functions that they may call.

A custom move, acceptance, preference, update rule or template is a few plain functions and the arrays that
they keep, wrapped in a `Program`. docs/own-parts.md has an example of each kind and lists what a function may
ask for.
"""

from __future__ import annotations

from factorwise.inference.mcmc.acceptances import Acceptance
from factorwise.inference.mcmc.parts import ProgramProposer, Surroundings
from factorwise.inference.mcmc.proposals.partition_moves import PartitionMove
from factorwise.inference.mcmc.walk import Walk
from factorwise.kernels.clusterings.arrays import spare_id
from factorwise.kernels.compile.pointers import call
from factorwise.kernels.compile.programs import Pointers, Program
from factorwise.kernels.walks import layouts
from factorwise.kernels.walks.library import (
    add_change,
    below,
    end_changes,
    exponential,
    listed,
    merge,
    put,
    sigmoid,
    squares,
    tempered,
    uniform,
)
from factorwise.kernels.walks.rules import add_gradient, free_squares, lead_of

STAY = layouts.STAY
"""What ``draw`` and ``support`` return where there is nothing to propose or to choose."""

__all__ = [
    "STAY",
    "Acceptance",
    "PartitionMove",
    "Pointers",
    "Program",
    "ProgramProposer",
    "Surroundings",
    "Walk",
    "add_change",
    "add_gradient",
    "below",
    "call",
    "end_changes",
    "exponential",
    "free_squares",
    "lead_of",
    "listed",
    "merge",
    "put",
    "sigmoid",
    "spare_id",
    "squares",
    "tempered",
    "uniform",
]
