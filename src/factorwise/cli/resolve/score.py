"""``factorwise resolve score``: compare the entities found with the true ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import click
import numpy as np
from numpy.typing import NDArray

from factorwise.cli.files import reading_utf8
from factorwise.cli.options import Options, verb
from factorwise.cli.output import aligned, emit, notice
from factorwise.cli.resolve.data import given_table
from factorwise.errors import DataFileError
from factorwise.metrics.clustering import Contingency, Tally, tally_b_cubed, tally_pairwise

if TYPE_CHECKING:  # Arrow takes its time to load: help, and mistakes in options, do not wait for it
    import pyarrow as pa

METRICS = {
    "pairwise": "pairwise",
    "b_cubed": "B-cubed",
    "ceaf_e": "CEAF-e",
    "ceaf_m": "CEAF-m",
    "cluster": "cluster",
}
LARGEST_TANGLE = 100_000  # clusters that overlap each other, directly or not, for which CEAF is still matched


@verb(example="factorwise resolve score entities.csv --truth labelled.csv --id id --entity person --json")
@click.argument("file", metavar="OUT")
@click.option(
    "--truth",
    required=True,
    multiple=True,
    metavar="LABELLED",
    help="Records with their true entities; may be given several times.",
)
@click.option("--id", "id_column", required=True, metavar="COLUMN", help="Column of LABELLED with the ids.")
@click.option("--entity", required=True, metavar="COLUMN", help="Column of LABELLED with the true entity.")
@click.option("--encoding", metavar="NAME", help="Of CSV files that are not in UTF-8, as cp1252.")
def command(
    options: Options, file: str, truth: tuple[str, ...], id_column: str, entity: str, encoding: str | None
) -> None:
    """Score the entities in OUT, as `resolve apply` writes it, against the true ones in LABELLED.

    Records are matched by id, as text. Those that only one of the files has, and those whose true entity is
    not known, are counted and left out. Precision, recall and F1 are of pairs of records (pairwise), of the
    records (B-cubed), of the best one-to-one matching of entities by their overlap (CEAF-e) or by the records
    they share (CEAF-m), and of entities that are found exactly (cluster).
    """
    with reading_utf8(file):
        found = given_table(file, ["id", "entity"])
    known, name = _truth(truth, [id_column, entity], encoding), " and ".join(truth)
    both = joined(file, found, name, known.rename_columns(["id", "entity"]), (id_column, entity))
    for count, text in (
        (both.without_truth, f"records of {file} have no true entity in {name}"),
        (both.not_found, f"records of {name} with a true entity are not in {file}"),
    ):
        if count:
            notice(options, f"{count:,} {text}: they are not scored.")
    table = Contingency.of(both.truth, both.found)
    scores = scored(table)
    if scores["ceaf_e"] is None:
        notice(options, "CEAF is left out: too many clusters overlap each other to match them.")
    document = {
        "file": file,
        "records": table.items,
        "true_entities": len(table.true_size),
        "found_entities": len(table.predicted_size),
        "without_truth": both.without_truth,
        "not_found": both.not_found,
        "scores": scores,
    }
    emit(document, _lines(document), as_json=options.json)


def _truth(paths: tuple[str, ...], columns: list[str], encoding: str | None) -> pa.Table:
    """Read the true entities, of several files one under another, as texts."""
    import pyarrow as pa

    tables = [given_table(path, columns, encoding) for path in paths]
    if len(tables) == 1:
        return tables[0]
    texts = pa.schema([(name, pa.string()) for name in columns])
    return pa.concat_tables([table.cast(texts) for table in tables])


class Joined(NamedTuple):
    """Entities of the records that both files have, as numbers, and how many are in one file only."""

    truth: NDArray[np.int64]
    found: NDArray[np.int64]
    without_truth: int
    not_found: int


def joined(
    file: str, found: pa.Table, truth: str, known: pa.Table, columns: tuple[str, str] = ("id", "entity")
) -> Joined:
    """Match the records of two tables with the columns id and entity by the texts of their ids.

    columns
        What those of the truth are called in its file.
    """
    rows = _matched(file, found, truth, known, columns[0])
    labels = _numbered(known.column("entity"))
    entity = _numbered(found.column("entity"))
    if (entity < 0).any():
        row = int(np.flatnonzero(entity < 0)[0]) + 1
        raise DataFileError(f"{file}, record {row}: has no entity. Give the file that `resolve apply` wrote.")
    true = np.where(rows >= 0, labels[rows], -1)
    both = true >= 0
    if not both.any():
        here, there = (one.column("id")[0].as_py() for one in (found, known))
        raise DataFileError(
            f"{file} and {truth} have no record in common whose true entity is known: their ids are such as"
            f" {here!r} and {there!r}. Check --id and the files."
        )
    with_truth = int((labels >= 0).sum())
    return Joined(true[both], entity[both], len(found) - int(both.sum()), with_truth - int(both.sum()))


def scored(table: Contingency) -> dict[str, dict[str, float] | None]:
    """Return precision, recall and F1 of all metrics; None for one that would take too long."""
    tallies = {"pairwise": tally_pairwise(table), "b_cubed": tally_b_cubed(table), **ceaf(table)}
    tallies["cluster"] = tally_equal(table)
    return {name: None if one is None else one.score._asdict() for name, one in tallies.items()}


def tally_equal(table: Contingency) -> Tally:
    """Tally of the clusters that are found exactly as they are."""
    whole = table.shared == table.true_size[table.true]
    equal = int((whole & (table.shared == table.predicted_size[table.predicted])).sum())
    return Tally(equal, len(table.predicted_size), equal, len(table.true_size))


def ceaf(table: Contingency) -> dict[str, Tally | None]:
    """Tallies of CEAF by overlap and by records; None where too many clusters would have to be matched."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    from factorwise.metrics.coreference import tally_ceaf_e, tally_ceaf_m

    n_true = len(table.true_size)
    n = n_true + len(table.predicted_size)
    ends = (table.true, table.predicted + n_true)
    graph = csr_array((np.ones(len(table.shared), bool), ends), shape=(n, n))
    largest = int(np.bincount(connected_components(graph, directed=False)[1]).max())
    if largest > LARGEST_TANGLE:
        return {"ceaf_e": None, "ceaf_m": None}
    return {"ceaf_e": tally_ceaf_e(table), "ceaf_m": tally_ceaf_m(table)}


