"""Tables as the verbs of ``factorwise resolve`` take and give them: read, checked at once, written whole."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
import numpy as np
from numpy.typing import NDArray

from factorwise.cli.files import check_different, check_target, reading, speaking_of
from factorwise.cli.samplerank_options import Names
from factorwise.errors import DataFileError

if TYPE_CHECKING:  # Arrow takes its time to load: help, and mistakes in options, do not wait for it
    import pyarrow as pa

    from factorwise.apps.resolution.schema.fields import FieldSpec

F = TypeVar("F", bound=Callable[..., Any])

SCORE_KINDS = ("probability", "percent", "bits", "log-odds")
PAIR_COLUMNS = ("id", "other")  # of a file with pairs that has more than two columns


@dataclass(frozen=True, slots=True, eq=False)
class Records:
    """Records from one file or several.

    name
        Of the file or files, for messages.
    origin
        The same without folders, users and hosts, for what is kept.
    ids
        The id of each record.
    sources
        The number of each record's source, from 0 on; None where none is known.
    leave_out
        Columns that are not compared, that of the ids first.
    """

    name: str
    origin: str
    table: pa.Table
    ids: pa.Array
    sources: NDArray[np.int32] | None
    leave_out: tuple[str, ...]

    @property
    def content(self) -> pa.Table:
        """Return what records say: all columns but those of the ids and of scores of pairs."""
        return without_scores(self.table.drop_columns(self.leave_out[0]))


def record_options(function: F) -> F:
    """Add the options that say how records are read."""
    decorators = (
        click.option("--id", "id_column", required=True, metavar="COLUMN", help="Column with the ids."),
        click.option(
            "--source",
            metavar="COLUMN",
            help="Column that says where a record is from; it is not compared.  [default: of several files,"
            " the file]",
        ),
        click.option(
            "--ignore",
            type=Names(),
            multiple=True,
            metavar="COLUMN,...",
            help="Columns that are not compared; may be given several times.",
        ),
        click.option(
            "--prefix-ids", is_flag=True, help="Of several files, put the file's name before each id."
        ),
        click.option("--encoding", metavar="NAME", help="Of CSV files that are not in UTF-8, as cp1252."),
    )
    for decorator in reversed(decorators):
        function = decorator(function)
    return function


def score_options(function: F) -> F:
    """Add the options that say where pairs are that another tool has scored."""
    decorators = (
        click.option(
            "--scores",
            metavar="FILE",
            help="Pairs that another tool has scored, one more comparison: two ids and a score in every row.",
        ),
        click.option(
            "--score-column",
            metavar="COLUMN",
            help="Column of --scores with the score.  [default: recognised]",
        ),
        click.option(
            "--score-kind",
            type=click.Choice(SCORE_KINDS),
            help="What a score of --scores is: a probability, one in percent, a match weight in bits, or the"
            " natural logarithm of the odds.  [default: recognised]",
        ),
    )
    for decorator in reversed(decorators):
        function = decorator(function)
    return function


rule_option = click.option(
    "--rule",
    multiple=True,
    metavar="TEXT",
    help="A blocking rule, such as 'last name of author + year of born': records that agree in all its parts"
    " are compared; may be given several times.  [default: those of the model, or chosen ones]",
)


one_per_source_option = click.option(
    "--one-per-source", is_flag=True, help="No source has two records of an entity."
)


def check_sources(one_per_source: bool, source: str | None, files: Sequence[str]) -> None:
    """Refuse ``--one-per-source`` where nothing says what the sources are."""
    if one_per_source and source is None and len(files) == 1:
        raise click.UsageError(
            "--one-per-source needs to know the sources: give several files, or --source COLUMN."
        )


def read_records(
    paths: Sequence[str],
    *,
    id_column: str,
    source: str | None,
    ignore: Sequence[Sequence[str]],
    prefix_ids: bool,
    encoding: str | None,
    hidden: Sequence[str] = (),
    most: int | None = None,
    **scored: str | None,
) -> Records:
    """Read one file, or several under one another.

    hidden
        Further columns that must be there and are not compared.
    most
        Bytes that each file may take in memory; see `read_table`.
    scored
        A file of pairs that another tool has scored, and how it is read: what `with_scores` takes.
    """
    from factorwise.io.models.provenance import public_name
    from factorwise.io.tables.names import require_columns
    from factorwise.io.tables.reading import SOURCE_COLUMN, ids_of, stack_tables

    if prefix_ids and len(paths) == 1:
        raise click.UsageError("--prefix-ids is for several files, but one was given.")
    tables = []
    for path, name in zip(paths, _names(paths), strict=True):
        table = given_table(path, encoding=encoding, most=most)
        require_columns([id_column], table.column_names, path)
        tables.append((name, table))
    name, origin = _together(paths), _together(list(map(public_name, paths)))
    several = len(tables) > 1
    with speaking_of(name):
        if several:
            prefixed = id_column if prefix_ids else None
            table = stack_tables(tables, id_column=prefixed, prefix_ids=prefix_ids)
        else:
            table = tables[0][1]
        try:
            ids = ids_of(table, id_column)
        except DataFileError as error:
            hint = " If files have ids in common, give --prefix-ids." if several and not prefix_ids else ""
            raise DataFileError(f"{error}{hint}") from None
    own = [SOURCE_COLUMN] if several else []
    asked = [*([] if source is None else [source]), *(name for names in ignore for name in names), *hidden]
    require_columns(asked, table.column_names, name)
    column = source or (SOURCE_COLUMN if several else None)
    sources = None if column is None else numbered_sources(table.column(column), column, name)
    leave_out = tuple(dict.fromkeys([id_column, *own, *asked]))
    table = with_scores(table, id_column, encoding, **scored)
    return Records(name, origin, table, ids, sources, leave_out)


def with_scores(
    table: pa.Table,
    id_column: str,
    encoding: str | None,
    *,
    scores: str | None = None,
    score_column: str | None = None,
    score_kind: str | None = None,
) -> pa.Table:
    """Return records with a column of the scores of their pairs, if there is a file of them."""
    if scores is None:
        if score_column is not None or score_kind is not None:
            raise click.UsageError(
                "--score-column and --score-kind say how --scores FILE is read: give it, too."
            )
        return table
    from factorwise.apps.resolution.pair_scores import add_pair_scores
    from factorwise.apps.resolution.scored_pairs.tables import read_scored_pairs

    pairs = given_table(scores, encoding=encoding)
    with speaking_of(scores):
        scored = read_scored_pairs(pairs, score=score_column, kind=score_kind)
        return add_pair_scores(table, scored, id_column)


def without_scores(table: pa.Table) -> pa.Table:
    """Return a table without the column that `with_scores` adds."""
    from factorwise.apps.resolution.pair_scores import is_pair_scores

    return table.drop_columns([field.name for field in table.schema if is_pair_scores(field.type)])


def given_table(
    path: str,
    columns: Sequence[str] | None = None,
    encoding: str | None = None,
    *,
    may_be_empty: bool = False,
    most: int | None = None,
) -> pa.Table:
    """Read a table from a file."""
    from factorwise.io.tables.reading import read_table

    with reading(path):
        return read_table(path, columns=columns, encoding=encoding, may_be_empty=may_be_empty, most=most)


def given_fields(path: Path | None, records: Records) -> list[FieldSpec] | None:
    """Read the kinds of fields from a TOML file; None if there is none."""
    if path is None:
        return None
    from factorwise.apps.resolution.schema.fields import read_fields

    with reading(str(path)):
        fields = read_fields(path, records.table.column_names)
    for field in fields:
        if field.name in records.leave_out and field.kind not in ("ignore", "source"):
            raise DataFileError(
                f"{path}: column {field.name!r} is not compared, because it was named as the column of ids,"
                " sources or entities, or with --ignore. Take it out of the file, or make its kind 'ignore'."
            )
    return fields


def given_pairs(path: str | None, ids: pa.Array, encoding: str | None = None) -> NDArray[np.int64]:
    """Read pairs of ids and return the rows of their records, int64[pairs, 2]; none without a file."""
    if path is None:
        return np.zeros((0, 2), np.int64)
    import pyarrow as pa

    from factorwise.io.tables.ids import rows_of, rows_of_pairs
    from factorwise.io.tables.names import require_columns

    table = given_table(path, encoding=encoding, may_be_empty=True)
    names = table.column_names
    if len(names) != 2:
        require_columns(PAIR_COLUMNS, names, path)
        names = list(PAIR_COLUMNS)
    known = ids.cast(pa.string())
    if rows_of(pa.array(names), known).min() >= 0:
        raise DataFileError(
            f"{path}: the names of its columns, {names[0]!r} and {names[1]!r}, are ids of records: a line"
            " with the names of the two columns must come first."
        )
    rows = np.stack([rows_of_pairs(table.column(name), known, f"{path}, {name!r}") for name in names], axis=1)
    same = np.flatnonzero(rows[:, 0] == rows[:, 1])
    if len(same):
        again = ids[int(rows[same[0], 0])].as_py()
        raise DataFileError(
            f"{path}, pair {same[0] + 1}: {again!r} is paired with itself. Take the pair out."
        )
    return rows


def row_of(identity: str, records: Records) -> int:
    """Return the row of the record with an id."""
    import difflib

    import pyarrow as pa

    from factorwise.io.tables.ids import rows_of

    row = int(rows_of(pa.array([identity]), records.ids)[0])
    if row < 0:
        some = records.ids.slice(0, 100_000).cast(pa.string()).to_pylist()
        close = difflib.get_close_matches(identity, some, n=1)
        guess = f" Did you mean {close[0]!r}?" if close else f" The first id is {some[0]!r}."
        raise DataFileError(f"{records.name}: no record has the id {identity!r}.{guess}")
    return row


def check_outputs(targets: Mapping[str, Path | None], *inputs: str | Path | None) -> None:
    """Refuse files that could not be written, are inputs, or are the same, before work is spent on them.

    targets
        The file of each option; None where it was not given.
    """
    check_different(targets)
    for option, path in targets.items():
        if path is not None:
            check_target(option, path, *inputs)


def _together(names: Sequence[str]) -> str:
    return " and ".join(names) if len(names) < 3 else f"{names[0]} and {len(names) - 1} more"


def _names(paths: Sequence[str]) -> list[str]:
    """Name files by their names without ending, or with it, or in full, as it needs to tell them apart."""
    tables = [Path(path.rpartition("::")[2]) for path in paths]
    for names in ([one.name.partition(".")[0] for one in tables], [one.name for one in tables], list(paths)):
        if len(set(names)) == len(paths):
            return names
    twice = next(path for path in paths if list(paths).count(path) > 1)
    raise click.UsageError(f"{twice!r} is given twice: give every file once.")


def numbered_sources(values: pa.ChunkedArray, column: str, name: str) -> NDArray[np.int32]:
    """Number the sources of records, which a column of some file says."""
    coded = values.combine_chunks().dictionary_encode()
    if coded.null_count:
        row = int(np.flatnonzero(np.asarray(coded.is_null()))[0]) + 1
        raise DataFileError(
            f"{name}: column {column!r} does not say where {coded.null_count} records are from, the first of"
            f" them record {row}. Fill it in, or name another column."
        )
    return np.asarray(coded.indices, dtype=np.int32)
