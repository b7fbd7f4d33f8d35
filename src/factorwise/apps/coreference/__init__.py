"""Coreference resolution: find the mentions in a text, or in the texts of a topic, of the same entity.

`CoreferenceResolver` is the estimator, `read_documents` reads its data, and `pair_table` shows its features.
Names are loaded when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from factorwise.lazy import load_lazily

_HOMES = {
    "cluster_features": ["cluster_templates", "mention_fields"],
    "documents": ["Discourse", "Document", "Mention", "discourses", "document_from", "read_documents"],
    "estimator": ["CoreferenceResolver"],
    "pair_features": ["pair_table"],
}

__all__ = [
    "CoreferenceResolver",
    "Discourse",
    "Document",
    "Mention",
    "cluster_templates",
    "discourses",
    "document_from",
    "mention_fields",
    "pair_table",
    "read_documents",
]

if TYPE_CHECKING:
    from factorwise.apps.coreference.cluster_features import cluster_templates, mention_fields
    from factorwise.apps.coreference.documents import (
        Discourse,
        Document,
        Mention,
        discourses,
        document_from,
        read_documents,
    )
    from factorwise.apps.coreference.estimator import CoreferenceResolver
    from factorwise.apps.coreference.pair_features import pair_table

__getattr__, __dir__ = load_lazily(__name__, _HOMES)
