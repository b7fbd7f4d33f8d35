"""Read tables of scored pairs: recognise the columns of ids and scores, and the kind of score.

A score is a probability (possibly in percent), a match weight in bits (log2 of the odds, as splink writes),
or the natural log odds. All are converted to natural log odds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from factorwise.errors import DataFileError, InvalidArgumentError, require
from factorwise.io.listing import some
from factorwise.io.tables.ids import rows_of
from factorwise.io.tables.names import require_columns
from factorwise.io.tables.reading import ids_of, read_table

PROBABILITY, PERCENT, BITS, LOG_ODDS = "probability", "percent", "bits", "log-odds"
SCORE_KINDS = (PROBABILITY, PERCENT, BITS, LOG_ODDS)
LARGEST = 40.0  # largest absolute log odds; scores are clipped to it
SPLINK_SOURCES = ("source_dataset_l", "source_dataset_r")
SPLINK_SCORES = ("match_weight", "match_probability")
SPLINK_JOINER = "-__-"  # text that splink puts between the source and the id of a record

#: Names of score columns that imply the kind of score.
_KINDS_BY_NAME = {
    "match_weight": BITS,
    "bits": BITS,
    "match_probability": PROBABILITY,
    "probability": PROBABILITY,
    "prob": PROBABILITY,
    "p": PROBABILITY,
    "percent": PERCENT,
    "percentage": PERCENT,
    "log_odds": LOG_ODDS,
    "logodds": LOG_ODDS,
    "logit": LOG_ODDS,
}
_ID_NAMES = (
    ("unique_id_l", "unique_id_r"),
    ("id_l", "id_r"),
    ("id", "other"),
    ("id1", "id2"),
    ("id_1", "id_2"),
    ("left", "right"),
    ("left_id", "right_id"),
    ("id_left", "id_right"),
)
_SCORE_NAMES = (*_KINDS_BY_NAME, "score", "weight")


class PairColumns(NamedTuple):
    """Names of the columns of a table of scored pairs: two ids and a score."""

    left: str
    right: str
    score: str


@dataclass(frozen=True, slots=True, eq=False)
class ScoredPairs:
    """Records and the scores of some of their pairs.

    ids
        Ids of the records, as an Arrow array.
    first, second : int64[pairs]
        Rows of the two records of each pair, the smaller first; pairs are unique and sorted.
    log_odds : float32[pairs]
        Natural log odds that the pair is a match, from the tool that scored it.
    sources : int32[records] or None
        The source of each record as a number, if the table or the records have a column of sources.
    columns, kind
        The columns that were read, and the kind of score.
    n_repeated, n_selves
        Number of repeated pairs, of which the highest score is kept, and of records paired with themselves,
        which are left out.
    """

    ids: pa.Array
    first: NDArray[np.int64]
    second: NDArray[np.int64]
    log_odds: NDArray[np.float32]
    sources: NDArray[np.int32] | None
    columns: PairColumns
    kind: str
    n_repeated: int = 0
    n_selves: int = 0

    @property
    def n_records(self) -> int:
        """Number of records."""
        return len(self.ids)


def read_scored_pairs(
    pairs: Any,
    *,
    left: str | None = None,
    right: str | None = None,
    score: str | None = None,
    kind: str | None = None,
    records: Any = None,
    id: str | None = None,  # noqa: A002 - what the command line calls it too
    source: str | None = None,
    pair_sources: tuple[str, str] = SPLINK_SOURCES,
    encoding: str | None = None,
) -> ScoredPairs:
    """Read scored pairs from a table, in any form that `factorwise.io.tables.reading.read_table` accepts.

    left, right, score
        The columns of the two ids and of the score. Columns that are not named are recognised: splink's names
        and other common ones, or the columns of a table with only three. Of these, the score is the column
        with fractions or, if the two others hold texts, with numbers; else it is the last one.
    kind
        "probability", "percent", "bits" or "log-odds"; None to infer it from the name of the column or from
        its values.
    records, id, source
        A table of all records, so that records without a pair are included, its column of ids, and its column
        of sources.
    pair_sources
        Columns of the pairs that hold the sources of their records, if they exist; splink's by default.
    encoding
        Encoding of delimited files that are not in UTF-8.
    """
    require(kind is None or kind in SCORE_KINDS, "kind", kind, f"one of {some(SCORE_KINDS)}")
    table = read_table(pairs, encoding=encoding)
    if left is None and right is None and score is None:
        score = _score_by_values(table)
    named = recognise_columns(table.column_names, left, right, score)
    kind = kind or recognise_kind(named.score, table.column(named.score))
    log_odds = as_log_odds(table.column(named.score), named.score, kind)
    origins = _sources_of_pairs(table, pair_sources)
    one, two, prefixed = _told_apart(_id_column(table, named.left), _id_column(table, named.right), origins)
    sources = None
    if records is not None:
        ids, sources = _record_ids(records, id, source, prefixed, encoding)
        rows = [_known_rows(side, ids, name) for side, name in ((one, named.left), (two, named.right))]
    else:
        ids, rows = _numbered_ids(one, two)
    if sources is None and origins is not None:
        sources = _sources_of_records(origins, rows, len(ids))
    first, second, scores, repeated, selves = _each_once(rows[0], rows[1], log_odds, len(ids))
    return ScoredPairs(ids, first, second, scores, sources, named, kind, repeated, selves)


def recognise_columns(
    names: Sequence[str], left: str | None = None, right: str | None = None, score: str | None = None
) -> PairColumns:
    """Return the columns of the ids and the score; look for those that are not named."""
    wanted = [name for name in (left, right, score) if name is not None]
    require_columns(wanted, names, "the table of pairs")
    if left is None and right is None:
        left, right = _id_names(names, score)
    if left is None or right is None:
        raise InvalidArgumentError(
            "the two columns with the ids of pairs cannot be told from the others: name both. A table of"
            f" pairs has two ids and a score; the columns here are {', '.join(map(repr, names))}."
        )
    if score is None:
        rest = [name for name in names if name not in (left, right)]
        usual = [name for name in _SCORE_NAMES if name in rest]
        score = usual[0] if usual else rest[0] if len(rest) == 1 else None
    if score is None:
        raise InvalidArgumentError(
            "the column of the scores cannot be told from the table, whose columns are"
            f" {', '.join(map(repr, names))}. Name the column with the scores."
        )
    if len({left, right, score}) < 3:
        raise InvalidArgumentError(
            f"the two ids and the score must be three columns, but are {left!r}, {right!r} and {score!r}."
        )
    return PairColumns(left, right, score)


def _id_names(names: Sequence[str], score: str | None) -> tuple[str | None, str | None]:
    for left, right in _ID_NAMES:
        if left in names and right in names:
            return left, right
    if set(SPLINK_SCORES) & set(names):  # a unique id of another name comes before the compared columns
        ends = [name[:-2] for name in names if name.endswith("_l") and f"{name[:-2]}_r" in names]
        ends = [name for name in ends if name != "source_dataset"]
        if ends:
            return f"{ends[0]}_l", f"{ends[0]}_r"
    rest = [name for name in names if name != score]
    if len(names) == 3:
        return rest[0], rest[1]
    return None, None


def _score_by_values(table: pa.Table) -> str | None:
    """Return which of three columns holds the score, by its values; None if this is not clear."""
    names = table.column_names
    if len(names) != 3 or any(name in names for name in _SCORE_NAMES):
        return None
    for is_score in (pa.types.is_floating, _is_number):
        fitting = [name for name in names if is_score(table.column(name).type)]
        if len(fitting) == 1:
            return str(fitting[0])
    return None


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_decimal(kind))


def recognise_kind(name: str, values: pa.ChunkedArray) -> str:
    """Infer the kind of a score from the name of its column, or from its values."""
    known = _KINDS_BY_NAME.get(name.casefold())
    if known is not None:
        return known
    numbers = _numbers(values, name)
    if "dist" in name.casefold() or "dissim" in name.casefold():
        raise InvalidArgumentError(
            f"column {name!r} seems to hold distances, which are small where records are alike: give scores"
            " that are large there, such as one minus the distance, or say which kind of score it is."
        )
    if ((numbers >= 0.0) & (numbers <= 1.0)).all():
        return PROBABILITY
    if (numbers >= 0.0).all() and (numbers <= 100.0).all():
        raise InvalidArgumentError(
            f"column {name!r} has scores from {numbers.min():g} to {numbers.max():g}, which may be"
            " percentages or match weights: say which kind of score it is, percent, bits or log-odds."
        )
    return BITS


def as_log_odds(values: pa.ChunkedArray, name: str, kind: str) -> NDArray[np.float32]:
    """Convert scores of a kind to natural log odds, clipped to plus or minus `LARGEST`."""
    numbers = _numbers(values, name)
    if kind in (PROBABILITY, PERCENT):
        most = 1.0 if kind == PROBABILITY else 100.0
        odd = np.flatnonzero((numbers < 0.0) | (numbers > most))
        if len(odd):
            raise DataFileError(
                f"column {name!r} has {numbers[odd[0]]:g} in pair {odd[0] + 1}, which is no probability: give"
                f" values from 0 to {most:g}, or say that they are match weights in bits or log odds."
            )
        numbers = numbers / most
        with np.errstate(divide="ignore"):
            numbers = np.log(numbers) - np.log1p(-numbers)
    elif kind == BITS:
        numbers = numbers * math.log(2.0)
    return np.clip(numbers, -LARGEST, LARGEST).astype(np.float32)


def _numbers(values: pa.ChunkedArray, name: str) -> NDArray[np.float64]:
    try:
        numbers = np.asarray(values.cast(pa.float64()).combine_chunks(), dtype=np.float64)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise DataFileError(
            f"column {name!r} has {some(values[:3].to_pylist())}, not all of them numbers: correct the"
            " values, or say which column has the scores (score, on the command line --score)."
        ) from error
    missing = np.flatnonzero(np.isnan(numbers))
    if len(missing):
        raise DataFileError(
            f"column {name!r} has no number in {len(missing):,} pairs, the first of them pair"
            f" {missing[0] + 1}. Fill it in, or take the pairs out."
        )
    return numbers


def _id_column(table: pa.Table, name: str) -> pa.Array:
    ids = table.column(name).combine_chunks()
    if ids.null_count:
        row = int(np.flatnonzero(np.asarray(ids.is_null()))[0]) + 1
        raise DataFileError(f"column {name!r} has no id in pair {row}. Fill it in, or take the pair out.")
    return ids


def _sources_of_pairs(table: pa.Table, columns: tuple[str, str]) -> tuple[pa.Array, pa.Array] | None:
    """Return the sources of both sides, if the table has columns for them and several sources."""
    if not set(columns) <= set(table.column_names):
        return None
    left, right = (table.column(name).combine_chunks().cast(pa.string()) for name in columns)
    if left.null_count or right.null_count:
        return None
    several = pc.count_distinct(pa.concat_arrays([left, right])).as_py() > 1
    return (left, right) if several else None


def _told_apart(
    left: pa.Array, right: pa.Array, sources: tuple[pa.Array, pa.Array] | None
) -> tuple[pa.Array, pa.Array, bool]:
    """Make ids unique, with the source as a prefix if two sources share an id; also return whether so."""
    if sources is None:
        return left, right, False
    ids = pa.concat_arrays([left.cast(pa.string()), right.cast(pa.string())])
    both = pa.table({"id": ids, "source": pa.concat_arrays(list(sources))})
    pairs = both.group_by(["id", "source"]).aggregate([]).num_rows
    if pairs == pc.count_distinct(ids).as_py():
        return left, right, False
    return (*(_prefixed(side, source) for side, source in zip((left, right), sources, strict=True)), True)


def _prefixed(ids: pa.Array, sources: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise(sources.cast(pa.string()), ids.cast(pa.string()), SPLINK_JOINER)


def _record_ids(
    records: Any, column: str | None, source: str | None, prefixed: bool, encoding: str | None
) -> tuple[pa.Array, NDArray[np.int32] | None]:
    """Return the ids of all records, and their sources as numbers if there is such a column."""
    table = read_table(records, encoding=encoding)
    if column is None:
        raise InvalidArgumentError("records need the column of their ids: name it.")
    require_columns([column, *([] if source is None else [source])], table.column_names, "the records")
    if prefixed:
        if source is None:
            raise InvalidArgumentError(
                "several sources of the pairs have the same ids, so the records need the column that says"
                " where each is from: name it."
            )
        names = table.column(source).combine_chunks()
        table = table.set_column(
            table.column_names.index(column), column, _prefixed(table.column(column).combine_chunks(), names)
        )
    ids = ids_of(table, column)
    if source is None:
        return ids, None
    coded = table.column(source).combine_chunks().dictionary_encode()
    if coded.null_count:
        row = int(np.flatnonzero(np.asarray(coded.is_null()))[0]) + 1
        raise DataFileError(f"column {source!r} does not say where record {row} is from. Fill it in.")
    return ids, np.asarray(coded.indices, dtype=np.int32)


def _known_rows(side: pa.Array, ids: pa.Array, name: str) -> NDArray[np.int64]:
    rows = rows_of(side, ids)
    missing = np.flatnonzero(rows < 0)
    if len(missing):
        raise DataFileError(
            f"column {name!r} of the pairs has {len(missing):,} ids that no record has, the first of them"
            f" {side[int(missing[0])].as_py()!r} in pair {missing[0] + 1}; ids of records are such as"
            f" {some(ids[:3].to_pylist())}. Check the column of ids, or give all records."
        )
    return rows


def _numbered_ids(left: pa.Array, right: pa.Array) -> tuple[pa.Array, list[NDArray[np.int64]]]:
    """Return the distinct ids in order of appearance, and the rows of both sides."""
    for side in (left, right):
        if pa.types.is_nested(side.type):
            raise DataFileError(f"ids are texts or numbers, but a column of ids is of {side.type}.")
    if left.type != right.type:
        left, right = left.cast(pa.string()), right.cast(pa.string())
    coded = pa.concat_arrays([left, right]).dictionary_encode()
    rows = np.asarray(coded.indices, dtype=np.int64)
    return coded.dictionary, [rows[: len(left)], rows[len(left) :]]


def _sources_of_records(
    sources: tuple[pa.Array, pa.Array], rows: Sequence[NDArray[np.int64]], n: int
) -> NDArray[np.int32] | None:
    """Return the source of each record; None if a record is not in any pair."""
    numbers = np.asarray(pa.concat_arrays(list(sources)).dictionary_encode().indices, dtype=np.int32)
    found = np.full(n, -1, np.int32)
    found[np.concatenate(list(rows))] = numbers
    return None if (found < 0).any() else found


def _each_once(
    left: NDArray[np.int64], right: NDArray[np.int64], scores: NDArray[np.float32], n: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32], int, int]:
    """Return unique pairs, sorted, with their highest score; also count repeated and self pairs."""
    differ = left != right
    low, high = np.minimum(left, right)[differ], np.maximum(left, right)[differ]
    key, scores = low * n + high, scores[differ]
    order = np.argsort(key, kind="stable")
    key, scores = key[order], scores[order]
    new = np.ones(len(key), np.bool_)
    new[1:] = key[1:] != key[:-1]
    start = np.flatnonzero(new)
    best = np.maximum.reduceat(scores, start) if len(start) else scores
    key = key[start]
    return key // n, key % n, best, len(scores) - len(start), int((~differ).sum())
