"""Names of entities that stay the same from run to run.

An entity is named by the smallest id of its records: numbers by size, other ids in the order of letters.
Where earlier names are known, an entity keeps the one that most of its records had; of two entities that
could keep the same name the one with more such records does, and the other is named by its smallest id.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from factorwise.types import Ints


def id_ranks(ids: pa.Array) -> NDArray[np.int64]:
    """Return the place of each id in their order."""
    ordered = ids
    if pa.types.is_string(ids.type) or pa.types.is_large_string(ids.type):
        whole = pc.all(pc.match_substring_regex(ids, r"^[0-9]{1,18}$")).as_py()
        ordered = ids.cast(pa.int64()) if whole else ids
    ranks = np.empty(len(ids), np.int64)
    ranks[np.asarray(pc.sort_indices(ordered))] = np.arange(len(ids))
    return ranks


def smallest_rows(labels: Ints, ranks: Ints) -> NDArray[np.int64]:
    """Return for each record the row of the record that its entity is named by."""
    entities, number = np.unique(labels, return_inverse=True)
    best = np.full(len(entities), len(labels), np.int64)
    np.minimum.at(best, number, ranks)
    by_rank = np.empty(len(labels), np.int64)
    by_rank[ranks] = np.arange(len(labels))
    return by_rank[best[number]]


def entity_names(ids: pa.Array, labels: Ints, known: pa.Array | None = None) -> pa.Array:
    """Return the name of each record's entity.

    known
        The names that records had before, null where there was none.
    """
    rows = smallest_rows(labels, id_ranks(ids))
    if known is None:
        return ids.take(pa.array(rows))
    names = known.cast(ids.type, safe=False) if known.type != ids.type else known
    coded = names.dictionary_encode()
    old = np.asarray(coded.indices.fill_null(-1), dtype=np.int64)
    number = np.unique(labels, return_inverse=True)[1]
    had = old >= 0
    width = len(coded.dictionary) + 1
    cells, counts = np.unique(number[had] * width + old[had], return_counts=True)
    entity, name = cells // width, cells % width
    kept = np.full(int(number.max(initial=-1)) + 1, -1, np.int64)
    taken = np.zeros(width, bool)
    for k in np.lexsort((name, entity, -counts)).tolist():  # larger known parts choose first
        if kept[entity[k]] < 0 and not taken[name[k]]:
            kept[entity[k]] = name[k]
            taken[name[k]] = True
    fresh = ids.take(pa.array(rows))
    inherited = coded.dictionary.take(pa.array(np.maximum(kept[number], 0)))
    found = pc.if_else(pa.array(kept[number] >= 0), inherited, fresh)
    return _without_clashes(found, fresh, kept[number] >= 0, coded.dictionary, taken)


def _without_clashes(
    found: pa.Array, fresh: pa.Array, inherited: NDArray[np.bool_], names: pa.Array, taken: NDArray[np.bool_]
) -> pa.Array:
    """Give entities another name whose smallest id is the name that another entity has kept."""
    used = names.filter(pa.array(taken[: len(names)]))
    clash = np.asarray(pc.is_in(fresh, value_set=used)) & ~inherited
    if not clash.any():
        return found
    marked = pc.binary_join_element_wise(fresh.cast(pa.string()), "split", "-")
    return pc.if_else(pa.array(clash), marked, found.cast(pa.string()))
