"""Ontology alignment: find the concepts of two ontologies that mean the same.

Names are imported when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from factorwise.lazy import load_lazily

_HOMES = {
    "candidates": ["CandidateConfig", "candidate_pairs"],
    "concepts": ["ConceptTable"],
    "estimator": ["Match", "OntologyAligner"],
    "features": ["PairFeatures", "pair_features"],
    "lexicon": ["Lexicon"],
}

__all__ = [
    "CandidateConfig",
    "ConceptTable",
    "Lexicon",
    "Match",
    "OntologyAligner",
    "PairFeatures",
    "candidate_pairs",
    "pair_features",
]

if TYPE_CHECKING:
    from factorwise.apps.alignment.candidates import CandidateConfig, candidate_pairs
    from factorwise.apps.alignment.concepts import ConceptTable
    from factorwise.apps.alignment.estimator import Match, OntologyAligner
    from factorwise.apps.alignment.features import PairFeatures, pair_features
    from factorwise.apps.alignment.lexicon import Lexicon

__getattr__, __dir__ = load_lazily(__name__, _HOMES)