def _matched(file: str, found: pa.Table, truth: str, known: pa.Table, column: str) -> NDArray[np.int64]:
    """Return the row of the truth of each record that was found, -1 for none; ids must stand once."""
    there = known.column("id").combine_chunks()
    from factorwise.io.tables.ids import rows_of

    rows = rows_of(found.column("id"), there)
    # one look-up tells whether ids are repeated, without coding millions of them anew
    if there.null_count or (rows_of(there, there) != np.arange(len(there))).any():
        _check_ids(truth, known, column)
    if found.column("id").null_count or (np.bincount(rows[rows >= 0]) > 1).any():
        _check_ids(file, found, "id")
    return rows


def _check_ids(path: str, table: pa.Table, column: str) -> None:
    """Tell which ids are missing or repeated."""
    from factorwise.io.tables.reading import ids_of

    try:
        ids_of(table, "id")
    except DataFileError as error:
        raise DataFileError(f"{path}: {str(error).replace(repr('id'), repr(column), 1)}") from None


def _numbered(column: pa.ChunkedArray) -> NDArray[np.int64]:
    """Number the values of a column; -1 where there is none."""
    coded = column.combine_chunks().dictionary_encode()
    return np.asarray(coded.indices.fill_null(-1), dtype=np.int64)


def _lines(document: Mapping[str, Any]) -> Iterator[str]:
    sizes = (
        f"{document['records']:,} records, {document['true_entities']:,} true entities,"
        f" {document['found_entities']:,} found"
    )
    left = [
        f"{document[name]:,} {text}"
        for name, text in (("without_truth", "without truth"), ("not_found", "not found"))
        if document[name]
    ]
    yield f"{document['file']}  ({'; '.join([sizes, *left])})"
    rows: list[tuple[str, ...]] = [("metric", "precision", "recall", "F1")]
    for name, title in METRICS.items():
        one = document["scores"][name]
        figures = [one[part] for part in ("precision", "recall", "f1")] if one else []
        rows.append((title, *(f"{value:.4f}" for value in figures)) if one else (title, "-", "-", "-"))
    yield from aligned(rows)
