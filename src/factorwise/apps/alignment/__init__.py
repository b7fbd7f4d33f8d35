"""Alignment: which concepts of two ontologies mean the same.

Names are loaded when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

_HOMES = {
    "candidates": ["CandidateConfig", "candidate_pairs"],
    "concepts": ["ConceptTable"],
    "copies": ["CopyConfig", "harder_copy"],
    "estimator": ["Match", "OntologyAligner"],
    "features": ["PairFeatures", "pair_features"],
    "lexicon": ["Lexicon"],
}
_WHERE = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "CandidateConfig",
    "ConceptTable",
    "CopyConfig",
    "Lexicon",
    "Match",
    "OntologyAligner",
    "PairFeatures",
    "candidate_pairs",
    "harder_copy",
    "pair_features",
]

if TYPE_CHECKING:
    from factorwise.apps.alignment.candidates import CandidateConfig, candidate_pairs
    from factorwise.apps.alignment.concepts import ConceptTable
    from factorwise.apps.alignment.copies import CopyConfig, harder_copy
    from factorwise.apps.alignment.estimator import Match, OntologyAligner
    from factorwise.apps.alignment.features import PairFeatures, pair_features
    from factorwise.apps.alignment.lexicon import Lexicon


def __getattr__(name: str) -> object:
    if name not in _WHERE:
        raise AttributeError(f"module 'factorwise.apps.alignment' has no attribute {name!r}")
    value = getattr(import_module(f"factorwise.apps.alignment.{_WHERE[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
