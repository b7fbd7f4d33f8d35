"""``factorwise resolve export``: tables of a store written to files."""

from __future__ import annotations

from pathlib import Path

import click

from factorwise.cli.files import check_target, spreadsheet_option, write_output
from factorwise.cli.numbers import Whole
from factorwise.cli.options import Options, path_option, verb
from factorwise.cli.output import emit

TABLES = ("members", "records", "entities", "entity_history", "answers")
#: By what rows are sorted, so that they come in the same order from any number of threads.
ORDERS = {
    "entities": " ORDER BY entity",
    "entity_history": " ORDER BY change, entity, event DESC, other",
    "answers": " ORDER BY decision, part, id",
}


@verb(example="factorwise resolve export people.duckdb -o entities.csv --draws 20")
@click.argument("store", metavar="STORE")
@path_option("-o", "--output", required=True, metavar="OUT", help="What is written.")
@click.option(
    "--table",
    type=click.Choice(TABLES),
    default="members",
    help="Which view: the entity of every record, records with all columns, entities, changes, or decisions.",
)
@click.option(
    "--draws", type=Whole(min=1, most=1_000), help="Write so many clusterings of the posterior, too."
)
@spreadsheet_option
def command(
    options: Options, store: str, output: Path, table: str, draws: int | None, for_spreadsheets: bool
) -> None:
    """Write a table of STORE in the format of the ending of OUT (.csv, .parquet, .jsonl).

    With --draws the columns draw_1, draw_2, ... have the entity of each record in other clusterings that the
    model thinks probable; decisions hold in all of them. Repeat an analysis over them to see how much of its
    result depends on what is uncertain.
    """
    if draws is not None and table != "members":
        raise click.UsageError("--draws is for the members: leave --table away.")
    check_target("--output", output, store)
    from factorwise.io.tables.formats import written_format
    from factorwise.store import Store

    written_format(output)  # refuses an unknown ending before any work

    with Store.open(store, read_only=True) as opened:
        if table == "members":
            query = (
                "SELECT r.id, m.entity, b.source, r.batch FROM record_ids r JOIN batches b USING (batch)"
                " LEFT JOIN membership m USING (record) ORDER BY r.record"
            )
        else:
            query = f"SELECT * FROM {table}{ORDERS.get(table, '')}"
        written = opened.query(query)
        if draws is not None:
            from factorwise.apps.resolution.curation.curator import Curator

            clusterings = Curator(opened, random_state=options.seed, n_jobs=options.threads).draws(draws)
            for number, labels in enumerate(clusterings, 1):
                written = written.append_column(f"draw_{number}", [labels])
    write_output(output, written, for_spreadsheets=for_spreadsheets)
    document = {"output": output.name, "rows": written.num_rows, "columns": written.column_names}
    emit(document, [f"{written.num_rows:,} rows in {output.name}"], as_json=options.json)
