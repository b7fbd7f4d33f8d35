"""The index of a store in memory, for lookups that take milliseconds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from factorwise.apps.resolution.knowledge import Knowledge
from factorwise.store import Store
from factorwise.types import Ints


class WarmIndex:
    """Keys, frequencies, records and entities of a store, which are read once.

    content, ids, membership
        The columns that are compared, the ids, and the entity of every record.
    """

    def __init__(self, store: Store, knowledge: Knowledge) -> None:
        columns = [field.name for field in knowledge.fields if field.kind != "ignore"]
        self.content = store.records(columns=columns).combine_chunks()
        self.ids = store.ids()
        self._store = store
        self._revision = -1
        self.renew_entities()
        keys = store.index.all_keys()
        rule, key = keys.column("rule").to_numpy().astype(np.int64), keys.column("key").to_numpy()
        order = np.lexsort((key, rule))
        self._rule, self._key = rule[order], key[order]
        self._record = keys.column("record").to_numpy()[order]
        self._rule_start = np.searchsorted(self._rule, np.arange(len(knowledge.rules) + 1))
        counts = store.query("SELECT form, value, sum(rows)::BIGINT AS rows FROM value_counts GROUP BY ALL")
        form, value = counts.column("form").to_numpy(), counts.column("value").to_numpy()
        order = np.lexsort((value, form))
        self._form, self._value = form[order].astype(np.int64), value[order]
        self._rows = counts.column("rows").to_numpy()[order]
        self._form_start = np.searchsorted(self._form, np.arange(int(self._form.max(initial=0)) + 2))

    def renew_entities(self) -> None:
        """Read the entities of the records again, if they may have changed."""
        if self._store.revision != self._revision:
            self._revision = self._store.revision
            self.membership = self._store.membership()
            self._sizes = np.bincount(np.maximum(self.membership, 0))

    def table_of(self, record: dict[str, Any]) -> pa.Table:
        """Return a table of one record with the compared columns; missing ones are null."""
        schema = self.content.schema
        columns = {}
        for field in schema:
            value = record.get(field.name)
            try:
                columns[field.name] = pa.array([None if value == "" else value], field.type)
            except (pa.ArrowInvalid, pa.ArrowTypeError):
                columns[field.name] = pa.array([str(value)]).cast(field.type, safe=False)
        return pa.table(columns, schema=schema)

    def matching_keys(self, rule: NDArray[np.int64], key: NDArray[np.uint64]) -> pa.Table:
        """Return ``rule``, ``key`` and ``record`` of all records that have one of the keys."""
        found = []
        for k, word in dict.fromkeys(zip(rule.tolist(), key.tolist(), strict=True)):
            low, high = self._rule_start[k], self._rule_start[k + 1]
            span = np.searchsorted(self._key[low:high], np.array([word, word], np.uint64), "left")
            end = np.searchsorted(self._key[low:high], np.uint64(word), "right")
            found.append(np.arange(low + span[0], low + end))
        places = np.concatenate([np.zeros(0, np.int64), *found])
        columns = {"rule": self._rule[places], "key": self._key[places], "record": self._record[places]}
        return pa.table(columns)

    def counts(self, form: NDArray[np.int64], value: NDArray[np.uint64]) -> pa.Table:
        """Return ``form``, ``value`` and ``rows`` of those of some values that are in the index."""
        found = []
        for k in np.unique(form).tolist():
            low, high = (self._form_start[min(k + side, len(self._form_start) - 1)] for side in (0, 1))
            asked = np.unique(value[form == k])
            place = np.searchsorted(self._value[low:high], asked)
            inside = np.minimum(place, max(high - low - 1, 0))
            fits = (self._value[low:high][inside] == asked) if high > low else np.zeros(len(asked), bool)
            found.append(low + inside[fits])
        places = np.concatenate([np.zeros(0, np.int64), *found])
        return pa.table(
            {"form": self._form[places], "value": self._value[places], "rows": self._rows[places]}
        )

    def sizes(self, entities: Ints) -> NDArray[np.int64]:
        """Return the number of records of each of some entities."""
        return self._sizes[entities]
