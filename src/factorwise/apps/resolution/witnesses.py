"""Ready-made templates for `EntityResolver(templates=[...])`: evidence that is not in the columns, softly.

Their weights are learned with the rest where entities are labelled; the search, the posterior and `explain`
use them. Without labels, ``template_weights`` gives them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from factorwise.apps.resolution.record_items import RecordItems, TemplateMaker
from factorwise.apps.resolution.scored_pairs.tables import ScoredPairs, read_scored_pairs
from factorwise.errors import InvalidArgumentError
from factorwise.io.table_columns import require_columns
from factorwise.io.table_ids import rows_of
from factorwise.model.partition_templates import EdgeTemplate
from factorwise.model.tally_templates import TallyTemplate

PAIR_SCORES, REPEATED_SOURCES = "pair scores", "repeated sources"


def pair_scores(pairs: Any, id: str, *, name: str = PAIR_SCORES) -> TemplateMaker:  # noqa: A002
    """Return a template of pairs that another tool has scored: one more witness beside the comparisons.

    Two weights are learned: of the log odds of a scored pair in one entity, and of its being scored at all.
    Pairs of records that are not resolved are passed over; candidates are found as before.

    pairs
        `ScoredPairs`, or a table that `read_scored_pairs` reads.
    id
        The column of the records with the ids that the pairs have.
    name
        Of the template.
    """
    scored = pairs if isinstance(pairs, ScoredPairs) else read_scored_pairs(pairs)

    def make(records: RecordItems) -> EdgeTemplate:
        require_columns([id], records.table.column_names, "the table")
        rows = rows_of(scored.ids.cast(pa.string()), records.table.column(id).combine_chunks())
        first, second = rows[scored.first], rows[scored.second]
        known = (first >= 0) & (second >= 0)
        one, two = records.item[first[known]].astype(np.int64), records.item[second[known]].astype(np.int64)
        differ = one != two
        low, high = np.minimum(one, two)[differ], np.maximum(one, two)[differ]
        key, place = np.unique(low * records.n_items + high, return_inverse=True)
        scores = np.bincount(place, weights=scored.log_odds[known][differ], minlength=len(key))
        counts = np.bincount(place, minlength=len(key))
        edges = np.column_stack([key // records.n_items, key % records.n_items])
        return EdgeTemplate(
            name, records.n_items, edges, np.column_stack([scores, counts]), ["log odds", "scored"]
        )

    return make


def repeated_sources(column: str, *, name: str = REPEATED_SOURCES) -> TemplateMaker:
    """Return a template of how often an entity has a source again: a soft form of one record per source.

    Where labels say that a source hardly ever has an entity twice, the weight becomes strongly negative; but
    other evidence can outweigh it, which it cannot with ``Constraints(one_per_source=True)``.

    column
        Of the records that says where each is from; leave it out of the comparison.
    name
        Of the template.
    """
    if not column:
        raise InvalidArgumentError("the column that says where records are from must be named.")

    def make(records: RecordItems) -> TallyTemplate:
        return TallyTemplate(name, records.bags(column), _again, _total, ["records of a source beyond one"])

    return make


def _again(count: int) -> float:
    return max(0.0, count - 1.0)


def _total(total: float, size: int) -> float:
    return total
