"""Tagging: a label for every token of a sentence, from attributes of the tokens.

`ChainCRF` is the estimator. `TemplateSet` defines the attributes of tokens that are words or columns, and
`ConstraintSet` holds constraints on whole label sequences.
Names are loaded when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from factorwise.lazy import load_lazily

_HOMES = {
    "answers": ["Explanation", "Span"],
    "citations.formats": ["to_bibtex", "to_csl"],
    "citations.reader": ["Citation", "CitationReader", "Field", "split_references"],
    "config": ["ALGORITHMS"],
    "constraints": ["SCHEMES"],
    "estimator": ["ChainCRF"],
    "global_constraints": ["ConstraintSet", "GlobalConstraint"],
    "nested": ["NestedTagger"],
    "prediction": ["UnseenLabelWarning"],
    "features.templates": ["TemplateSet", "default_templates"],
    "training": ["Step"],
}

__all__ = [
    "ALGORITHMS",
    "SCHEMES",
    "ChainCRF",
    "Citation",
    "CitationReader",
    "ConstraintSet",
    "Explanation",
    "Field",
    "GlobalConstraint",
    "NestedTagger",
    "Span",
    "Step",
    "TemplateSet",
    "UnseenLabelWarning",
    "default_templates",
    "split_references",
    "to_bibtex",
    "to_csl",
]

if TYPE_CHECKING:
    from factorwise.apps.tagging.answers import Explanation, Span
    from factorwise.apps.tagging.citations.formats import to_bibtex, to_csl
    from factorwise.apps.tagging.citations.reader import Citation, CitationReader, Field, split_references
    from factorwise.apps.tagging.config import ALGORITHMS
    from factorwise.apps.tagging.constraints import SCHEMES
    from factorwise.apps.tagging.estimator import ChainCRF
    from factorwise.apps.tagging.features.templates import TemplateSet, default_templates
    from factorwise.apps.tagging.global_constraints import ConstraintSet, GlobalConstraint
    from factorwise.apps.tagging.nested import NestedTagger
    from factorwise.apps.tagging.prediction import UnseenLabelWarning
    from factorwise.apps.tagging.training import Step

__getattr__, __dir__ = load_lazily(__name__, _HOMES)
