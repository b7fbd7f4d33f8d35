"""Entity resolution: records in, entities out.

`EntityResolver` is the estimator; it gives a `Resolution`. `FieldSpec` says what a column is, `Rule` and
`Part` which records become candidates, `Constraints` what is known for certain. Names are loaded when they
are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from factorwise.lazy import load_lazily

_HOMES = {
    "answers": ["Resolution"],
    "blocking.rules": ["Part", "Rule"],
    "constraints": ["Constraints"],
    "estimator": ["EntityResolver"],
    "fields": ["FieldSpec", "read_fields"],
    "knowledge": ["Knowledge"],
    "record_items": ["RecordItems"],
}


__all__ = [
    "Constraints",
    "EntityResolver",
    "FieldSpec",
    "Knowledge",
    "Part",
    "RecordItems",
    "Resolution",
    "Rule",
    "read_fields",
]

if TYPE_CHECKING:
    from factorwise.apps.resolution.answers import Resolution
    from factorwise.apps.resolution.blocking.rules import Part, Rule
    from factorwise.apps.resolution.constraints import Constraints
    from factorwise.apps.resolution.estimator import EntityResolver
    from factorwise.apps.resolution.fields import FieldSpec, read_fields
    from factorwise.apps.resolution.knowledge import Knowledge
    from factorwise.apps.resolution.record_items import RecordItems

__getattr__, __dir__ = load_lazily(__name__, _HOMES)
