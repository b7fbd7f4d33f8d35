"""What resolving a table gives: entities, how sure they are, what else they could be, one record for each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from factorwise.apps.resolution.linked_items import LinkedItems
from factorwise.apps.resolution.normalize.forms import ranges
from factorwise.apps.resolution.results.doubt import doubtful_groups
from factorwise.apps.resolution.results.naming import id_ranks, smallest_rows
from factorwise.errors import InvalidArgumentError
from factorwise.inference.mcmc.shards.search import Found
from factorwise.inference.merge_trees import LinkPosterior

MOST_LISTED = 1_000_000  # doubtful pairs
MOST_GROUPS = 10_000  # doubtful groups that are listed


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Resolution:
    """The entities of the records of a table.

    ids, entity
        Of each record its id and the name of its entity, as Arrow arrays.
    labels : int32[records]
        The same as numbers: records with one number are of one entity.
    confidence : float32[records]
        The probability of each record's entity, given those of all other records.
    linked, found
        The links that were weighed, and how the search ended.
    posterior
        Draws of other clusterings, if asked for.
    weighed : int64[.] or None
        After an update, the rows that ``linked`` speaks of; the confidence of all others is NaN. None for
        all rows.
    """

    ids: pa.Array
    entity: pa.Array
    labels: NDArray[np.int32]
    confidence: NDArray[np.float32]
    linked: LinkedItems
    found: Found
    posterior: LinkPosterior | None = None
    weighed: NDArray[np.int64] | None = None

    def __repr__(self) -> str:
        draws = 0 if self.posterior is None else len(self.posterior.labels)
        return f"Resolution(records={len(self.labels)}, entities={self.n_entities}, draws={draws})"

    @property
    def n_entities(self) -> int:
        """Number of entities."""
        return len(np.unique(self.labels))

    def table(self) -> pa.Table:
        """Return one row per record: id, entity, confidence."""
        confidence = pa.array(self.confidence, from_pandas=True)  # null where it is NaN
        return pa.table({"id": self.ids, "entity": self.entity, "confidence": confidence})

    def entities(self) -> pa.Table:
        """Return one row per entity: its name, its records, its coherence and its probability.

        The coherence is the least confidence of its records, the probability that of these records, no more
        and no less, being one entity: null where nothing was drawn.
        """
        _, first, number, size = np.unique(
            self.labels, return_index=True, return_inverse=True, return_counts=True
        )
        least = np.ones(len(first), np.float32)
        with np.errstate(invalid="ignore"):  # NaN where nothing was weighed
            np.minimum.at(least, number, self.confidence)
        names = self.entity.take(pa.array(first))
        coherence = pa.array(least, from_pandas=True)
        return pa.table(
            {
                "entity": names,
                "records": pa.array(size),
                "coherence": coherence,
                "probability": self._entity_chances(first),
            }
        )

    def pairs(self) -> pa.Table:
        """Return the doubtful pairs: ids, and the probability that they are of one entity.

        Of records that must be together each stands in pairs of its own. The most doubtful come first, a
        million at most.
        """
        posterior, graph = self._drawn(), self.linked.walk.graph
        found = posterior.uncertain_pairs()[:MOST_LISTED]
        first, second = graph.first[found], graph.second[found]
        start, rows = self._rows_by_unit()
        others = np.diff(start)[second]
        count = np.diff(start)[first] * others
        pair = np.repeat(np.arange(len(found)), count)[:MOST_LISTED]
        within = np.arange(len(pair)) - (np.cumsum(count) - count)[pair]
        one = rows[start[first[pair]] + within // others[pair]]
        two = rows[start[second[pair]] + within % others[pair]]
        columns = {
            "id": self.ids.take(pa.array(one)),
            "other": self.ids.take(pa.array(two)),
            "probability": pa.array(posterior.together[found[pair]]),
        }
        return pa.table(columns)

    def second_best(self) -> pa.Table:
        """Return for the groups of records in doubt the two clusterings that came up most.

        One row per record of a group: its entity in the ``best`` and in the ``second`` clustering, named by
        the smallest id of the group's records in it, and the shares of the draws in which the two came up.
        The most doubtful groups come first, ten thousand at most.
        """
        groups = doubtful_groups(self._drawn(), self.linked.walk.graph, MOST_GROUPS)
        size = np.array([len(group.items) for group in groups], np.int64)
        start, rows = self._rows_by_unit()
        items = np.concatenate([np.zeros(0, np.int64), *(group.items for group in groups)])
        count = np.diff(start)[items]
        item = np.repeat(np.arange(len(items)), count)
        row = rows[ranges(start[items], count)]
        number = np.repeat(np.arange(len(groups)), size)[item]
        shares = np.array([group.shares for group in groups]).reshape(-1, 2)[number]
        ids, before = self.ids.take(pa.array(row)), (np.cumsum(size) - size)[number]
        ranks = id_ranks(ids)

        def named(labels: list[NDArray[np.int64]]) -> pa.Array:
            label = np.concatenate([np.zeros(0, np.int64), *labels])[item] + before
            return ids.take(pa.array(smallest_rows(label, ranks)))

        columns = {
            "group": pa.array(number),
            "id": ids,
            "best": named([group.best for group in groups]),
            "second": named([group.second for group in groups]),
            "best_share": pa.array(shares[:, 0]),
            "second_share": pa.array(shares[:, 1]),
        }
        return pa.table(columns)

    def canonical(self, table: pa.Table) -> pa.Table:
        """Return one record per entity: in each column the value that most of its records have.

        Of values that are equally frequent the longest wins, then the first in the order of letters; missing
        ones do not count. Columns that are called ``entity`` or ``records`` themselves get a ``_given``
        behind their names.
        """
        _, first, number = np.unique(self.labels, return_index=True, return_inverse=True)
        columns = {"entity": self.entity.take(pa.array(first))}
        columns["records"] = pa.array(np.bincount(number))
        for name in table.column_names:
            free = f"{name}_given" if name in ("entity", "records") else name
            columns[free] = _most_common(table.column(name).combine_chunks(), number, len(first))
        return pa.table(columns)

    def _entity_chances(self, rows: NDArray[np.int64]) -> pa.Array:
        """Return the probability of the entities of some records; null where nothing was drawn."""
        chance = np.full(len(self.labels), np.nan, np.float32)
        if self.posterior is not None:
            weighed = np.arange(len(chance)) if self.weighed is None else self.weighed
            by_label = np.full(int(self.labels.max(initial=0)) + 1, np.nan, np.float32)
            by_label[self.labels[weighed]] = self.posterior.whole[self.linked.unit]
            chance = by_label[self.labels]
        return pa.array(chance[rows], from_pandas=True)

    def _drawn(self) -> LinkPosterior:
        if self.posterior is None:
            raise InvalidArgumentError("no posterior was drawn: resolve with posterior=True.")
        return self.posterior

    def _rows_by_unit(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the rows that the items of the walk stand for, by item, and where those of each begin."""
        unit = self.linked.unit
        rows = np.argsort(unit, kind="stable")
        start = np.append(0, np.cumsum(np.bincount(unit, minlength=self.linked.links.n_items)))
        return start, rows if self.weighed is None else self.weighed[rows]


