"""Collective models: how a population moves, from counts of its members by time and place.

Names are loaded when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

_HOMES = {
    "counts": ["Counts", "Series"],
    "estimator": ["CollectiveModel"],
    "features": ["TransitionFeatures", "by_distance", "read_distances", "staying"],
    "flows": ["Flows", "SeriesFlows"],
    "learning": ["CollectiveProblem", "Parameters", "Pass", "hard_em"],
    "noise": ["Noise"],
    "transitions": ["Transitions"],
    "truth": ["score_tables"],
}
_WHERE = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "CollectiveModel",
    "CollectiveProblem",
    "Counts",
    "Flows",
    "Noise",
    "Parameters",
    "Pass",
    "Series",
    "SeriesFlows",
    "TransitionFeatures",
    "Transitions",
    "by_distance",
    "hard_em",
    "read_distances",
    "score_tables",
    "staying",
]

if TYPE_CHECKING:
    from factorwise.apps.collective.counts import Counts, Series
    from factorwise.apps.collective.estimator import CollectiveModel
    from factorwise.apps.collective.features import (
        TransitionFeatures,
        by_distance,
        read_distances,
        staying,
    )
    from factorwise.apps.collective.flows import Flows, SeriesFlows
    from factorwise.apps.collective.learning import CollectiveProblem, Parameters, Pass, hard_em
    from factorwise.apps.collective.noise import Noise
    from factorwise.apps.collective.transitions import Transitions
    from factorwise.apps.collective.truth import score_tables


def __getattr__(name: str) -> object:
    if name not in _WHERE:
        raise AttributeError(f"module 'factorwise.apps.collective' has no attribute {name!r}")
    value = getattr(import_module(f"factorwise.apps.collective.{_WHERE[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
