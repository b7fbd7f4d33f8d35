"""Ready-made templates for `EntityResolver(templates=[...])`: evidence about whole entities.

Their weights are learned if entities are labelled, and the search and `explain` use them. Without labels, set
their weights with ``template_weights``.
"""

from __future__ import annotations

from factorwise.apps.resolution.record_items import RecordItems, TemplateMaker
from factorwise.errors import InvalidArgumentError
from factorwise.model.clusterings.tally_templates import BagCosine, DistinctValues, TallyTemplate

REPEATED_SOURCES = "repeated sources"


def different_values(column: str, *, name: str | None = None) -> TemplateMaker:
    """Return a template that counts the distinct values of a column in an entity, beyond the first.

    name
        Name of the template; by default it contains the name of the column.
    """

    def make(records: RecordItems) -> DistinctValues:
        return DistinctValues(name or f"different values of {column}", records.bags(column))

    return make


def common_words(column: str, *, name: str | None = None) -> TemplateMaker:
    """Return a template that compares the words of each record in a column with those of its entity.

    name
        Name of the template; by default it contains the name of the column.
    """

    def make(records: RecordItems) -> BagCosine:
        return BagCosine(name or f"common words of {column}", records.bags(column, words=True))

    return make


def repeated_sources(column: str, *, name: str = REPEATED_SOURCES) -> TemplateMaker:
    """Return a template that counts repeated sources in an entity: a soft one-record-per-source constraint.

    If a source hardly ever contains an entity twice in the labels, the weight becomes strongly negative.
    Other evidence can still outweigh it, unlike with ``Constraints(one_per_source=True)``.

    column
        The column that holds the source of each record; leave it out of the comparison.
    name
        Name of the template.
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
