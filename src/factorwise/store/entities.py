"""Entities with ids that stay: which id a changed entity keeps, and the history of all changes.

An entity keeps the id that most of its records had; where two entities could keep the same, the one with more
such records does, and the other gets an id that was never used. Every change is kept as moves of records from
entity to entity, so that each can be explained, and undone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

NONE = -1  # entity of a record that has none yet


@dataclass(frozen=True, slots=True)
class Cause:
    """Why entities changed.

    kind
        ``run``, ``decision``, ``hand`` (a person split or merged) or ``undo``.
    run, decision, undoes
        The number of the run, of the decision, or of the change that is undone; None where it is none.
    who
        The person; None for a run.
    """

    kind: str
    run: int | None = None
    decision: int | None = None
    who: str | None = None
    undoes: int | None = None


def keep_ids(before: NDArray[np.int64], group: NDArray[np.int64], next_id: int) -> NDArray[np.int64]:
    """Return the entity id of each record after a change.

    before
        The entity id of each record, -1 where it has none. All records of these entities must be there.
    group
        Records with the same number are of one entity now.
    next_id
        Ids from here on were never used.

    Of two entities with as many records of an id, the one whose first record comes earlier keeps it.
    """
    number = np.unique(group, return_inverse=True)[1]
    kept = np.full(int(number.max(initial=-1)) + 1, NONE, np.int64)
    had = before >= 0
    old, place = np.unique(before[had], return_inverse=True)
    cells, counts = np.unique(number[had] * max(len(old), 1) + place, return_counts=True)
    owner, name = cells // max(len(old), 1), cells % max(len(old), 1)
    most = np.zeros(len(kept), np.int64)
    np.maximum.at(most, owner, counts)
    wanted = counts == most[owner]  # only the id that most of the records had
    first = np.full(len(kept), len(number))
    np.minimum.at(first, number, np.arange(len(number)))
    order = np.lexsort((first[owner], name, -counts))
    taken = np.zeros(len(old), bool)
    for cell in order[wanted[order]].tolist():
        if kept[owner[cell]] < 0 and not taken[name[cell]]:
            kept[owner[cell]] = old[name[cell]]
            taken[name[cell]] = True
    fresh = np.flatnonzero(kept < 0)
    kept[fresh[np.argsort(first[fresh], kind="stable")]] = next_id + np.arange(len(fresh))
    return kept[number]
