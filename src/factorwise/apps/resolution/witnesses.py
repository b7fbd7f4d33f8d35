"""Ready-made templates for `EntityResolver(templates=[...])`: what speaks for or against whole entities.

Their weights are learned where entities are labelled; the search and `explain` use them. Without labels,
``template_weights`` gives them.
"""

from __future__ import annotations

from factorwise.apps.resolution.record_items import RecordItems, TemplateMaker
from factorwise.errors import InvalidArgumentError
from factorwise.model.clusterings.tally_templates import BagCosine, DistinctValues, TallyTemplate

REPEATED_SOURCES = "repeated sources"


def different_values(column: str, *, name: str | None = None) -> TemplateMaker:
    """Return a template of how many different values of a column an entity has beyond one.

    name
        Of the template; by default one that says the column.
    """

    def make(records: RecordItems) -> DistinctValues:
        return DistinctValues(name or f"different values of {column}", records.bags(column))

    return make


def common_words(column: str, *, name: str | None = None) -> TemplateMaker:
    """Return a template of how near the words of records in a column are to those of their entity.

    name
        Of the template; by default one that says the column.
    """

    def make(records: RecordItems) -> BagCosine:
        return BagCosine(name or f"common words of {column}", records.bags(column, words=True))

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
