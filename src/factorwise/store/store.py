"""`Store`: one DuckDB file with records, entities, decisions, models and runs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from factorwise.errors import InvalidArgumentError, StoreError
from factorwise.store.columns import find_places, join_chunks, record_column
from factorwise.store.database import Database
from factorwise.store.entities import NONE, Cause, keep_ids
from factorwise.store.index import IndexTables
from factorwise.store.schema import create_views
from factorwise.types import Ints

SAME, DIFFERENT, UNSURE, ALL_BUT = "same", "different", "unsure", "all but"
ANSWERS = (SAME, DIFFERENT, UNSURE, ALL_BUT)


class Store(Database):
    """Records by batch and source, entities with stable ids and history, decisions, models and runs.

    Records are numbered from 0 in the order in which they were added; their ids are chosen by users. Every
    method that changes data is a transaction, or a part of the one that `transaction` began. When a method
    returns outside of a transaction, its change is on disk.

    Use `create` or `open` to get a store, which is a context manager.
    """

    _counted = (-1, 0)  # a revision, and the number of records at that revision

    @cached_property
    def index(self) -> IndexTables:
        """The index tables: links, blocking keys and value counts."""
        return IndexTables(self)

    def begin_run(self, command: str, settings: Mapping[str, object], version: str) -> int:
        """Record the start of a run, and return its number."""
        with self.transaction():
            run = self._next("runs", "run")
            self.execute(
                "INSERT INTO runs VALUES (?, ?, ?, ?, ?, NULL, NULL)",
                [run, command, json.dumps(settings, default=str), version, _now()],
            )
        return run

    def end_run(self, run: int, outcome: str = "done") -> None:
        """Record the end of a run."""
        with self.transaction():
            self.execute("UPDATE runs SET ended = ?, outcome = ? WHERE run = ?", [_now(), outcome, run])

    def add_model(
        self,
        content: bytes,
        provenance: Mapping[str, object],
        run: int | None = None,
        *,
        in_place_of: int | None = None,
    ) -> int:
        """Store a model file, and return its number; the model with the highest number is the current one.

        in_place_of
            Number of a stored model that is replaced.
        """
        with self.transaction():
            if in_place_of is not None:
                self.execute("DELETE FROM models WHERE model = ?", [in_place_of])
            model = self._next("models", "model") if in_place_of is None else in_place_of
            values = [model, _now(), run, content, json.dumps(provenance, default=str)]
            self.execute("INSERT INTO models VALUES (?, ?, ?, ?, ?)", values)
        return model

    def model(self, number: int | None = None) -> bytes | None:
        """Return a model file by its number, or the current one by default; None if there is none."""
        query = "SELECT content FROM models WHERE model = coalesce(?, (SELECT max(model) FROM models))"
        found = self.execute(query, [number])
        return bytes(found[0][0]) if found else None

    def model_provenance(self) -> tuple[int, dict[str, Any]]:
        """Return number and provenance of the current model; the number is -1 if there is none."""
        found = self.execute("SELECT model, provenance FROM models ORDER BY model DESC LIMIT 1")
        return (int(found[0][0]), dict(json.loads(found[0][1]))) if found else (-1, {})

    @property
    def n_records(self) -> int:
        """Number of records."""
        if self._counted[0] != self.revision:
            found = self.execute("SELECT count(*) FROM record_ids")
            self._counted = (self.revision, int(found[0][0]))
        return self._counted[1]

    @property
    def columns(self) -> list[str]:
        """Names of the columns of the records, in order."""
        return [str(name) for (name,) in self.execute("SELECT name FROM value_columns ORDER BY position")]

    def add_records(self, table: pa.Table, ids: pa.Array, *, source: str, run: int | None = None) -> int:
        """Add a batch of records with consecutive numbers, and return the number of the first.

        table
            The columns of the records; new columns are added to the store.
        ids
            The ids of the records, which must be unique in the store.
        """
        ids = ids.cast(pa.string())
        if len(ids) != table.num_rows:
            raise InvalidArgumentError(f"{table.num_rows} records need an id each, but there are {len(ids)}.")
        with self.transaction():
            self._refuse_known(ids)
            first = self._next("record_ids", "record")
            batch = self._next("batches", "batch")
            self.execute("INSERT INTO batches VALUES (?, ?, ?, ?)", [batch, source, run, _now()])
            record = pa.array(np.arange(first, first + len(ids)))
            numbers = pa.table({"record": record, "id": ids, "batch": pa.repeat(batch, len(ids))})
            self.write("INSERT INTO record_ids SELECT * FROM numbers", numbers=numbers)
            positions = self._positions(table)
            values = pa.table([record, *table.columns], ["record", *(f"c{place}" for place in positions)])
            self.write("INSERT INTO record_values BY NAME SELECT * FROM rows", rows=values)
        return first

    def records(self, rows: Ints | None = None, columns: Sequence[str] | None = None) -> pa.Table:
        """Return records with their columns, in the order of ``rows``; with None return all records."""
        known = {name: f"c{place}" for place, name in self._known_columns()}
        names = list(known) if columns is None else list(columns)
        missing = [name for name in names if name not in known]
        if missing:
            raise InvalidArgumentError(f"the store has no column {missing[0]!r}; it has {', '.join(known)}.")
        wanted = ", ".join(["v.record", *(f"v.{known[name]}" for name in names)])
        if rows is None:
            found = self.query(f"SELECT {wanted} FROM record_values v ORDER BY v.record")
        else:
            found = self.query(
                f"SELECT {wanted} FROM record_values v SEMI JOIN wanted w USING (record)",
                wanted=record_column(rows),
            )
            found = found.take(pa.array(find_places(found.column("record"), rows)))
        return found.drop_columns(["record"]).rename_columns(names)

    def ids(self, rows: Ints | None = None) -> pa.Array:
        """Return the ids of the given records; with None, of all records in order."""
        if rows is None:
            return join_chunks(self.query("SELECT id FROM record_ids ORDER BY record").column("id"))
        found = self.query(
            "SELECT record, id FROM record_ids SEMI JOIN wanted USING (record)", wanted=record_column(rows)
        )
        return join_chunks(found.column("id")).take(pa.array(find_places(found.column("record"), rows)))

    def find_ids(self, ids: Sequence[str]) -> NDArray[np.int64]:
        """Return the numbers of records by their ids; raise an error for an unknown id."""
        names = [str(name) for name in ids]
        wanted = pa.table({"id": pa.array(names, pa.string())})
        found = self.query("SELECT id, record FROM record_ids SEMI JOIN wanted USING (id)", wanted=wanted)
        records = dict(zip(found.column("id").to_pylist(), found.column("record").to_pylist(), strict=True))
        for name in names:
            if name not in records:
                raise InvalidArgumentError(f"no record of {self.path.name} has the id {name!r}.")
        return np.array([records[name] for name in names], np.int64)

    def membership(self) -> NDArray[np.int64]:
        """Return the entity id of every record; -1 if it has none."""
        found = self.query(
            "SELECT coalesce(m.entity, -1) AS e FROM record_ids r"
            " LEFT JOIN membership m USING (record) ORDER BY record"
        )
        return np.asarray(found.column("e").to_numpy(), np.int64)

    def members(self, entities: Ints | Sequence[int]) -> pa.Table:
        """Return ``record`` and ``entity`` of all records of the given entities."""
        wanted = pa.table({"entity": pa.array(np.asarray(entities, np.int64))})
        return self.query(
            "SELECT record, entity FROM membership SEMI JOIN wanted USING (entity) ORDER BY entity, record",
            wanted=wanted,
        )

    def entities_of(self, rows: Ints) -> NDArray[np.int64]:
        """Return the entity ids of the given records; -1 if one has none."""
        found = self.query(
            "SELECT record, entity FROM membership SEMI JOIN wanted USING (record)",
            wanted=record_column(rows),
        )
        entity = np.append(found.column("entity").to_numpy(), NONE)
        return entity[find_places(found.column("record"), rows, missing=True)]

    def regroup(self, rows: Ints, labels: Ints, cause: Cause) -> int | None:
        """Regroup records so that those with the same label form one entity; return the number of the change.

        None is returned if nothing changed. Other records of the affected entities stay together, without
        these.
        """
        rows = np.asarray(rows, np.int64)
        group = np.unique(labels, return_inverse=True)[1].astype(np.int64)
        with self.transaction():
            before = self.entities_of(rows)
            others = self.members(np.unique(before[before >= 0]))
            left_out = ~np.isin(others.column("record").to_numpy(), rows)
            rest, rest_entity = (others.column(name).to_numpy()[left_out] for name in ("record", "entity"))
            beyond = int(group.max(initial=-1)) + 1
            rows = np.concatenate([rows, rest.astype(np.int64)])
            before = np.concatenate([before, rest_entity.astype(np.int64)])
            rest_group = beyond + np.unique(rest_entity, return_inverse=True)[1].astype(np.int64)
            group = np.concatenate([group, rest_group])
            order = np.argsort(rows)
            rows, before = rows[order], before[order]
            after = self.regroup_all(rows, before, group[order], cause)
            return self._next("changes", "change") - 1 if (after != before).any() else None

    def regroup_all(self, rows: Ints, before: Ints, labels: Ints, cause: Cause) -> NDArray[np.int64]:
        """Regroup records so that those with the same label form one entity; return the entity id of each.

        rows, before
            All records of the entities that change, ascending, and their previous entity ids.
        """
        with self.transaction():
            after = keep_ids(np.asarray(before, np.int64), np.asarray(labels, np.int64), self._next_entity())
            moved = np.flatnonzero(after != before)
            if len(moved):
                self._move(rows[moved], before[moved], after[moved], cause)
        return after

    def last_step(self) -> tuple[int | None, int | None]:
        """Return the last change without a decision, and None; or None and the last decision, if it is later.

        Undone changes and withdrawn decisions are ignored; both are None if nothing is left.
        """
        changes = self.execute(
            "SELECT change, made FROM changes WHERE decision IS NULL AND undoes IS NULL AND change NOT IN"
            " (SELECT undoes FROM changes WHERE undoes IS NOT NULL) ORDER BY change DESC LIMIT 1"
        )
        decided = self.execute(
            "SELECT decision, made FROM decisions WHERE withdrawn IS NULL ORDER BY decision DESC LIMIT 1"
        )
        if decided and (not changes or decided[0][1] >= changes[0][1]):
            return None, int(decided[0][0])
        return (int(changes[0][0]) if changes else None), None

    def decision_of(self, change: int) -> int | None:
        """Return the decision that caused a change; None if no decision did."""
        found = self.execute("SELECT decision FROM changes WHERE change = ?", [int(change)])
        return None if not found or found[0][0] is None else int(found[0][0])

    def undo(self, change: int, who: str | None = None) -> int:
        """Move the records of a change back to their previous entities; return the number of the new change.

        Raise an error if a later change has moved one of the records.
        """
        with self.transaction():
            moves = self.query(f"SELECT record, before, after FROM moves WHERE change = {int(change)}")
            if not moves.num_rows:
                raise InvalidArgumentError(f"there is no change {change} to undo.")
            rows = moves.column("record").to_numpy()
            before, after = (
                moves.column(name).fill_null(NONE).to_numpy().astype(np.int64) for name in ("before", "after")
            )
            if (before < 0).any():
                raise StoreError(f"change {change} put new records into entities, which cannot be undone.")
            if (self.entities_of(rows) != after).any():
                raise StoreError(
                    f"change {change} cannot be undone: a later change moved some of its records."
                    " Undo that one first."
                )
            return self._move(rows, after, before, Cause("undo", who=who, undoes=change))

    def history(self, entity: int) -> list[dict[str, Any]]:
        """Return the history of an entity: a row for each change and other entity, oldest first."""
        query = "SELECT * FROM entity_history WHERE entity = ? ORDER BY change, event DESC, other"
        found: list[dict[str, Any]] = self.query(query, [int(entity)]).to_pylist()
        return found

    def decide(
        self,
        parts: Sequence[Ints | Sequence[int]],
        answer: str,
        *,
        who: str,
        why: str = "",
        context: Sequence[Ints] = (),
        asked: str = "hand",
        probability: float | None = None,
    ) -> int:
        """Store a decision and return its number.

        parts
            Groups of records. ``different``: each group belongs to one entity, and no two groups to the same
            one. ``same``: all groups belong to one entity. ``all but``: the first group belongs to one
            entity, and no record of the other groups does. ``unsure``: the person cannot tell.
        context
            For each part, other records that were shown with it; the decision does not cover them for
            certain.
        asked
            Why the question was asked; ``hand`` if the decision was made without a question.
        probability
            Probability that the groups are one entity, at the time of the question.
        """
        if answer not in ANSWERS:
            raise InvalidArgumentError(f"an answer is one of {', '.join(ANSWERS)}, but {answer!r} was given.")
        with self.transaction():
            decision = self._next("decisions", "decision")
            values = [decision, _now(), who, answer, why, asked, probability]
            self.execute("INSERT INTO decisions VALUES (?, ?, ?, ?, ?, ?, ?, NULL)", values)
            sides = [np.asarray(side, np.int64) for side in (*parts, *context)]
            lengths = [len(side) for side in sides]
            places = [*range(len(parts)), *range(len(context))]
            table = pa.table(
                {
                    "decision": pa.repeat(decision, sum(lengths)),
                    "record": np.concatenate(sides),
                    "part": np.repeat(places, lengths),
                    "context": np.repeat(np.arange(len(sides)) >= len(parts), lengths),
                }
            )
            self.write("INSERT INTO decision_records SELECT * FROM spoken_of", spoken_of=table)
        return decision

    def withdraw(self, decision: int) -> None:
        """Withdraw a decision, which stays in the history but no longer counts."""
        with self.transaction():
            self.execute("UPDATE decisions SET withdrawn = ? WHERE decision = ?", [_now(), int(decision)])

    def take_back(self, decision: int, who: str | None = None) -> list[int]:
        """Withdraw a decision and undo its changes; return the numbers of the undone changes."""
        with self.transaction():
            found = self.execute(
                "SELECT change FROM changes WHERE decision = ? AND undoes IS NULL AND change NOT IN"
                " (SELECT undoes FROM changes WHERE undoes IS NOT NULL) ORDER BY change DESC",
                [int(decision)],
            )
            self.withdraw(decision)
            for (change,) in found:
                self.undo(int(change), who)
        return [int(change) for (change,) in found]

    def decisions(self) -> list[dict[str, Any]]:
        """Return the decisions that were not withdrawn, oldest first.

        Each has ``parts``, which are lists of records, and ``context``, a list of records for each part.
        """
        found = self.query("SELECT * FROM decisions WHERE withdrawn IS NULL ORDER BY decision").to_pylist()
        by_number: dict[int, dict[str, Any]] = {
            one["decision"]: one | {"parts": [], "context": []} for one in found
        }
        query = "SELECT * FROM decision_records ORDER BY decision, part, context, record"
        for decision, record, part, beside in self.execute(query):
            if decision in by_number:
                for name in ("parts", "context"):
                    sides = by_number[decision][name]
                    sides.extend([] for _ in range(part + 1 - len(sides)))
                by_number[decision]["context" if beside else "parts"][part].append(record)
        return list(by_number.values())

    def _move(self, rows: Ints, before: Ints, after: Ints, cause: Cause) -> int:
        change = self._next("changes", "change")
        self.execute(
            "INSERT INTO changes VALUES (?, ?, ?, ?, ?, ?, ?)",
            [change, _now(), cause.kind, cause.run, cause.decision, cause.who, cause.undoes],
        )
        moves = pa.table(
            {
                "change": pa.repeat(change, len(rows)),
                "record": pa.array(rows),
                "before": pa.array(before, mask=before < 0),
                "after": pa.array(after, mask=after < 0),
            }
        )
        self.write("INSERT INTO moves SELECT * FROM made", made=moves)
        known = moves.filter(pa.array(before >= 0))
        if known.num_rows:
            self.write(
                "UPDATE membership SET entity = made.after FROM made WHERE membership.record = made.record",
                made=known,
            )
        self.write("INSERT INTO membership SELECT record, after FROM made WHERE before IS NULL", made=moves)
        self.set_fact("next entity", str(max(self._next_entity(), int(after.max(initial=-1)) + 1)))
        return change

    def _next_entity(self) -> int:
        return int(self.fact("next entity", "0"))

    def _next(self, table: str, column: str) -> int:
        return int(self.execute(f"SELECT coalesce(max({column}), -1) + 1 FROM {table}")[0][0])

    def _known_columns(self) -> list[tuple[int, str]]:
        return [(int(p), str(n)) for p, n in self.execute("SELECT * FROM value_columns ORDER BY position")]

    def _positions(self, table: pa.Table) -> list[int]:
        """Return the position of each column of a table in the store; new columns are added to it."""
        known = {name: place for place, name in self._known_columns()}
        new = [name for name in table.column_names if name not in known]
        for name in new:
            known[name] = len(known)
            sample = table.select([name]).rename_columns(["value"]).slice(0, 0)
            kind = (
                self.query("SELECT typeof(any_value(value)) AS t FROM sample", sample=sample)
                .column("t")[0]
                .as_py()
            )
            self.execute(f"ALTER TABLE record_values ADD COLUMN c{known[name]} {kind}")
            self.execute("INSERT INTO value_columns VALUES (?, ?)", [known[name], name])
        if new:
            create_views(self._connection)
        return [known[name] for name in table.column_names]

    def _refuse_known(self, ids: pa.Array) -> None:
        if ids.null_count or ids.unique().__len__() < len(ids):
            raise InvalidArgumentError(
                "every record needs an id of its own: some are missing or there twice."
            )
        again = self.query(
            "SELECT id FROM record_ids SEMI JOIN new USING (id) LIMIT 3", new=pa.table({"id": ids})
        )
        if again.num_rows:
            raise InvalidArgumentError(
                f"{self.path.name} has a record with the id {again.column('id')[0].as_py()!r} already. Add"
                " records that are new, with ids of their own."
            )


def _now() -> datetime:
    return datetime.now(UTC).replace(tzinfo=None)
