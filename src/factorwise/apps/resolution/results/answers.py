"""The resolution of a table: entities with probabilities, alternatives, and canonical records."""

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

MOST_LISTED = 1_000_000  # most uncertain pairs that are listed
MOST_GROUPS = 10_000  # most uncertain groups that are listed


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Resolution:
    """The entities of the records of a table.

    ids, entity
        The id of each record and the name of its entity, as Arrow arrays.
    labels : int32[records]
        The entity of each record as a number.
    confidence : float32[records]
        The probability of each record's entity, given the entities of all other records.
    linked, found
        The scored links, and the result of the search.
    posterior
        Draws from the posterior, if requested.
    weighed : int64[.] or None
        The rows that ``linked`` covers, if these are not all: distinct records, or those that an update
        resolved again (the confidence of all others is then NaN).
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
        """Return a table with one row per record: id, entity and confidence."""
        confidence = pa.array(self.confidence, from_pandas=True)  # NaN becomes null
        return pa.table({"id": self.ids, "entity": self.entity, "confidence": confidence})

    def entities(self) -> pa.Table:
        """Return a table with one row per entity: name, number of records, coherence and probability.

        The coherence is the lowest confidence of the records. The probability is that of exactly these
        records being one entity; it is null without posterior draws.
        """
        _, first, number, size = np.unique(
            self.labels, return_index=True, return_inverse=True, return_counts=True
        )
        least = np.ones(len(first), np.float32)
        with np.errstate(invalid="ignore"):  # NaN where records were not resolved again
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
        """Return a table of the uncertain pairs: two ids, and the probability that the pair is a match.

        Each of several records that must be together has its own rows. The most uncertain pairs come first,
        and there are at most a million.
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
        """Return the two most frequent clusterings of each uncertain group of records.

        The table has one row per record of a group: its entity in the ``best`` and in the ``second``
        clustering, named by the smallest id of the group's records in it, and the shares of the draws with
        these clusterings. The most uncertain groups come first, and there are at most ten thousand.
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
        """Return one canonical record per entity, with the most frequent value of its records in each column.

        Among equally frequent values the longest is chosen, then the first in alphabetical order. Missing
        values are ignored. Columns named ``entity`` or ``records`` are renamed with the suffix ``_given``.
        """
        _, first, number = np.unique(self.labels, return_index=True, return_inverse=True)
        columns = {"entity": self.entity.take(pa.array(first))}
        columns["records"] = pa.array(np.bincount(number))
        for name in table.column_names:
            free = f"{name}_given" if name in ("entity", "records") else name
            columns[free] = _most_common(table.column(name).combine_chunks(), number, len(first))
        return pa.table(columns)

    def _entity_chances(self, rows: NDArray[np.int64]) -> pa.Array:
        """Return the probability of the entities of some records; null without posterior draws."""
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
        """Return the start of each item's rows, and the rows of all items in order."""
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
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):  # nested records, or bytes that are not text
        return pa.array([None if value is None else str(value) for value in values.to_pylist()])
