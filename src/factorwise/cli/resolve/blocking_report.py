"""What blocking did, for people and as JSON values: rules, sizes of blocks, candidate pairs, recall."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from factorwise.cli.output import aligned

if TYPE_CHECKING:  # Arrow takes its time to load: help, and mistakes in options, do not wait for it
    from factorwise.apps.resolution.blocking import Candidates
    from factorwise.apps.resolution.normalize.forms import NormalTable
    from factorwise.types import Ints


class BlockingReport(NamedTuple):
    """A report as JSON values, and as lines."""

    entry: dict[str, Any]
    lines: list[str]


def blocking_report(
    candidates: Candidates, normal: NormalTable, entity: Ints | None = None
) -> BlockingReport:
    """Report on candidates; with the number of each record's entity (-1 for none), on recall too."""
    from factorwise.apps.resolution.blocking import recall_of, report_dict, report_notes, report_rows

    recall = None if entity is None else recall_of(candidates, entity, normal)
    rows = aligned(report_rows(candidates, recall)) if candidates.rules else []
    notes = [f"  {note}" for note in report_notes(candidates, normal, recall)]
    return BlockingReport(report_dict(candidates, normal, recall), ["candidates", *rows, *notes])
