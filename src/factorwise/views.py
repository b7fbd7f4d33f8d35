"""Small HTML tables with which models, worlds and results display themselves in notebooks.

Everything that comes from users is escaped. Long tables are cut, and a line says how many rows are left out.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

MOST_ROWS = 12


def html_table(
    title: str, head: Sequence[str], rows: Iterable[Sequence[object]], *, total: int | None = None
) -> str:
    """Return an HTML table with a title.

    title
        The line above the table.
    head
        The names of the columns.
    rows
        The cells; numbers with a fraction are shown with six digits.
    total
        The number of all rows, if ``rows`` has only the first of them.
    """
    shown = list(rows)
    left = (len(shown) if total is None else total) - min(len(shown), MOST_ROWS)
    names = "".join(f"<th>{html.escape(name)}</th>" for name in head)
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(_text(cell))}</td>" for cell in row) + "</tr>"
        for row in shown[:MOST_ROWS]
    )
    more = f"<p>and {left} more</p>" if left > 0 else ""
    table = f"<table><thead><tr>{names}</tr></thead><tbody>{body}</tbody></table>" if shown else ""
    return f"<div><p><b>{html.escape(title)}</b></p>{table}{more}</div>"


def listed(values: Sequence[object], most: int = 12) -> str:
    """Return the first values separated by commas, with dots for the rest."""
    return ", ".join(map(str, values[:most])) + (", ..." if len(values) > most else "")


def _text(cell: object) -> str:
    return f"{cell:.6g}" if isinstance(cell, float) else str(cell)
