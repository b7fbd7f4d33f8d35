"""Checks for your own templates, proposers, transition kernels and oracles.

Names are loaded when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from factorwise.lazy import load_lazily

_HOMES = {
    "oracles": [
        "awkward_graphs",
        "check_name",
        "impossible_checks",
        "impossible_graphs",
        "is_acyclic",
        "map_oracle_checks",
        "marginal_oracle_checks",
    ],
    "proposers": ["exact_distribution", "kernel_checks", "proposer_checks"],
    "restrictions": ["check_restriction"],
    "templates": ["check_template"],
    "walks": ["check_walk", "transition_matrix"],
}

__all__ = [
    "awkward_graphs",
    "check_name",
    "check_restriction",
    "check_template",
    "check_walk",
    "exact_distribution",
    "impossible_checks",
    "impossible_graphs",
    "is_acyclic",
    "kernel_checks",
    "map_oracle_checks",
    "marginal_oracle_checks",
    "proposer_checks",
    "transition_matrix",
]

if TYPE_CHECKING:
    from factorwise.testing.oracles import (
        awkward_graphs,
        check_name,
        impossible_checks,
        impossible_graphs,
        is_acyclic,
        map_oracle_checks,
        marginal_oracle_checks,
    )
    from factorwise.testing.proposers import exact_distribution, kernel_checks, proposer_checks
    from factorwise.testing.restrictions import check_restriction
    from factorwise.testing.templates import check_template
    from factorwise.testing.walks import check_walk, transition_matrix

__getattr__, __dir__ = load_lazily(__name__, _HOMES)
