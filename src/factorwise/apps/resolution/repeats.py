"""Deduplicate tables with many exact duplicates, so that equal records are resolved only once."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from factorwise.apps.resolution.blocking.keys import different
from factorwise.apps.resolution.constraints import Constraints
from factorwise.apps.resolution.knowledge import Knowledge
from factorwise.apps.resolution.labelled import LabelledPairs
from factorwise.apps.resolution.normalize.vector_forms import is_vector, read_vectors
from factorwise.apps.resolution.pair_scores import is_pair_scores
from factorwise.apps.resolution.schema.fields import FieldSpec
from factorwise.errors import InvalidArgumentError
from factorwise.io.text_hashes import text_hashes
from factorwise.rng import split_mix_words
from factorwise.types import Ints

EQUAL_DIFFER = "equal_records_differ"  # set in `Knowledge.training` if labels separate equal records
DIFFERENT = (
    0.01  # share of labelled records whose entity is not the majority of their duplicates; more contradict
)
_FIRST = 10_000  # rows from which the number of distinct values of a column is estimated
REPEATED = 0.5  # share of distinct records; records are deduplicated if there are no more than this


class Distinct(NamedTuple):
    """The distinct records of a table.

    rows : int64[distinct]
        The first row of each distinct record.
    of : int64[rows]
        The index of the distinct record of each row.
    """

    rows: NDArray[np.int64]
    of: NDArray[np.int64]

    def entities(self, entity: Ints) -> NDArray[np.int32]:
        """Return the most frequent entity of each distinct record; -1 where none is known."""
        known = np.flatnonzero(entity >= 0)
        width = int(entity.max(initial=0)) + 1
        pairs, counts = np.unique(self.of[known] * np.int64(width) + entity[known], return_counts=True)
        order = np.lexsort((pairs, -counts, pairs // width))
        first = np.unique(pairs[order] // width, return_index=True)[1]
        found = np.full(len(self.rows), -1, np.int32)
        found[pairs[order][first] // width] = pairs[order][first] % width
        return found

    def contradict(self, entity: Ints) -> bool:
        """Return whether labels separate equal records, or give no entity two distinct records."""
        most = self.entities(entity)
        known = entity >= 0
        several = bool((np.bincount(most[most >= 0]) > 1).any())
        return not several or float((most[self.of][known] != entity[known]).mean()) > DIFFERENT

    def pairs(self, given: LabelledPairs) -> LabelledPairs:
        """Return labelled pairs in terms of distinct records, without pairs of equal records."""
        first, second = self.of[given.first], self.of[given.second]
        other = first != second
        return LabelledPairs(first[other], second[other], given.same[other])

    def constraints(self, given: Constraints | None) -> Constraints | None:
        """Return constraints in terms of distinct records."""
        if given is None:
            return None
        must = self.of[given.must].reshape(-1, 2)
        must = must[must[:, 0] != must[:, 1]]
        sources = None if given.sources is None else given.sources[self.rows]
        return replace(given, must=must, cannot=self.of[given.cannot].reshape(-1, 2), sources=sources)


def compared_columns(fields: Sequence[FieldSpec]) -> list[str]:
    """Return the columns that are compared."""
    return [field.name for field in fields if field.kind != "ignore"]


def count_different(table: pa.Table, knowledge: Knowledge, constraints: Constraints | None = None) -> int:
    """Return how many records are resolved, after exact duplicates are merged where that is allowed."""
    columns = compared_columns(knowledge.fields)
    merged = not knowledge.further and not knowledge.training.get(EQUAL_DIFFER)
    distinct = distinct_records(table, columns, constraints) if merged else None
    return table.num_rows if distinct is None else len(distinct.rows)


def distinct_records(
    table: pa.Table,
    columns: Sequence[str],
    constraints: Constraints | None = None,
    *,
    sources: Ints | None = None,
) -> Distinct | None:
    """Find the distinct records of a table; return None if most records are distinct anyway.

    Records are identified by a 64-bit hash: among five million distinct records, the probability of a
    collision is about one in a million. Records with a cannot-link constraint or without any value are never
    merged. None is also returned if an entity has one record per source and ``sources`` is None.

    columns
        The columns that are compared.
    sources
        The source of each record, if equal records of one source are to be merged even where an entity has
        one record per source.
    """
    limits = constraints or Constraints()
    is_one_each = limits.one_per_source and limits.sources is not None and sources is None
    if is_one_each or not columns or not table.num_rows:
        return None
    key, empty = np.zeros(table.num_rows, np.uint64), np.ones(table.num_rows, bool)
    if sources is not None:
        key = split_mix_words(np.asarray(sources).astype(np.uint64))
    for name in _most_different_first(table, columns):
        words = _words_of(table.column(name))
        empty &= words == 0
        key = split_mix_words(key + words)
        if len(different(key)) > REPEATED * table.num_rows:
            return None
    alone = np.unique(np.append(limits.cannot.ravel(), np.flatnonzero(empty))).astype(np.int64)
    key[alone] = split_mix_words(key[alone] + (alone + 1).astype(np.uint64))
    rows, of = np.unique(key, return_index=True, return_inverse=True)[1:]
    if len(rows) > REPEATED * table.num_rows:
        return None
    order = np.argsort(rows)
    rank = np.empty(len(rows), np.int64)
    rank[order] = np.arange(len(rows))
    return Distinct(rows[order].astype(np.int64), rank[of])


def _most_different_first(table: pa.Table, columns: Sequence[str]) -> list[str]:
    """Sort the columns that a table has by their distinct values in the first rows, most first."""
    there = [name for name in dict.fromkeys(columns) if name in table.column_names]
    different = {name: int(_codes(table.column(name).slice(0, _FIRST)).max(initial=0)) for name in there}
    return sorted(there, key=lambda name: -different[name])


def _words_of(column: pa.ChunkedArray) -> NDArray[np.uint64]:
    """Return a 64-bit hash of each value; 0 where it is missing or empty, as in `_codes`."""
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return _codes(column).astype(np.uint64)
    words = [np.zeros(0, np.uint64)]
    for texts in column.chunks:
        filled = np.asarray(pc.greater(pc.binary_length(texts), 0).fill_null(False))
        words.append(np.where(filled, text_hashes(texts), np.uint64(0)))
    return np.concatenate(words)


def _codes(column: pa.ChunkedArray) -> NDArray[np.int64]:
    """Return an integer code for each value; 0 if it is missing, an empty text or an empty list."""
    array = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    if is_pair_scores(array.type):  # each record has its own pairs, so all records differ
        return np.arange(1, len(array) + 1)
    if is_vector(array.type):
        with suppress(InvalidArgumentError):  # these lists of numbers are not vectors
            return read_vectors(column, "").codes.astype(np.int64) + 1
    if pa.types.is_list(array.type) or pa.types.is_large_list(array.type):
        return _codes_of_lists(array)
    try:
        coded = array.dictionary_encode()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):  # for example, nested records
        coded = pa.array([None if value is None else repr(value) for value in array.to_pylist()])
        coded = coded.dictionary_encode()
    values = coded.dictionary
    if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
        empty = np.asarray(pc.equal(pc.binary_length(values), 0).fill_null(True))
    else:
        empty = np.zeros(len(values), bool)
    codes = np.asarray(coded.indices.fill_null(len(empty)), np.int64)
    return np.where(np.append(empty, True)[codes], 0, codes + 1)


def _codes_of_lists(lists: pa.Array) -> NDArray[np.int64]:
    """Return an integer code for each list; lists with equal items in the same order share a code."""
    if lists.null_count:
        lists = lists.fill_null([])
    items = _codes(pa.chunked_array([lists.flatten()])).astype(np.uint64)
    lengths = np.asarray(pc.list_value_length(lists), np.int64)
    offsets = np.append(0, np.cumsum(lengths))
    place = np.arange(len(items)) - np.repeat(offsets[:-1], lengths)
    words = split_mix_words(items + split_mix_words(place.astype(np.uint64)))
    sums = np.append(np.uint64(0), np.cumsum(words))  # sums wrap around, but differences stay exact
    keys = sums[offsets[1:]] - sums[offsets[:-1]]
    codes = np.unique(np.append(np.uint64(0), keys), return_inverse=True)[1][1:]
    return np.where(lengths == 0, 0, codes).astype(np.int64)
