"""Entity resolution: records in, entities out.

`EntityResolver` is the estimator, and its result is a `Resolution`. `FieldSpec` declares what a column is,
`Rule` and `Part` define blocking rules, and `Constraints` holds hard constraints. `PairClusterer` needs no
records: it clusters pairs that another tool has scored. Names are imported when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from factorwise.lazy import load_lazily

_HOMES = {
    "results.answers": ["Resolution"],
    "blocking.rules": ["Part", "Rule"],
    "constraints": ["Constraints"],
    "estimator": ["EntityResolver"],
    "schema.fields": ["FieldSpec", "OwnLevels", "read_fields"],
    "knowledge": ["Knowledge"],
    "record_items": ["RecordItems"],
    "scored_pairs.clusterer": ["PairClusterer"],
    "scored_pairs.constants": ["PairConstants"],
    "scored_pairs.tables": ["PairColumns", "ScoredPairs", "read_scored_pairs"],
    "pair_scores": ["add_pair_scores"],
    "witnesses": ["common_words", "different_values", "repeated_sources"],
}


__all__ = [
    "Constraints",
    "EntityResolver",
    "FieldSpec",
    "Knowledge",
    "OwnLevels",
    "PairClusterer",
    "PairColumns",
    "PairConstants",
    "Part",
    "RecordItems",
    "Resolution",
    "Rule",
    "ScoredPairs",
    "add_pair_scores",
    "common_words",
    "different_values",
    "read_fields",
    "read_scored_pairs",
    "repeated_sources",
]

if TYPE_CHECKING:
    from factorwise.apps.resolution.blocking.rules import Part, Rule
    from factorwise.apps.resolution.constraints import Constraints
    from factorwise.apps.resolution.estimator import EntityResolver
    from factorwise.apps.resolution.knowledge import Knowledge
    from factorwise.apps.resolution.pair_scores import add_pair_scores
    from factorwise.apps.resolution.record_items import RecordItems
    from factorwise.apps.resolution.results.answers import Resolution
    from factorwise.apps.resolution.schema.fields import FieldSpec, OwnLevels, read_fields
    from factorwise.apps.resolution.scored_pairs.clusterer import PairClusterer
    from factorwise.apps.resolution.scored_pairs.constants import PairConstants
    from factorwise.apps.resolution.scored_pairs.tables import PairColumns, ScoredPairs, read_scored_pairs
    from factorwise.apps.resolution.witnesses import common_words, different_values, repeated_sources

__getattr__, __dir__ = load_lazily(__name__, _HOMES)
