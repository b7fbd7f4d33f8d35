"""Approximate inference by messages: belief propagation, tree-reweighted, mean field, Bethe entropy."""

from __future__ import annotations

from factorwise.inference.message_passing.belief_propagation import BeliefPropagation
from factorwise.inference.message_passing.bethe import (
    bethe_entropy,
    bethe_free_energy,
    check_consistency,
    expected_score,
    local_inconsistency,
)
from factorwise.inference.message_passing.mean_field import MeanField
from factorwise.inference.message_passing.tree_reweighted import TreeReweighted

__all__ = [
    "BeliefPropagation",
    "MeanField",
    "TreeReweighted",
    "bethe_entropy",
    "bethe_free_energy",
    "check_consistency",
    "expected_score",
    "local_inconsistency",
]
