"""Browse the entities of a store, with their records, history and decisions."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from factorwise.apps.resolution.curation.curator import Curator, Match
from factorwise.store import Store
from factorwise.types import Ints


class Browser:
    """Read-only queries of a store, which several threads may use.

    lock
        Held during each query.
    """

    def __init__(self, store: Store, curator: Curator, lock: threading.RLock) -> None:
        self.store, self.curator, self._lock = store, curator, lock

    @property
    def labels(self) -> NDArray[np.int64]:
        """The entity of every record."""
        return self.store.membership()

    def entities(self, search: str = "", *, most: int = 50) -> list[dict[str, Any]]:
        """Return the entities with a record that contains a text, the largest first, with one record each."""
        with self._lock:
            rows = self._holding(search)
            labels = self.labels
            names, first = np.unique(labels[rows], return_index=True)
            sizes = np.bincount(labels)[names]
            order = np.argsort(-sizes, kind="stable")[:most]
            shown = self.describe_records(rows[first[order]])
            return [
                {"entity": int(names[k]), "records": int(sizes[k]), "example": one}
                for k, one in zip(order.tolist(), shown, strict=True)
            ]

    def members(self, entity: int) -> list[dict[str, Any]]:
        """Return the records of an entity, with their ids and columns."""
        with self._lock:
            return self.describe_records(np.flatnonzero(self.labels == entity))

    def history(self, entity: int) -> list[dict[str, Any]]:
        """Return the history of an entity; see `Store.history`."""
        with self._lock:
            return self.store.history(entity)

    def decisions(self, *, most: int = 100) -> list[dict[str, Any]]:
        """Return the last valid decisions, the newest first, with the ids of their parts."""
        with self._lock:
            last = self.store.decisions()[-most:][::-1]
            rows = np.unique([row for one in last for part in one["parts"] for row in part]).astype(np.int64)
            names = (
                dict(zip(rows.tolist(), self.store.ids(rows).to_pylist(), strict=True)) if len(rows) else {}
            )
            kept = ("decision", "made", "who", "answer", "why", "asked", "probability")
            return [
                {name: one[name] for name in kept}
                | {"parts": [[names[row] for row in part] for part in one["parts"]]}
                for one in last
            ]

    def lookup(self, record: dict[str, Any], *, most: int = 5) -> list[Match]:
        """Return the entities that a record may belong to; see `Curator.lookup`."""
        with self._lock:
            return self.curator.lookup(record, most=most)

    def compared_columns(self) -> list[str]:
        """Return the columns that are compared."""
        return self.curator.compared_columns()

    def name_of(self, record: str, columns: Sequence[str]) -> str:
        """Return a label for a record: its values in some columns."""
        with self._lock:
            values = self.store.records(self.store.find_ids([record]), columns).to_pylist()[0]
        return " ".join(str(value) for value in values.values() if value not in (None, ""))[:200] or record

    def describe_records(self, rows: Ints) -> list[dict[str, Any]]:
        """Return some records with their ids and columns."""
        if not len(rows):
            return []
        ids = self.store.ids(rows).to_pylist()
        records = self.store.records(rows).to_pylist()
        return [
            {"id": name} | {k: v for k, v in one.items() if k != "id"}
            for name, one in zip(ids, records, strict=True)
        ]

    def _holding(self, search: str) -> NDArray[np.int64]:
        """Return the records that contain a text in a column or in their id."""
        if not search:
            return np.arange(len(self.labels))
        columns = range(len(self.store.columns))
        texts = " || ' ' || ".join(["r.id", *(f"coalesce(v.c{k}::VARCHAR, '')" for k in columns)])
        found = self.store.execute(
            f"SELECT r.record FROM record_ids r JOIN record_values v USING (record)"
            f" WHERE contains(lower({texts}), lower(?)) ORDER BY r.record",
            [search],
        )
        return np.array([row for (row,) in found], np.int64)
