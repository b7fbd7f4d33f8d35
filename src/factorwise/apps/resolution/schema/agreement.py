"""Check that columns have the declared kinds, and the columns that a resolver was trained on."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from factorwise.apps.resolution.normalize.normal_forms import normal_forms
from factorwise.apps.resolution.schema.fields import KINDS, FieldSpec
from factorwise.errors import InvalidArgumentError
from factorwise.io.listing import some
from factorwise.types import Bools, Ints

SAMPLE = 1_000  # values that are sampled from each column
MANY_UNREAD = 0.1  # least share of unreadable values of a column for a warning
FEWEST = 5  # least number of values, all unreadable, for an error
_LISTED = 8  # most columns that an error message lists
#: Kinds that a numeric column cannot have.
_OF_LETTERS = {"name", "email", "address", "list", "vector", "scores"}


def check_columns(table: pa.Table, fields: Sequence[FieldSpec], hidden: Collection[str] = ()) -> None:
    """Raise an error if records lack columns or columns are of other kinds; it lists all differences.

    hidden
        Columns that are not compared, such as the column of ids.
    """
    check_present(table, fields, hidden)
    compared = [field for field in fields if field.kind != "ignore"]
    _check_kinds(
        table, compared, "Give the columns what they held when the model was learned, or use another model."
    )


def check_present(table: pa.Table, fields: Sequence[FieldSpec], hidden: Collection[str] = ()) -> None:
    """Raise an error if records lack compared columns; ``hidden`` is as in `check_columns`."""
    compared = [field for field in fields if field.kind != "ignore"]
    missing = [field.name for field in compared if field.name not in table.column_names]
    if missing:
        are = "are no columns" if len(missing) > 1 else "is no column"
        extra = extra_columns(table, fields, hidden)
        scored = any(field.kind == "scores" and field.name in missing for field in compared)
        hint = (
            " Scores of pairs are given with --scores FILE, in Python by add_pair_scores." if scored else ""
        )
        others = f" Columns that the model does not know: {some(extra, _LISTED)}." if extra else ""
        raise InvalidArgumentError(
            f"there {are} {some(missing, _LISTED)}, which {'are' if len(missing) > 1 else 'is'} to be"
            f" compared; there are {', '.join(table.column_names)}.{others}{hint} Rename columns as they"
            " were when the model was learned, add them, empty if the values are not known, or use another"
            " model."
        )


def check_named(table: pa.Table, columns: Sequence[str]) -> None:
    """Raise an error if the records do not have one of these columns."""
    unknown = [name for name in columns if name not in table.column_names]
    if unknown:
        raise InvalidArgumentError(
            f"there is no column {unknown[0]!r}; there are {', '.join(table.column_names)}."
        )


def check_sources_meet(table: pa.Table, columns: Sequence[str], sources: Ints) -> None:
    """Raise an error if a source shares no column with values with any other source."""
    n_sources = int(sources.max(initial=0)) + 1
    if n_sources < 2:
        return
    filled = np.zeros((len(columns), n_sources), bool)
    for place, name in enumerate(columns):
        if name in table.column_names:
            filled[place, np.unique(sources[_is_filled(table.column(name))])] = True
    shared = filled & (filled.sum(axis=1) > 1)[:, None]
    counts = np.bincount(sources, minlength=n_sources)
    there = counts >= (1 if n_sources == 2 else FEWEST)  # of many, a small one may have empty records
    apart = np.flatnonzero(there & ~shared.any(axis=0))
    if not len(apart):
        return
    mine = [name for name, has in zip(columns, filled[:, apart[0]], strict=True) if has]
    others = np.delete(filled, apart[0], axis=1)
    theirs = [name for name, has in zip(columns, others, strict=True) if has.any()]
    row = int(np.flatnonzero(sources == apart[0])[0]) + 1
    raise InvalidArgumentError(
        f"the source of record {row} has no column in common with any other: it has"
        f" {some(mine, _LISTED) or 'no values'}, others have {some(theirs, _LISTED) or 'no values'}. Give"
        " columns that say the same the same name, or resolve each source by itself."
    )


def _is_filled(column: pa.ChunkedArray) -> Bools:
    """Return which rows of a column have a value other than an empty text."""
    filled = np.asarray(column.is_valid())
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        filled = filled & np.asarray(pc.not_equal(column, "").fill_null(False))
    return np.asarray(filled, bool)


def check_declared(table: pa.Table, fields: Sequence[FieldSpec]) -> None:
    """Raise an error if columns do not have the kinds that were declared for them."""
    there = [field for field in fields if field.kind != "ignore" and field.name in table.column_names]
    _check_kinds(table, there, "Declare another kind, or give the columns such values.")


def _check_kinds(table: pa.Table, fields: Sequence[FieldSpec], remedy: str) -> None:
    wrong = [text for field in fields if (text := _mismatch(table.column(field.name), field))]
    if wrong:
        raise InvalidArgumentError(f"{'; '.join(wrong)}. {remedy}")


def extra_columns(table: pa.Table, fields: Sequence[FieldSpec], hidden: Collection[str] = ()) -> list[str]:
    """Return the columns that are neither hidden nor fields of the resolver."""
    known = {*hidden, *(field.name for field in fields)}
    return [name for name in table.column_names if name not in known]


def _mismatch(column: pa.ChunkedArray, field: FieldSpec) -> str:
    """Return how a column differs from what is expected of it; empty if it does not."""
    if column.null_count == len(column):  # a column without values fits every kind, whatever its type
        return ""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    nested = pa.types.is_nested(column.type)
    expected = f"column {field.name!r} is to hold {KINDS[field.kind]} (kind {field.kind})"
    if (nested and field.kind not in ("list", "vector", "scores")) or (
        _is_number(column.type) and field.kind in _OF_LETTERS
    ):
        return f"{expected}, but its type is {column.type}"
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return ""
    sample, there, unread = _sample_unread(column, field)
    if there.sum() < FEWEST or (there & ~unread).any():
        return ""
    return f"{expected}, but holds text that is none, such as {sample[int(there.argmax())].as_py()!r}"


def describe_unread_values(table: pa.Table, fields: Sequence[FieldSpec]) -> list[str]:
    """Return warnings for columns of dates and numbers in which many values cannot be read."""
    texts = []
    for field in fields:
        if field.kind not in ("date", "number") or field.name not in table.column_names:
            continue
        column = table.column(field.name)
        if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
            continue
        sample, there, unread = _sample_unread(column, field)
        share = float(unread.sum()) / max(int(there.sum()), 1)
        if there.sum() >= FEWEST and share >= MANY_UNREAD:
            texts.append(
                f"{share:.0%} of the values of column {field.name!r} cannot be read as a {field.kind}, such"
                f" as {sample[int(unread.argmax())].as_py()!r}: they count as missing."
            )
    return texts


def _sample_unread(column: pa.ChunkedArray, field: FieldSpec) -> tuple[pa.ChunkedArray, Bools, Bools]:
    """Return a sample of values, which of them are not missing, and which of these cannot be read."""
    rows = np.linspace(0, len(column) - 1, min(len(column), SAMPLE), dtype=np.int64)
    sample = column.take(pa.array(rows)).drop_null()  # evenly spread, as sources may differ
    there = ~normal_forms(sample, FieldSpec(field.name, "category"))["text"].missing
    missing = np.all([form.missing for form in normal_forms(sample, field).values()], axis=0)
    return sample, there, there & missing


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind))
