"""Small tables in HTML: how models, worlds and results show themselves in notebooks.

Whatever comes from users is escaped, and long tables are cut, with a line that says how much is left out.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

MOST_ROWS = 12


def html_table(
    title: str, head: Sequence[str], rows: Iterable[Sequence[object]], *, total: int | None = None
) -> str:
    """Return a titled table.

    title
        A line above the table.
    head
        Names of the columns.
    rows
        Cells; numbers with a fraction are shown with six digits.
    total
        Number of rows there would be, if ``rows`` are only the first of them.
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
    """Return the first values between commas, and dots for the rest."""
    return ", ".join(map(str, values[:most])) + (", ..." if len(values) > most else "")


def _text(cell: object) -> str:
    return f"{cell:.6g}" if isinstance(cell, float) else str(cell)
