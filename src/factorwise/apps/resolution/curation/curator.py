"""`Curator`: resolve the records of a store, add new ones, and look up single ones."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from factorwise import __version__
from factorwise.apps.resolution.comparisons import Comparer
from factorwise.apps.resolution.comparisons.overlaps import OverlapPairs
from factorwise.apps.resolution.curation.indexing import (
    add_counts,
    add_keys,
    find_keys,
    find_partners,
    link_table,
    with_frequencies,
    write_index,
)
from factorwise.apps.resolution.curation.regions import LinkedRecords
from factorwise.apps.resolution.curation.starting import learn_pair_weights
from factorwise.apps.resolution.curation.verdicts import Verdicts
from factorwise.apps.resolution.curation.warm import WarmIndex
from factorwise.apps.resolution.estimator import EntityResolver
from factorwise.apps.resolution.knowledge import Knowledge
from factorwise.apps.resolution.normalize.normal_forms import normalize
from factorwise.apps.resolution.resolving import default_budget, draw_posterior
from factorwise.apps.resolution.unlabelled.sources import number_sources
from factorwise.errors import InvalidArgumentError, StoreError
from factorwise.inference.mcmc.shards.search import LinkSearch
from factorwise.kernels.compile.threads import Team
from factorwise.store import Cause, Store
from factorwise.store.index import StoredLinks
from factorwise.types import Ints

ONE_PER_SOURCE = "one per source"  # fact: the column of sources, if an entity has one record per source
BASE_MODEL = "base model"  # fact: number of the model that is the prior for learning from answers
LOWEST = -3.0  # lowest score of a link to an entity that a new record may belong to


class Match(NamedTuple):
    """An entity that a record may belong to.

    entity, records
        The id of the entity, and its number of records.
    probability
        The probability that the record belongs to it, and not to another entity or to none.
    record
        The id of the most similar record of the entity.
    reasons
        The contributions of the comparisons with that record to the score, the largest first.
    """

    entity: int
    records: int
    probability: float
    record: str
    reasons: tuple[tuple[str, float], ...]


class Added(NamedTuple):
    """The effect of adding records: how many joined existing entities, and how many old ones moved."""

    records: int
    joined: int
    moved: int
    change: int | None


class Curator:
    """Resolves the records of a store.

    n_jobs, random_state
        Number of threads, and the seed of the search.
    """

    def __init__(self, store: Store, *, n_jobs: int = 1, random_state: int = 0) -> None:
        self.store = store
        self._seed = random_state
        self._team = Team(n_jobs)
        self._knowledge: Knowledge | None = None
        self._warm: WarmIndex | None = None

    @property
    def knowledge(self) -> Knowledge:
        """The current model of the store, adapted to its current number of records."""
        if self._knowledge is None:
            self._knowledge = load_model(self.store)
        return self._knowledge.for_size(self.store.n_records)

    def compared_columns(self) -> list[str]:
        """Return the columns that are compared."""
        return [field.name for field in self.knowledge.fields if field.kind != "ignore"]

    def resolve(
        self,
        table: pa.Table,
        ids: pa.Array,
        *,
        source: str,
        leave_out: tuple[str, ...] = (),
        resolver: EntityResolver | None = None,
        on_message: Callable[[str], None] = lambda text: None,
    ) -> int:
        """Put the first records into an empty store and resolve them; return the number of entities.

        leave_out
            Columns that are stored but not compared.
        resolver
            A fitted resolver; None to fit one to the records without labels.
        on_message
            Called with each part of the model that the store does not use.
        """
        if self.store.n_records:
            raise InvalidArgumentError(f"{self.store.path.name} has records already: add to them.")
        if resolver is None:
            resolver = EntityResolver(n_jobs=self._team.threads, random_state=self._seed)
            resolver.fit(table, leave_out=leave_out)
        knowledge = resolver.knowledge_
        for message in unused_parts(knowledge):
            on_message(message)
        source_column = None
        if knowledge.unlabelled is not None:
            if knowledge.unlabelled.one_per_source:
                source_column = knowledge.unlabelled.source
            knowledge = learn_pair_weights(table, resolver, seed=self._seed, team=self._team)
        knowledge = replace(knowledge, context=None, further={})
        sources = None if source_column is None else number_sources(table, source_column)
        linked = link_table(table, knowledge, sources=sources, team=self._team)
        self._knowledge = linked.knowledge
        rounds, sweeps = default_budget(table.num_rows)
        rows = np.arange(table.num_rows)
        labels = linked.records.settle(
            rows,
            rows,
            Verdicts(),
            search=LinkSearch(rounds=rounds, sweeps=sweeps),
            seed=self._seed,
            team=self._team,
        )
        settings = {"source": source, "records": table.num_rows, "seed": self._seed}
        with self.store.transaction():
            run = self.store.begin_run("init", settings, __version__)
            self.store.add_records(table, ids, source=source, run=run)
            self.store.set_fact(ONE_PER_SOURCE, source_column or "")
            self._keep_model(run)
            write_index(self.store.index, linked, self._knowledge)
            self.store.regroup(rows, labels, Cause("run", run=run))
            self.store.end_run(run)
        return len(np.unique(labels))

    def add(self, table: pa.Table, ids: pa.Array, *, source: str) -> Added:
        """Add new records to existing or new entities; only entities linked to them are searched again."""
        knowledge, store = self.knowledge, self.store
        columns = self.compared_columns()
        keys = find_keys(table, knowledge, store.index)
        place, partner = find_partners(keys, store.index, table.num_rows)
        old = np.unique(partner)
        stacked = pa.concat_tables(
            [store.records(old, columns), table.select(columns)], promote_options="permissive"
        )
        links = self._compare_added(stacked, len(old), place, np.searchsorted(old, partner))
        with store.transaction():
            run = store.begin_run("add", {"source": source, "records": table.num_rows}, __version__)
            first = store.add_records(table, ids, source=source, run=run)
            numbers = np.concatenate([old, first + np.arange(table.num_rows)])
            links = StoredLinks(numbers[links.first], numbers[links.second], links.levels)
            store.index.add_links(links)
            add_keys(store.index, keys, first)
            add_counts(store.index, normalize(table, knowledge.fields), knowledge)
            scores = knowledge.weights.link_scores(links.levels)
            near = links.first[(scores > LOWEST) & (links.first < first)]
            touched = store.members(np.unique(store.entities_of(np.unique(near))))
            rows = np.concatenate([touched.column("record").to_numpy(), numbers[len(old) :]]).astype(np.int64)
            change = self.settle(np.unique(rows), Cause("run", run=run))
            store.end_run(run)
        after = store.entities_of(numbers[len(old) :])
        had = np.unique(touched.column("entity").to_numpy())
        before = dict(
            zip(touched.column("record").to_pylist(), touched.column("entity").to_pylist(), strict=True)
        )
        now = store.entities_of(np.array(list(before), np.int64))
        moved = int((now != np.array(list(before.values()), np.int64)).sum())
        return Added(table.num_rows, int(np.isin(after, had).sum()), moved, change)

    def settle(self, rows: Ints, cause: Cause) -> int | None:
        """Search again from the current entities of some sorted records; return the number of the change."""
        links = self.store.index.links(rows)
        first, second = np.searchsorted(rows, links.first), np.searchsorted(rows, links.second)
        records = LinkedRecords.of(
            len(rows),
            first,
            second,
            links.levels,
            self.knowledge.weights,
            np.asarray(rows, np.int64),
            record_sources(self.store, rows),
        )
        known = self.store.entities_of(rows)
        start = np.where(known >= 0, known, int(known.max(initial=0)) + 1 + np.arange(len(rows)))
        verdicts = Verdicts(self.store.decisions())
        labels = records.settle(np.arange(len(rows)), start, verdicts, seed=self._seed, team=self._team)
        return self.store.regroup(rows, labels, cause)

    def lookup(self, record: dict[str, Any], *, most: int = 5) -> list[Match]:
        """Return the entities that a record may belong to, the most probable first; nothing is changed.

        The first call reads keys and frequencies into memory; later calls take milliseconds.
        """
        warm = self._warmed()
        return self._lookup(warm, warm.table_of(record), None, most)

    def lookup_id(self, name: str, *, most: int = 5) -> list[Match]:
        """Return the entity of a record of the store, followed by others that it may belong to.

        Probabilities are those of `lookup` for the same values in a store without this record.
        """
        row = int(self.store.find_ids([name])[0])
        warm = self._warmed()
        found = self._lookup(warm, warm.content.slice(row, 1), row, self.store.n_records)
        own = int(warm.membership[row])
        return sorted(found, key=lambda match: match.entity != own)[:most]

    def _warmed(self) -> WarmIndex:
        if self._warm is None or len(self._warm.ids) != self.store.n_records:
            self._warm = WarmIndex(self.store, self.knowledge)
        self._warm.renew_entities()
        return self._warm

    def _lookup(self, warm: WarmIndex, query: pa.Table, row: int | None, most: int) -> list[Match]:
        """Return the entities for the values in ``query``; ``row`` is its row if it is in the store."""
        knowledge = self.knowledge
        _, partner = find_partners(find_keys(query, knowledge, warm), warm, 1)
        if row is not None:
            partner = partner[partner != row]
        elif not len(partner):
            return []
        stacked = pa.concat_tables([warm.content.take(pa.array(partner)), query])
        normal = with_frequencies(normalize(stacked, knowledge.fields), knowledge, warm)
        first = np.arange(len(partner))
        second = np.full(len(partner), len(partner))
        comparer = Comparer(normal, knowledge.comparisons, OverlapPairs(first, second))
        levels = comparer.levels(first, second)
        return self._matches(partner, levels, warm, row, most)

    def draws(self, count: int) -> NDArray[np.int64]:
        """Draw ``count`` clusterings of all records from the posterior: int64[draws, records].

        Decisions hold in all of them.
        """
        n = self.store.n_records
        records = load_records(self.store, self.knowledge)
        rows = np.arange(n)
        walk, unit = records.walk(rows, self.store.membership(), Verdicts(self.store.decisions()))
        drawn = draw_posterior(walk, self.knowledge.merges, draws=count, seed=self._seed)
        return np.asarray(drawn.labels[:, unit], np.int64)

    def _matches(
        self, partner: Ints, levels: NDArray[np.uint8], warm: WarmIndex, row: int | None, most: int
    ) -> list[Match]:
        knowledge = self.knowledge
        weights = knowledge.weights
        scores = weights.link_scores(levels)
        entity = warm.membership[partner]
        own = warm.membership[[] if row is None else [row]]
        names = np.union1d(entity, own)
        place = np.searchsorted(names, entity)
        sizes = warm.sizes(names)
        others = sizes - np.isin(names, own)
        linked = np.bincount(place, minlength=len(names))
        gain = np.bincount(place, scores, len(names)) + weights.unlinked * (others - linked)
        gain = np.where(others > 0, gain - weights.cluster, 0.0)  # a singleton has no other members
        odds = np.append(gain, 0.0 if others.all() else -np.inf) / knowledge.temperature
        chance = np.exp(odds - odds.max())
        chance /= chance.sum()
        tables = weights.tables()
        found = []
        for k in np.argsort(-gain, kind="stable")[:most].tolist():
            mine = np.flatnonzero(place == k)
            if not len(mine):  # its current entity, if none of its other members is a candidate
                name = warm.ids[row].as_py()
                found.append(Match(int(names[k]), int(sizes[k]), float(chance[k]), name, ()))
                continue
            best = int(mine[scores[mine].argmax()])
            reasons = [
                (f"{one.name}, {one.level_text(int(level))}", float(table[level]))
                for one, table, level in zip(knowledge.comparisons, tables, levels[best], strict=True)
            ]
            reasons = sorted((one for one in reasons if one[1]), key=lambda one: -abs(one[1]))
            name = warm.ids[int(partner[best])].as_py()
            found.append(Match(int(names[k]), int(sizes[k]), float(chance[k]), name, tuple(reasons)))
        return found

    def _compare_added(self, stacked: pa.Table, n_old: int, place: Ints, partner: Ints) -> StoredLinks:
        """Compare new records, which follow the old ones, with their partners and with each other."""
        knowledge = self.knowledge
        normal = with_frequencies(normalize(stacked, knowledge.fields), knowledge, self.store.index)
        among = knowledge.candidates(normal, threads=self._team.threads)
        fresh = among.first >= n_old  # both are new, because the first is the smaller
        pairs = np.unique(
            np.concatenate(
                [
                    np.column_stack([partner, n_old + place]),
                    np.column_stack([among.first[fresh], among.second[fresh]]),
                ]
            ),
            axis=0,
        )
        first, second = np.ascontiguousarray(pairs[:, 0]), np.ascontiguousarray(pairs[:, 1])
        comparer = Comparer(normal, knowledge.comparisons, OverlapPairs(first, second))
        return StoredLinks(first, second, comparer.all_levels(first, second, self._team))

    def _keep_model(self, run: int) -> None:
        model = save_model(self.store, self.knowledge, {"run": run, **self.knowledge.training})
        self.store.set_fact(BASE_MODEL, str(model))


def unused_parts(knowledge: Knowledge) -> list[str]:
    """Return sentences about the parts of a model that a store does not use."""
    found = []
    if knowledge.context is not None:
        found.append("the model scores pairs in context, too; a store uses its weights of pairs alone.")
    if knowledge.further:
        names = ", ".join(knowledge.further)
        found.append(
            f"the model has templates of its own ({names}); a store uses its weights of pairs alone."
        )
    return found


def load_records(store: Store, knowledge: Knowledge) -> LinkedRecords:
    """Read the links of all records, and score them with a model."""
    links, sources = store.index.links(), record_sources(store)
    weights = knowledge.weights
    return LinkedRecords.of(
        store.n_records, links.first, links.second, links.levels, weights, sources=sources
    )


def record_sources(store: Store, rows: Ints | None = None) -> NDArray[np.int32] | None:
    """Return the sources of some or all records if an entity has one record per source; else None."""
    column = store.fact(ONE_PER_SOURCE)
    if not column:
        return None
    return number_sources(store.records(rows, columns=[column]), column)


def load_model(store: Store, number: int | None = None) -> Knowledge:
    """Read a model of a store by its number; None for the current one."""
    content = store.model(number)
    if content is None:
        raise StoreError(f"{store.path}: has no model; its records were never resolved.")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.fw"
        path.write_bytes(content)
        return Knowledge.load(path)


def save_model(
    store: Store, knowledge: Knowledge, provenance: dict[str, Any], *, in_place_of: int | None = None
) -> int:
    """Save a model in a store as the current one; replace model ``in_place_of`` if it is given."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.fw"
        knowledge.save(path)
        return store.add_model(path.read_bytes(), provenance, in_place_of=in_place_of)
