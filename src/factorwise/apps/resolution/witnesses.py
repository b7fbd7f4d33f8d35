"""A ready-made template for `EntityResolver(templates=[...])`: one record per source, softly.

Its weight is learned with the rest where entities are labelled; the search and `explain` use it. Without
labels, ``template_weights`` gives it.
"""

from __future__ import annotations

from factorwise.apps.resolution.record_items import RecordItems, TemplateMaker
from factorwise.errors import InvalidArgumentError
from factorwise.model.clusterings.tally_templates import TallyTemplate

REPEATED_SOURCES = "repeated sources"


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
