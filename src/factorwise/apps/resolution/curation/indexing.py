"""The index of a store, with which the cost of adding records depends only on their own candidates.

The index holds links with their comparison levels, blocking keys as hashes of text, and value frequencies.
New records are compared with records that share a key in a block that is not too large, the rarest keys
first. Comparison levels depend on the frequencies of values in the whole table, which the index holds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from factorwise.apps.resolution.blocking.keys import KeyMaker
from factorwise.apps.resolution.comparisons import Comparer
from factorwise.apps.resolution.comparisons.derived import RECORD, form_of
from factorwise.apps.resolution.constraints import Constraints
from factorwise.apps.resolution.curation.regions import LinkedRecords
from factorwise.apps.resolution.knowledge import Knowledge
from factorwise.apps.resolution.linking import weigh_unlinked
from factorwise.apps.resolution.normalize.forms import Frequencies, Lists, NormalField, NormalTable, Strings
from factorwise.apps.resolution.normalize.normal_forms import normalize
from factorwise.io.text_hashes import text_hashes
from factorwise.kernels.compile.threads import Team
from factorwise.store.index import IndexTables, StoredLinks
from factorwise.types import Ints

LARGEST_BLOCK = 1_000  # most records with a key for it to give partners of new records
MOST_PARTNERS = 60  # most records that a new record is compared with
_PRESENT = np.uint64(0)  # stands for any value, to count the rows that have one


class KeyedRecords(Protocol):
    """Lookup of blocking keys and value frequencies, in a store or in memory."""

    def matching_keys(self, rule: NDArray[np.int64], key: NDArray[np.uint64]) -> pa.Table:
        """Return ``rule``, ``key`` and ``record`` of all records that have one of the keys."""
        ...

    def counts(self, form: NDArray[np.int64], value: NDArray[np.uint64]) -> pa.Table:
        """Return ``form``, ``value`` and ``rows`` of some values of forms."""
        ...


class LinkedTable(NamedTuple):
    """The normal forms of a table, its linked records, and the model adapted to its size."""

    normal: NormalTable
    records: LinkedRecords
    knowledge: Knowledge


class Keys(NamedTuple):
    """Blocking keys, in columns: the rule, the key, and the row that has it."""

    rule: NDArray[np.int64]
    key: NDArray[np.uint64]
    row: NDArray[np.int64]


def link_table(
    table: pa.Table, knowledge: Knowledge, *, sources: NDArray[np.int32] | None = None, team: Team
) -> LinkedTable:
    """Find and compare the candidates of a table.

    sources
        The source of each record, if an entity has one record per source; else None.
    """
    knowledge = knowledge.for_size(table.num_rows)
    normal = normalize(table, knowledge.fields)
    within = sources is None
    candidates = knowledge.candidates(normal, sources=sources, within=within, threads=team.threads)
    comparer = Comparer(normal, knowledge.comparisons, candidates)
    levels = comparer.all_levels(candidates.first, candidates.second, team)
    if knowledge.loses_links(candidates):
        scores = knowledge.weights.link_scores(levels).astype(np.float32)
        limits = Constraints(sources=sources, one_per_source=not within)
        knowledge = weigh_unlinked(table, normal, candidates, scores, knowledge, limits, team=team)
    training = {**knowledge.training, "records": max(table.num_rows, knowledge.training.get("records") or 0)}
    knowledge = replace(knowledge, training=training)
    pairs = candidates.first, candidates.second
    records = LinkedRecords.of(normal.n_rows, *pairs, levels, knowledge.weights, sources=sources)
    return LinkedTable(normal, records, knowledge)


def write_index(index: IndexTables, linked: LinkedTable, knowledge: Knowledge) -> None:
    """Write the links, keys and frequencies of a whole table, whose records are numbered from 0 on."""
    graph = linked.records.graph
    index.clear()
    first, second = graph.first.astype(np.int64), graph.second.astype(np.int64)
    index.add_links(StoredLinks(first, second, linked.records.levels))
    add_keys(index, block_keys(linked.normal, knowledge), 0)
    add_counts(index, linked.normal, knowledge)


def block_keys(normal: NormalTable, knowledge: Knowledge) -> Keys:
    """Return the blocking keys of all rows, by text."""
    maker = KeyMaker(normal, by_text=True)
    found = [maker.keys(rule) for rule in knowledge.rules]
    return Keys(
        np.repeat(np.arange(len(found)), [len(rows.key) for rows in found]),
        np.concatenate([np.zeros(0, np.uint64), *(rows.key for rows in found)]),
        np.concatenate([np.zeros(0, np.int64), *(rows.item.astype(np.int64) for rows in found)]),
    )


def add_keys(index: IndexTables, keys: Keys, first: int) -> None:
    """Write blocking keys; row 0 is the record ``first``."""
    for rule in np.unique(keys.rule).tolist():
        mine = keys.rule == rule
        index.add_keys(rule, keys.key[mine], first + keys.row[mine])


def add_counts(index: IndexTables, normal: NormalTable, knowledge: Knowledge) -> None:
    """Add the value frequencies of a table to those in the index."""
    for number, form in counted_forms(normal, knowledge):
        counts, present = form.frequencies()
        seen = np.flatnonzero(counts > 0)
        values = np.append(text_hashes(form.values.cast(pa.string()))[seen], _PRESENT)
        index.add_counts(number, values, np.append(counts[seen], present))


def counted_forms(
    normal: NormalTable, knowledge: Knowledge, *, keys_only: bool = False
) -> Iterator[tuple[int, Strings | Lists]]:
    """Yield the numbered forms whose frequencies are needed, for comparisons or for keys."""
    keyed = set(_keyed_forms(knowledge))
    for number, (field, name) in enumerate(_form_names(knowledge)):
        if keys_only and (field, name) not in keyed:
            continue
        form = form_of(normal, field, name)
        if isinstance(form, Strings | Lists):
            yield number, form


def find_keys(table: pa.Table, knowledge: Knowledge, index: KeyedRecords) -> Keys:
    """Return the blocking keys of some rows, with value frequencies of the whole table."""
    used = {part.field for rule in knowledge.rules for part in rule.parts}
    named = [field for field in knowledge.fields if field.name in used]
    normal = normalize(table, named if len(named) == len(used) else knowledge.fields)
    return block_keys(with_frequencies(normal, knowledge, index, keys_only=True), knowledge)


def with_frequencies(
    normal: NormalTable, knowledge: Knowledge, index: KeyedRecords, *, keys_only: bool = False
) -> NormalTable:
    """Return normal forms of some rows, with value frequencies of the whole table.

    keys_only
        Whether to look up frequencies only for the forms of blocking keys.
    """
    forms = dict(counted_forms(normal, knowledge, keys_only=keys_only))
    hashes = {number: text_hashes(form.values.cast(pa.string())) for number, form in forms.items()}
    asked = np.concatenate([np.zeros(0, np.uint64), *(np.append(h, _PRESENT) for h in hashes.values())])
    which = np.repeat(list(hashes), [len(h) + 1 for h in hashes.values()]).astype(np.int64)
    known = index.counts(which, asked)
    number, value = known.column("form").to_numpy(), known.column("value").to_numpy()
    rows = known.column("rows").to_numpy()
    names, made = _form_names(knowledge), {}
    for k, form in forms.items():
        mine = number == k
        order = np.argsort(value[mine])
        keys, counts = value[mine][order], np.append(rows[mine][order], 0)
        place = np.searchsorted(keys, hashes[k])
        inside = np.minimum(place, max(len(keys) - 1, 0))
        fits = (keys[inside] == hashes[k]) if len(keys) else np.zeros(len(hashes[k]), bool)
        here = form.frequencies()
        found = np.maximum(np.where(fits, counts[inside], 0), 1)
        present = int(counts[0]) if len(keys) and keys[0] == _PRESENT else here.present
        made[names[k]] = replace(form, whole=Frequencies(found, max(present, 1)))
    return _replaced(normal, made)


def find_partners(keys: Keys, index: KeyedRecords, n_rows: int) -> tuple[Ints, Ints]:
    """Return pairs of a row and a record with shared keys; each row keeps those with the rarest keys."""
    found = index.matching_keys(keys.rule, keys.key)
    rule, key = found.column("rule").to_numpy().astype(np.int64), found.column("key").to_numpy()
    record = found.column("record").to_numpy().astype(np.int64)
    word = _words(rule, key)
    words, block, size = np.unique(word, return_inverse=True, return_counts=True)
    order = np.argsort(block, kind="stable")
    starts = np.append(0, np.cumsum(size))
    mine = _words(keys.rule, keys.key)
    place = np.minimum(np.searchsorted(words, mine), max(len(words) - 1, 0))
    hit = (words[place] == mine) if len(words) else np.zeros(len(mine), bool)
    hit &= (size[place] <= LARGEST_BLOCK) if len(words) else False
    row, place = keys.row[hit], place[hit]
    lengths = size[place] if len(words) else np.zeros(0, np.int64)
    total = int(lengths.sum())
    within = np.arange(total) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    partner = record[order[np.repeat(starts[place] if len(words) else lengths, lengths) + within]]
    rows = np.repeat(row, lengths)
    rarity = np.repeat(1.0 / np.log2(2.0 + lengths), lengths)
    return _rarest(rows, partner, rarity, n_rows)


def _rarest(rows: Ints, partner: Ints, rarity: NDArray[np.float64], n_rows: int) -> tuple[Ints, Ints]:
    """Return unique pairs; each row keeps those with the largest sums of rarities."""
    if not len(rows):
        return rows.astype(np.int64), partner.astype(np.int64)
    wide = int(partner.max()) + 1
    pairs, place = np.unique(rows * wide + partner, return_inverse=True)
    worth = np.bincount(place, weights=rarity)
    row = pairs // wide
    order = np.lexsort((-worth, row))
    rank = np.arange(len(order)) - np.searchsorted(row[order], np.arange(n_rows))[row[order]]
    kept = np.sort(order[rank < MOST_PARTNERS])
    return row[kept], pairs[kept] % wide


def _words(rule: Ints, key: NDArray[np.uint64]) -> NDArray[np.uint64]:
    return key * np.uint64(31) + rule.astype(np.uint64)


def _form_names(knowledge: Knowledge) -> list[tuple[str, str]]:
    compared = [(one.field, one.form) for one in knowledge.comparisons]
    return sorted({*compared, *_keyed_forms(knowledge)})


def _keyed_forms(knowledge: Knowledge) -> list[tuple[str, str]]:
    return [(part.field, part.form) for rule in knowledge.rules for part in rule.parts if part.cut == "items"]


def _replaced(normal: NormalTable, made: dict[tuple[str, str], Strings | Lists]) -> NormalTable:
    fields = {}
    for name, field in normal.items():
        forms = {form: made.get((name, form), column) for form, column in field.items()}
        fields[name] = NormalField(name, field.kind, forms)
    copy = NormalTable(normal.n_rows, fields)
    for (name, form), column in made.items():
        if (name == RECORD and name not in normal) or form not in normal[name]:
            copy.derived[name, form] = column
    return copy
