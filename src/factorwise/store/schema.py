"""The tables of a store, its views for SQL users, and the migration of older files.

==================  =========================================================================================
view                one row for
==================  =========================================================================================
``entities``        every entity that exists: its id, number of records, when it was made and last changed
``members``         every record: its id, source, batch and entity
``records``         every record with all its columns, its source, batch and entity
``entity_history``  every entity that a change made or ended, or that gave or received records, and why
``answers``         every record that a decision speaks of: which part it is in, who decided, and when
==================  =========================================================================================

Times are UTC. The tables behind the views may change from version to version; the views remain.
"""

from __future__ import annotations

import duckdb

VERSION = 1
PURPOSE = "factorwise store"

TABLES = """
CREATE TABLE facts(name VARCHAR PRIMARY KEY, value VARCHAR NOT NULL);
CREATE TABLE runs(run BIGINT, command VARCHAR, settings VARCHAR, version VARCHAR, started TIMESTAMP,
    ended TIMESTAMP, outcome VARCHAR);
CREATE TABLE batches(batch BIGINT, source VARCHAR, run BIGINT, added TIMESTAMP);
CREATE TABLE value_columns(position INTEGER, name VARCHAR);
CREATE TABLE record_ids(record BIGINT, id VARCHAR, batch BIGINT);
CREATE TABLE record_values(record BIGINT);
CREATE TABLE membership(record BIGINT, entity BIGINT);
CREATE TABLE changes(change BIGINT, made TIMESTAMP, cause VARCHAR, run BIGINT, decision BIGINT, who VARCHAR,
    undoes BIGINT);
CREATE TABLE moves(change BIGINT, record BIGINT, before BIGINT, after BIGINT);
CREATE TABLE decisions(decision BIGINT, made TIMESTAMP, who VARCHAR, answer VARCHAR, why VARCHAR,
    asked VARCHAR, probability DOUBLE, withdrawn TIMESTAMP);
CREATE TABLE decision_records(decision BIGINT, record BIGINT, part INTEGER, context BOOLEAN);
CREATE TABLE models(model BIGINT, made TIMESTAMP, run BIGINT, content BLOB, provenance VARCHAR);
CREATE TABLE links(first BIGINT, second BIGINT, levels BLOB);
CREATE TABLE block_keys(rule INTEGER, key UBIGINT, record BIGINT);
CREATE TABLE value_counts(form INTEGER, value UBIGINT, rows BIGINT);
"""

VIEWS = """
CREATE OR REPLACE VIEW members AS
SELECT r.id, b.source, r.batch, m.entity
FROM record_ids r JOIN batches b USING (batch) LEFT JOIN membership m USING (record);
CREATE OR REPLACE VIEW entities AS
SELECT m.entity, count(*) AS records, any_value(t.made) AS made, any_value(t.changed) AS changed
FROM membership m LEFT JOIN (
    SELECT entity, min(c.made) AS made, max(c.made) AS changed
    FROM (SELECT change, before AS entity FROM moves UNION SELECT change, after FROM moves)
    JOIN changes c USING (change)
    WHERE entity IS NOT NULL GROUP BY entity
) t USING (entity) GROUP BY m.entity;
CREATE OR REPLACE VIEW entity_history AS
WITH flows AS (
    SELECT change, before, after, count(*) AS records FROM moves GROUP BY ALL
), events AS (
    SELECT change, after AS entity, before AS other, 'received' AS event, records FROM flows
    WHERE after IS NOT NULL
    UNION ALL
    SELECT change, before, after, 'gave', records FROM flows WHERE before IS NOT NULL
)
SELECT e.entity, c.made, c.change, e.event, e.other, e.records, c.cause, c.who, c.run, c.decision, c.undoes
FROM events e JOIN changes c USING (change);
CREATE OR REPLACE VIEW answers AS
SELECT d.decision, d.made, d.who, d.answer, d.why, r.id, p.part, p.context, d.withdrawn
FROM decisions d JOIN decision_records p USING (decision) JOIN record_ids r USING (record);
"""

#: SQL that migrates a store from the given version to the next; all steps run in one transaction.
MIGRATIONS: dict[int, str] = {}


def create_schema(connection: duckdb.DuckDBPyConnection) -> None:
    """Create the tables and views of an empty store."""
    connection.execute(TABLES)
    facts = [("purpose", PURPOSE), ("schema version", str(VERSION))]
    connection.executemany("INSERT INTO facts VALUES (?, ?)", facts)
    create_views(connection)


def create_views(connection: duckdb.DuckDBPyConnection) -> None:
    """Create the views, including one with the current columns of the records."""
    connection.execute(VIEWS)
    columns = connection.execute("SELECT position, name FROM value_columns ORDER BY position").fetchall()
    taken = {"entity", "source", "batch"}
    named = "".join(f", v.c{position} AS {_quoted(_free(name, taken))}" for position, name in columns)
    connection.execute(
        f"CREATE OR REPLACE VIEW records AS SELECT m.entity, b.source, r.batch{named} FROM record_ids r"
        " JOIN batches b USING (batch) JOIN record_values v USING (record)"
        " LEFT JOIN membership m USING (record)"
    )


def migrate(connection: duckdb.DuckDBPyConnection, version: int) -> None:
    """Migrate a store of an older version to this one; call it inside a transaction."""
    for step in range(version, VERSION):
        connection.execute(MIGRATIONS[step])
    connection.execute("UPDATE facts SET value = ? WHERE name = 'schema version'", [str(VERSION)])
    create_views(connection)


def _free(name: str, taken: set[str]) -> str:
    """Return a column name that is unique in the view, ignoring case, and add it to ``taken``."""
    name = name or "unnamed"
    while name.lower() in taken:
        name += "_given"
    taken.add(name.lower())
    return name


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
