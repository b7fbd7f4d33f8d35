"""Names of entities that stay the same from run to run.

An entity is named by the smallest id of its records: numbers are sorted by value, other ids alphabetically.
If earlier names are known, an entity keeps the name that most of its records had. If two entities could keep
the same name, the one with more such records keeps it, and the other may keep its next most frequent name, or
is named by its smallest id. If another entity already has that name, ``-split`` is added to it.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from factorwise.types import Ints


def id_ranks(ids: pa.Array) -> NDArray[np.int64]:
    """Return the rank of each id in sorted order."""
    ranks = np.empty(len(ids), np.int64)
    ranks[_sorted(ids)] = np.arange(len(ids))
    return ranks


def _sorted(ids: pa.Array) -> NDArray[np.int64]:
    """Return the rows, sorted by their ids."""
    texts = pa.types.is_string(ids.type) or pa.types.is_large_string(ids.type)
    if not texts or not pc.all(pc.match_substring_regex(ids, r"^[0-9]{1,18}$")).as_py():
        return np.asarray(pc.sort_indices(ids))
    numbers = ids.cast(pa.int64())
    if pc.count_distinct(numbers).as_py() == len(ids):
        return np.asarray(pc.sort_indices(numbers))
    keys = [("number", "ascending"), ("id", "ascending")]  # 7 and 07 are different ids
    return np.asarray(pc.sort_indices(pa.table({"number": numbers, "id": ids}), sort_keys=keys))


def smallest_rows(labels: Ints, ranks: Ints) -> NDArray[np.int64]:
    """Return for each record the row with the smallest id of its entity."""
    entities, number = np.unique(labels, return_inverse=True)
    best = np.full(len(entities), len(labels), np.int64)
    np.minimum.at(best, number, ranks)
    by_rank = np.empty(len(labels), np.int64)
    by_rank[ranks] = np.arange(len(labels))
    return by_rank[best[number]]


def entity_names(ids: pa.Array, labels: Ints, known: pa.Array | None = None) -> pa.Array:
    """Return the name of each record's entity.

    known
        The earlier names of the records' entities, null where there is none.
    """
    rows = smallest_rows(labels, id_ranks(ids))
    if known is None:
        return ids.take(pa.array(rows))
    ids, names = _of_one_type(ids, known)
    coded = names.dictionary_encode()
    old = np.asarray(coded.indices.fill_null(-1), dtype=np.int64)
    number = np.unique(labels, return_inverse=True)[1]
    had = old >= 0
    width = len(coded.dictionary) + 1
    cells, counts = np.unique(number[had] * width + old[had], return_counts=True)
    entity, name = cells // width, cells % width
    kept = np.full(int(number.max(initial=-1)) + 1, -1, np.int64)
    taken = np.zeros(width, bool)
    for k in np.lexsort((name, entity, -counts)).tolist():  # the largest overlaps choose first
        if kept[entity[k]] < 0 and not taken[name[k]]:
            kept[entity[k]] = name[k]
            taken[name[k]] = True
    fresh = ids.take(pa.array(rows))
    inherits = kept[number] >= 0
    inherited = coded.dictionary.take(pa.array(kept[number], mask=~inherits))
    return _without_clashes(pc.if_else(pa.array(inherits), inherited, fresh), ~inherits)


def _of_one_type(ids: pa.Array, known: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return ids and names in the type of the ids, or as text if the type would change a name."""
    if known.type == ids.type:
        return ids, known
    texts = known.cast(pa.string())
    try:
        names = known.cast(ids.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return ids.cast(pa.string()), texts
    if names.cast(pa.string()).equals(texts):
        return ids, names
    return ids.cast(pa.string()), texts  # 01 and 1 are different names


def _without_clashes(names: pa.Array, fresh: NDArray[np.bool_]) -> pa.Array:
    """Add a suffix to new names (``fresh``) that another entity already has."""
    clash = fresh & np.asarray(pc.is_in(names, value_set=names.filter(pa.array(~fresh))))
    if not clash.any():
        return names
    names = names.cast(pa.string())
    others = names.filter(pa.array(~clash))
    while clash.any():
        marked = pc.binary_join_element_wise(names, "split", "-")
        names = pc.if_else(pa.array(clash), marked, names)
        clash &= np.asarray(pc.is_in(names, value_set=others))
    return names