def _most_common(column: pa.Array, number: NDArray[np.int64], count: int) -> pa.Array:
    if column.null_count == len(column):
        return pa.nulls(count, column.type)
    if pa.types.is_nested(column.type):
        column = _as_text(column)
    coded = column.dictionary_encode()
    codes = np.asarray(coded.indices.fill_null(-1), dtype=np.int64)
    texts = _as_text(coded.dictionary)
    there = codes >= 0
    width = len(coded.dictionary)
    cells, seen = np.unique(number[there] * width + codes[there], return_counts=True)
    order = np.argsort(np.asarray(pc.sort_indices(texts)))
    lengths = np.asarray(pc.utf8_length(texts), dtype=np.int64)
    entity, code = cells // width, cells % width
    best = np.lexsort((order[code], -lengths[code], -seen, entity))
    chosen = np.full(count, -1, np.int64)
    first = np.append(True, entity[best][1:] != entity[best][:-1])
    chosen[entity[best][first]] = code[best][first]
    return coded.dictionary.take(pa.array(chosen, mask=chosen < 0))


def _as_text(values: pa.Array) -> pa.Array:
    try:
        if pa.types.is_nested(values.type):
            return pc.binary_join(values.cast(pa.list_(pa.string())), "|")
        return values.cast(pa.string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):  # records within records, bytes that are no text
        return pa.array([None if value is None else str(value) for value in values.to_pylist()])
