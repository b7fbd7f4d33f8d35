"""Stable entity ids: which id an entity keeps after a change, and why entities change.

An entity keeps the id that most of its records had. If two entities could keep the same id, the one with more
such records keeps it, and the other gets an id that was never used. Every change is stored as moves of
records between entities, so that it can be explained and undone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

NONE = -1  # entity id of a record without an entity


@dataclass(frozen=True, slots=True)
class Cause:
    """The reason for a change of entities.

    kind
        ``run``, ``decision``, ``hand`` (a person split or merged entities) or ``undo``.
    run, decision, undoes
        Number of the run, of the decision, or of the undone change; None if it does not apply.
    who
        The person who made the change; None for a run.
    """

    kind: str
    run: int | None = None
    decision: int | None = None
    who: str | None = None
    undoes: int | None = None


def keep_ids(before: NDArray[np.int64], group: NDArray[np.int64], next_id: int) -> NDArray[np.int64]:
    """Return the entity id of each record after a change.

    before
        The previous entity id of each record; -1 if it had none. All records of these entities are required.
    group
        The new grouping: records with the same number form one entity.
    next_id
        The first id that was never used.

    If two entities have equally many records of an id, the one whose first record comes earlier keeps it.
    """
    number = np.unique(group, return_inverse=True)[1]
    kept = np.full(int(number.max(initial=-1)) + 1, NONE, np.int64)
    had = before >= 0
    old, place = np.unique(before[had], return_inverse=True)
    cells, counts = np.unique(number[had] * max(len(old), 1) + place, return_counts=True)
    owner, name = cells // max(len(old), 1), cells % max(len(old), 1)
    most = np.zeros(len(kept), np.int64)
    np.maximum.at(most, owner, counts)
    wanted = counts == most[owner]  # only the most frequent previous ids of each entity
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
