"""`EntityResolver`: a scikit-learn style estimator for entity resolution."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from os import PathLike, fspath
from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from factorwise.apps.parameters import ParameterEstimator, not_fitted_error
from factorwise.apps.resolution.blocking import Rule
from factorwise.apps.resolution.blocking.joins import check_joinable
from factorwise.apps.resolution.blocking.rule_text import read_rules
from factorwise.apps.resolution.constraints import Constraints
from factorwise.apps.resolution.knowledge import Knowledge
from factorwise.apps.resolution.labelled import labelled_pairs
from factorwise.apps.resolution.linking import Linked, link, record_model
from factorwise.apps.resolution.memory import MemoryPlan, plan_memory
from factorwise.apps.resolution.record_items import TemplateMaker
from factorwise.apps.resolution.repeats import EQUAL_DIFFER, compared_columns, distinct_records
from factorwise.apps.resolution.resolving import (
    Keeping,
    default_budget,
    draw_posterior,
    run_mark,
    searched,
)
from factorwise.apps.resolution.results.answers import Resolution
from factorwise.apps.resolution.results.explaining import Explainer
from factorwise.apps.resolution.results.naming import entity_names
from factorwise.apps.resolution.schema.agreement import (
    check_columns,
    check_declared,
    check_named,
    check_sources_meet,
)
from factorwise.apps.resolution.schema.fields import FieldSpec, override, read_fields
from factorwise.apps.resolution.schema.kinds import infer_kinds, with_length
from factorwise.apps.resolution.training import (
    Blocked,
    entity_column,
    entity_numbers,
    ignore_blocks,
    learn,
    learn_without_labels,
)
from factorwise.apps.resolution.training.entity_samples import sample_entities
from factorwise.apps.resolution.training.link_learning import LinkTraining
from factorwise.apps.resolution.unlabelled.learning import Hints
from factorwise.apps.resolution.unlabelled.sources import infer_source, limits_of, number_sources
from factorwise.apps.resolution.updating import below, place
from factorwise.distributed.executors import Executor
from factorwise.distributed.mixing import Mixer
from factorwise.errors import InvalidArgumentError
from factorwise.inference.mcmc.shards.search import LinkSearch, SearchProgress
from factorwise.io.tables.reading import ids_of, read_table
from factorwise.kernels.compile.threads import Team, thread_count
from factorwise.learning.samplerank.learner import PassRecord
from factorwise.metrics.clustering import b_cubed
from factorwise.model.model import Model
from factorwise.validation import as_whole

Records = Any


class EntityResolver(ParameterEstimator):
    """Cluster records so that each cluster is one entity.

    Records are a data frame, an Arrow table, a list of dictionaries, or the path of a CSV, Parquet or JSON
    lines file or of a table in a DuckDB file. The kinds of columns are inferred; `fields` overrides them.

    fields
        Kinds of columns: a list of `FieldSpec`, or the path of a TOML file; other columns are
        inferred.
    rules
        Blocking rules, or texts such as ``"last name of author + year of born"``; None to choose them
        automatically, from the labels if there are any.
    about
        The column that names the entity, or the columns of first and last name. It is used only without
        labels, and inferred by default.
    templates
        User-defined templates in addition to the links: functions that take a `RecordItems` and return a
        template over its items, such as a `TallyTemplate` or a `PairTemplate`. Their weights are learned.
    template_weights
        The initial weights of each template, by name; zero by default. Without labels they are not changed.
    context
        Whether a second pass may also score pairs by the clusters of their records. It is used only if it
        improves the result on held-out entities.
    passes, steps
        The weights of user-defined templates, and the scale of the links relative to them, are learned with
        SampleRank in ``passes`` passes over the labelled records. Each pass starts from singletons and from
        the true entities, and takes ``steps`` steps per record.
    rounds, sweeps, seconds
        The annealed search takes this many rounds of this many sweeps (None for twelve rounds of two, or six
        of one from half a million records on), and starts no further round after this many seconds.
    random_state
        The seed. The same seed gives the same entities, whatever the number of threads.
    n_jobs
        Number of threads; None or -1 for all processors.

    Attributes
    ----------
    knowledge_
        The fitted model: fields, rules, comparisons and weights.
    model_
        The factor graph of the records that it was fitted on, or of those last resolved if the fitted model
        was loaded from a file: links with comparison levels, and with levels of context features if they are
        used, and user-defined templates, with the learned weights.
    history_
        One `PassRecord` per SampleRank pass; empty without user-defined templates. The quality of each
        training method that was compared is in ``knowledge_.training["methods"]``.
    """

    def __init__(
        self,
        *,
        fields: Sequence[FieldSpec] | str | PathLike[str] | None = None,
        rules: Sequence[Rule | str] | None = None,
        about: str | Sequence[str] = (),
        templates: Sequence[TemplateMaker] = (),
        template_weights: Mapping[str, ArrayLike] | None = None,
        context: bool = True,
        passes: int = 2,
        steps: int = 25,
        rounds: int | None = None,
        sweeps: int | None = None,
        seconds: float | None = None,
        random_state: int = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.fields = fields
        self.rules = rules
        self.about = about
        self.templates = templates
        self.template_weights = template_weights
        self.context = context
        self.passes = passes
        self.steps = steps
        self.rounds = rounds
        self.sweeps = sweeps
        self.seconds = seconds
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(
        self,
        records: Records,
        entity: ArrayLike | str | None = None,
        *,
        pairs: Any = None,
        id: str | None = None,  # noqa: A002 - what the command line calls it too
        leave_out: Sequence[str] = (),
        constraints: Constraints | None = None,
        mixer: Mixer | None = None,
        tell: Callable[[str], None] = lambda text: None,
        blocked: Blocked = ignore_blocks,
        watch: Callable[[PassRecord], None] | None = None,
    ) -> Self:
        """Fit the model to known entities, to labelled pairs, to both, or without labels.

        Without entities, weights are estimated from the records themselves, and from the pairs if there are
        any.

        entity
            The entity of each record, None where it is not known; or the name of the column that holds it.
        pairs
            Pairs of records and whether they belong to the same entity: a table with the columns ``id``,
            ``other`` and ``same``, or a list of such triples.
        id
            The column with the ids of the records, which is not compared; None to number records from 0 on.
        leave_out
            Columns that hold no information about the entity, such as ids.
        constraints
            Hard constraints, in rows of the records. Must-link and cannot-link pairs serve as training data
            if entities are known; one record per source works as in `resolve`. Without labels, sources are by
            default read from a column whose header says so, and whether there is one per source is inferred.
        mixer
            Run the SampleRank passes in shards on an executor, and mix the weights of the shards.
        tell, blocked, watch
            Called with a line on each stage of the work; with the candidates and the normal forms and
            entities of their records; and after each SampleRank pass.

        If at most half of the records are distinct, exact duplicates are merged before learning. If more than
        200,000 records are labelled, about that many are sampled as whole entities, unless labelled pairs or
        pair constraints are given.
        """
        self.check_parameters()
        table = read_table(records)
        hidden = [*leave_out, *(name for name in (entity, id) if isinstance(name, str))]
        check_named(table, hidden)
        sources = None if constraints is None else constraints.sources
        if constraints is not None:
            constraints.check_rows(table.num_rows)
        hints = None
        if entity is None and pairs is None:
            hints = self._hints(table, hidden, constraints or Constraints())
            hidden += [] if hints.source is None else [hints.source]
        fields = self._fields(table, hidden, alone=table.num_rows == 1 and entity is None)
        known = sources if hints is None else hints.sources
        if known is not None:
            check_sources_meet(table, _described_columns(fields), np.asarray(known))
        rules = None if self.rules is None else read_rules(self.rules, fields)
        labelled = None if pairs is None else labelled_pairs(pairs, _ids(table, id))
        numbers = None if entity is None else entity_numbers(table, entity)
        certain = constraints is not None and len(constraints.must) + len(constraints.cannot) > 0
        if numbers is not None and labelled is None and not certain:
            rows = sample_entities(numbers, self._seed())
            if rows is not None:
                tell(f"learning from the {len(rows):,} records of some entities")
                table, numbers = table.take(rows), numbers[rows]
                if constraints is not None and constraints.sources is not None:
                    constraints = replace(constraints, sources=constraints.sources[rows])
        distinct = None
        if not self.templates:
            found_sources = None if hints is None or hints.one_per_source else hints.sources
            distinct = distinct_records(table, compared_columns(fields), constraints, sources=found_sources)
        differ = distinct is not None and numbers is not None and distinct.contradict(numbers)
        if distinct is not None and not differ:
            tell(f"{len(distinct.rows):,} different records")
            table = table.take(distinct.rows)
            hints = None if hints is None else hints.rows(distinct.rows, np.bincount(distinct.of))
            labelled = None if labelled is None else distinct.pairs(labelled)
            numbers = None if numbers is None else distinct.entities(numbers)
            constraints = distinct.constraints(constraints)
        self.history_: list[PassRecord] = []
        passes: list[PassRecord] = []

        def note(record: PassRecord) -> None:
            passes.append(record)
            if watch is not None:
                watch(record)

        with Team(thread_count(self.n_jobs)) as team:
            if numbers is None:
                self.knowledge_ = learn_without_labels(
                    table,
                    fields,
                    pairs=labelled,
                    rules=rules,
                    templates=self.templates,
                    template_weights=self.template_weights,
                    hints=hints,
                    seed=self._seed(),
                    team=team,
                    tell=tell,
                    blocked=blocked,
                )
            else:
                self.knowledge_ = learn(
                    table,
                    fields,
                    numbers,
                    pairs=labelled,
                    constraints=constraints,
                    rules=rules,
                    templates=self.templates,
                    template_weights=self.template_weights,
                    context=self.context,
                    learner=LinkTraining(passes=self.passes, steps=self.steps),
                    search=self._search(table.num_rows),
                    seed=self._seed(),
                    team=team,
                    tell=tell,
                    mixer=mixer,
                    blocked=blocked,
                    on_pass=note,
                )
                if self.templates:
                    self.history_ = passes[-self.passes :]  # the final weights are from the last passes
        if differ:
            training = {**self.knowledge_.training, EQUAL_DIFFER: True}
            self.knowledge_ = replace(self.knowledge_, training=training)
        self._table, self._of_file = table, False
        return self

    @property
    def model_(self) -> Model:
        """The factor graph of the records as items; it is built on each access."""
        self._check_fitted()
        if not hasattr(self, "_table"):
            raise not_fitted_error("a model that was read from a file has no records: resolve some first.")
        with Team(thread_count(self.n_jobs)) as team:
            return record_model(self._table, self.knowledge_, templates=self.templates, team=team)

    def predict(self, records: Records) -> NDArray[np.int32]:
        """Return a cluster id for each record: records with the same id belong to the same entity."""
        return self.resolve(records).labels

    def score(self, records: Records, entity: ArrayLike | str) -> float:
        """Return the B-cubed F1 of the clusters, over the records whose entity is known."""
        table = read_table(records)
        truth = entity_numbers(table, entity)
        known = truth >= 0
        return b_cubed(truth[known], self.resolve(table).labels[known]).f1

    def resolve(
        self,
        records: Records,
        *,
        id: str | None = None,  # noqa: A002 - what the command line calls it too
        constraints: Constraints | None = None,
        posterior: bool = False,
        checkpoint: str | PathLike[str] | None = None,
        checkpoint_seconds: float = 60.0,
        executor: Executor | None = None,
        memory: int | str | None = None,
        planned: Callable[[MemoryPlan], None] = lambda plan: None,
        linked: Callable[[Linked], None] | None = None,
        watch: Callable[[SearchProgress], None] | None = None,
    ) -> Resolution:
        """Find the entities of the records.

        id
            The column with the ids of the records; None to number records from 0 on.
        constraints
            Hard constraints, in rows of the records.
        posterior
            Draw from the posterior as well: see `Resolution.pairs` and `Resolution.second_best`.
        checkpoint, checkpoint_seconds
            A folder, or the URL of an object store, for checkpoints: a run that was killed resumes where it
            stopped. Checkpoints are written after a group of components, or after a round if there is only
            one group, with at least this many seconds between them.
        executor
            Where joins, comparisons and searches run, such as
            `factorwise.distributed.ray_executor.RayExecutor`; None for threads of this process. The result
            does not depend on it.
        memory
            The memory limit, such as "4GB" or a number of bytes; None for half of the free memory. Beyond it,
            data go to scratch files (in TMPDIR), which are removed with the result: the records as well, so
            give a path or a `pyarrow.RecordBatchReader`. The entities do not depend on it.
        planned, linked, watch
            Called with the memory plan before the work, with the linked records before the search, and after
            each round of the search.
        """
        self._check_fitted()
        table = read_table(records)
        check_columns(table, self.knowledge_.fields, [] if id is None else [id])
        plan = self._plan_memory(memory, table)
        store = plan.open_columns()
        table = store.keep_table(table)
        store.rest()
        if getattr(self, "_of_file", False):
            self._table = table
        ids = _ids(table, id)
        if constraints is not None:
            constraints.check_rows(table.num_rows)
        said = constraints is not None and constraints.one_per_source
        constraints = limits_of(self.knowledge_.unlabelled, table, constraints)
        if constraints is not None and constraints.sources is not None:
            columns = _described_columns(self.knowledge_.fields)
            check_sources_meet(table, columns, np.asarray(constraints.sources))
        if constraints is not None:
            constraints.check(ids)
        seed, search = self._seed(), self._search(table.num_rows)
        run = run_mark(ids, self.knowledge_, search, seed)
        keeping = None if checkpoint is None else Keeping(fspath(checkpoint), checkpoint_seconds, run)
        if keeping is not None:
            keeping.check()  # before the work
        distinct = None
        if not self.templates and not self.knowledge_.training.get(EQUAL_DIFFER):
            is_found = constraints is not None and constraints.one_per_source and not said
            distinct = distinct_records(
                table,
                compared_columns(self.knowledge_.fields),
                constraints,
                sources=constraints.sources if constraints is not None and is_found else None,
            )
        store.rest()
        if distinct is not None:
            table = table.take(distinct.rows)
            plan = self._plan_memory(memory, table)
            store = plan.open_columns()
        check_joinable(table.num_rows)
        planned(plan)
        with Team(thread_count(self.n_jobs)) as team:
            found_links = link(
                table,
                self.knowledge_,
                constraints=constraints if distinct is None else distinct.constraints(constraints),
                templates=self.templates,
                team=team,
                executor=executor,
                columns=store,
            )
            if linked is not None:
                linked(found_links)
            found = searched(
                found_links, search, seed=seed, team=team, executor=executor, keeping=keeping, watch=watch
            )
            confidence = found_links.confidence(self.knowledge_.temperature, team, executor)
        labels = found_links.rows_of_units(found_links.labels)
        if distinct is not None:
            labels, confidence = labels[distinct.of], confidence[distinct.of]
        resolved = Resolution(
            ids=ids,
            entity=entity_names(ids, labels),
            labels=labels,
            confidence=confidence,
            linked=found_links,
            found=found,
            weighed=None if distinct is None else distinct.rows,
        )
        return self.draw(resolved) if posterior else resolved

    def draw(self, resolved: Resolution) -> Resolution:
        """Return the resolution with draws from its posterior, as `resolve` does with ``posterior=True``."""
        self._check_fitted()
        drawn = draw_posterior(resolved.linked.walk, self.knowledge_.merges, seed=self._seed())
        return replace(resolved, posterior=drawn)

    def explain(self, records: Records, *, id: str | None = None) -> Explainer:  # noqa: A002
        """Return an explainer of why two records, or a record and an entity, belong together or not.

        id
            The column with the ids of the records, which is not compared.
        """
        self._check_fitted()
        table, hidden = read_table(records), [] if id is None else [id]
        check_named(table, hidden)
        check_columns(table, self.knowledge_.fields, hidden)
        return Explainer(table, self.knowledge_, templates=self.templates, team=Team(1))

    def update(
        self,
        new: Records,
        old: Records,
        entity: ArrayLike | str,
        *,
        id: str | None = None,  # noqa: A002 - what the command line calls it too
        constraints: Constraints | None = None,
        posterior: bool = False,
    ) -> Resolution:
        """Assign new records to known entities; old records move only if the new evidence requires it.

        The result covers all records, the old ones first. Entities keep their names where possible: see
        `factorwise.apps.resolution.results.naming`. Only the new records, the records linked to them, those
        with constraints and the other records of their entities are resolved; all others have confidence NaN.
        Normal forms and blocking keys of all records are computed again.

        entity
            The name of the entity of each old record, None where it has none yet; or the column of ``old``.
        id
            The column with the ids in both tables; None to number the records, the old ones first.
        constraints
            Hard constraints, in rows of both tables, the old ones first.
        posterior
            Draw from the posterior of the records that were resolved.
        """
        self._check_fitted()
        before = read_table(old)
        names = entity_column(before, entity)
        columns = compared_columns(self.knowledge_.fields)
        after = read_table(new)
        if self.templates:  # templates may use columns that are not compared
            columns += [name for name in before.column_names if name in after.column_names]
        for part in (before, after):
            check_columns(part, self.knowledge_.fields, [] if id is None else [id])
        if self.knowledge_.unlabelled is not None and self.knowledge_.unlabelled.source is not None:
            columns.append(self.knowledge_.unlabelled.source)
        table = below(before, after, columns, id)
        is_new = np.repeat([0, 1], [before.num_rows, after.num_rows])
        check_sources_meet(table, _described_columns(self.knowledge_.fields), is_new)
        ids = _ids(table, id)
        constraints = limits_of(self.knowledge_.unlabelled, table, constraints)
        if constraints is not None:
            constraints.check(ids)
        known = pa.concat_arrays([names, pa.nulls(table.num_rows - len(names), names.type)])
        with Team(thread_count(self.n_jobs)) as team:
            numbers = entity_numbers(table, known)
            placed = place(
                table,
                numbers,
                self.knowledge_,
                self._search(table.num_rows),
                constraints=constraints,
                templates=self.templates,
                seed=self._seed(),
                team=team,
            )
            chances = placed.linked.confidence(self.knowledge_.temperature, team)
        confidence = np.full(table.num_rows, np.nan, np.float32)
        confidence[placed.weighed] = chances
        resolved = Resolution(
            ids=ids,
            entity=entity_names(ids, placed.labels, known),
            labels=placed.labels,
            confidence=confidence,
            linked=placed.linked,
            found=placed.found,
            weighed=placed.weighed,
        )
        return self.draw(resolved) if posterior else resolved

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted model to a file, ``NAME.fw``, which holds JSON and arrays but no pickle."""
        self._check_fitted()
        self.knowledge_.save(path, self._seed())

    @classmethod
    def load(cls, path: str | PathLike[str], **parameters: Any) -> Self:
        """Load a model from `save` or the command line; ``parameters`` go to the constructor."""
        made = cls(**parameters)
        made.knowledge_ = Knowledge.load(path)
        made.history_, made._of_file = [], True
        return made

    def _fields(self, table: pa.Table, hidden: Sequence[str], *, alone: bool) -> list[FieldSpec]:
        """Return the specs of all columns; a single record (``alone``) needs no column to compare."""
        found = infer_kinds(table, leave_out=hidden)
        if self.fields is not None:
            given = self.fields
            if isinstance(given, str | PathLike):
                given = read_fields(given, table.column_names)
            given = list(given)
            check_declared(table, given)
            found = [with_length(one, table.column(one.name)) for one in override(found, given)]
        if not alone and all(one.kind == "ignore" for one in found):
            said = "; ".join(f"{one.name}: {one.note}" for one in found if one.note)
            raise InvalidArgumentError(
                f"no column has anything to compare{f' ({said})' if said else ''}. Give records with other"
                " columns, or say what the columns are."
            )
        return found

    def _hints(self, table: pa.Table, hidden: Sequence[str], constraints: Constraints) -> Hints:
        """Return the hints for learning without labels; infer a column of sources if none are given."""
        about = (self.about,) if isinstance(self.about, str) else tuple(self.about)
        column, sources = None, constraints.sources
        if sources is None:
            column = infer_source(table, [*hidden, *about])
            sources = None if column is None else number_sources(table, column)
        return Hints(about, sources, column, constraints.one_per_source)

    def _plan_memory(self, memory: int | str | None, table: pa.Table) -> MemoryPlan:
        """Plan memory; templates and models fitted without labels keep everything in memory."""
        compared = compared_columns(self.knowledge_.fields)
        pairs = self.knowledge_.budget(table.num_rows)
        in_context = self.knowledge_.context is not None
        plan = plan_memory(memory, table.select(compared).nbytes, pairs, context=in_context)
        plain = not self.templates and self.knowledge_.unlabelled is None
        return plan if plain else plan._replace(disk=0)

    def _search(self, n_records: int) -> LinkSearch:
        rounds, sweeps = default_budget(n_records)
        return LinkSearch(
            rounds=rounds if self.rounds is None else self.rounds,
            sweeps=sweeps if self.sweeps is None else self.sweeps,
            seconds=self.seconds,
        )

    def _seed(self) -> int:
        return as_whole("random_state", self.random_state)

    def _check_fitted(self) -> None:
        if not hasattr(self, "knowledge_"):
            raise not_fitted_error("this resolver has learned nothing yet: call fit, or load a model.")


def _ids(table: pa.Table, column: str | None) -> pa.Array:
    return pa.array(np.arange(table.num_rows)) if column is None else ids_of(table, column)


def _described_columns(fields: Sequence[FieldSpec]) -> list[str]:
    """Return the compared columns that describe a record, without sources and pair scores."""
    return [field.name for field in fields if field.kind not in ("ignore", "source", "scores")]
