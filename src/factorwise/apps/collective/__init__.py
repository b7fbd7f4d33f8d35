"""Collective models: how a population moves, from counts of its members by time and place.

Names are loaded when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from factorwise.lazy import load_lazily

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

__getattr__, __dir__ = load_lazily(__name__, _HOMES)
