"""`CoreferenceResolver`: a coreference estimator with the interface of scikit-learn."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from factorwise.apps.coreference.documents import (
    Discourse,
    Document,
    discourses,
    document_from,
    told_of_mentions,
)
from factorwise.apps.coreference.pair_features import pair_table
from factorwise.apps.coreference.ranking import AntecedentRanker, Antecedents, train_ranker
from factorwise.apps.coreference.resolution import (
    AGGREGATES,
    discourse_model,
    in_threads,
    search,
    settle,
    training_world,
)
from factorwise.apps.learned_estimator import LearnedEstimator
from factorwise.errors import InvalidArgumentError, require
from factorwise.inference.mcmc.acceptances import AcceptanceName
from factorwise.io.models.learned import plain_settings
from factorwise.kernels.compile.threads import thread_count
from factorwise.learning.samplerank.learner import Callback, SampleRank
from factorwise.learning.samplerank.preferences import MetricName
from factorwise.learning.updates import UpdateRule, capped_rule
from factorwise.metrics.coreference import ClusteringScores, score_documents
from factorwise.validation import check_count

KIND = "coreference"

Documents = Any  # an iterable of documents or of mappings: `_as_documents` checks them
Clusters = list[list[int | None]]


class CoreferenceResolver(LearnedEstimator):
    """Cluster the mentions of documents into entities, with cluster-wise factors and an antecedent ranker.

    The ranker learns which earlier mention, if any, each mention refers back to. SampleRank learns the
    weights of features of whole clusters, which include the ranker's cross-fitted scores. The final entities
    combine both. If there is only one document (or topic) to learn from, no ranker is trained.

    Documents are records with ``tokens``, ``sentences`` and ``mentions`` (each with ``start``, ``end`` and,
    for learning, ``entity``), or `Document` objects from `read_documents`.

    scope
        "document" to cluster each document separately; "topic" to cluster all documents of a topic together.
    types, without_types
        Types of mentions to keep (None for all), and types to leave out.
    aggregates
        How the features of pairs are aggregated over a cluster: any of count, all, exists, majority, mean,
        per member, linked.
    update, cap, accept, temperature, metric
        Settings of SampleRank: the update rule; for "mira" and other passive-aggressive rules, the maximum
        step size of an update (smaller is slower and less noisy); the acceptance rule of the walk and its
        temperature; and the metric ("b-cubed", "pairwise", "rand") that decides which of two neighboring
        clusterings is better.
    passes, steps, restart, truth_starts
        Each document is walked ``passes`` times with ``steps`` steps, either restarting each time (from the
        true clustering with probability ``truth_starts``) or continuing.
    search_steps
        Number of annealing steps per mention at prediction.
    random_state
        Seed. Weights and entities depend on it, but not on the number of threads.
    n_jobs
        Number of threads; None or -1 for all processors.
    verbose
        Show progress.

    Attributes
    ----------
    weights_, weight_names_
        The learned weights, and the names of their features.
    history_
        The learning curve, with one `PassRecord` per pass.
    ranker_
        The antecedent ranker; None if there was only one document to learn from.
    """

    _kind = KIND
    _kept = ("scope", "types", "without_types", "aggregates", "search_steps", "random_state")
    _noun = "resolver"
    _other_features = " or with another scope or other aggregates: set those, or train it again."

    def __init__(
        self,
        *,
        scope: Literal["document", "topic"] = "document",
        types: Collection[str] | None = None,
        without_types: Collection[str] = (),
        aggregates: Sequence[str] = AGGREGATES,
        update: str | UpdateRule = "mira",
        cap: float = 0.003,
        accept: AcceptanceName = "metropolis",
        temperature: float = 0.1,
        metric: MetricName = "b-cubed",
        passes: int = 10,
        steps: int = 4_000,
        restart: bool = True,
        truth_starts: float = 0.5,
        search_steps: int = 500,
        random_state: int = 0,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.scope = scope
        self.types = types
        self.without_types = without_types
        self.aggregates = aggregates
        self.update = update
        self.cap = cap
        self.accept = accept
        self.temperature = temperature
        self.metric = metric
        self.passes = passes
        self.steps = steps
        self.restart = restart
        self.truth_starts = truth_starts
        self.search_steps = search_steps
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, documents: Documents, y: None = None, *, callback: Callback | None = None) -> Self:
        """Learn from documents whose mentions have an ``entity``.

        callback
            Called after each pass with its record and the current weights; training stops if it returns True.
        """
        rule = capped_rule(self.update, self.cap)
        learner = SampleRank(update=rule, accept=self.accept, temperature=self.temperature)
        everything = self._discourses(documents)
        together = [discourse for discourse in everything if len(discourse.places) > 1] or everything
        tables = in_threads(pair_table, together, thread_count(self.n_jobs))
        self.ranker_: AntecedentRanker | None = None
        seen: Sequence[Antecedents | None] = [None] * len(together)
        if len(together) > 1:
            self.ranker_, seen = train_ranker(together, tables, seed=self._seed())
        worlds = [
            training_world(
                discourse,
                aggregates=tuple(self.aggregates),
                metric=self.metric,
                table=table,
                antecedents=antecedents,
            )
            for discourse, table, antecedents in zip(together, tables, seen, strict=True)
        ]
        learned = learner.fit(
            worlds,
            passes=self.passes,
            steps=self.steps,
            restart=self.restart,
            truth_starts=self.truth_starts,
            seed=self._seed(),
            progress=bool(self.verbose),
            callback=callback,
        )
        self._keep(learned, worlds[0].model)
        self.settings_ = plain_settings(
            {
                "scope": self.scope,
                "types": None if self.types is None else sorted(self.types),
                "without_types": sorted(self.without_types),
                "aggregates": list(self.aggregates),
                "search_steps": self.search_steps,
                "random_state": self._seed(),
                "mentions_told": told_of_mentions(_as_documents(documents)),
                "learning": {
                    "update": rule.as_dict(),
                    "accept": self.accept,
                    "temperature": self.temperature,
                    "metric": self.metric,
                    "passes": self.passes,
                    "steps": self.steps,
                    "restart": self.restart,
                    "truth_starts": self.truth_starts,
                },
            }
        )
        return self

    def predict(self, documents: Documents) -> Clusters:
        """Return the entity number of each mention, for each document.

        Only documents that are clustered together share entity numbers. The number is None for mentions that
        were left out (by type, or because they are beyond the fully annotated part of a document).
        """
        self._check_fitted()
        known = [replace(one) for one in _as_documents(documents)]  # copies, so that ids are unique
        together = self._discourses(known)
        found = in_threads(self._resolve, together, thread_count(self.n_jobs))
        place = {id(document): number for number, document in enumerate(known)}
        answer: Clusters = [[None] * len(document.mentions) for document in known]
        first = 0
        for discourse, labels in zip(together, found, strict=True):
            for (d, m), label in zip(discourse.places, labels.tolist(), strict=True):
                answer[place[id(discourse.documents[d])]][m] = first + label
            first += int(labels.max()) + 1
        return answer

    def score(self, documents: Documents, y: None = None) -> float:
        """Return the B-cubed F1 of the predicted entities, pooled over the documents."""
        return self.scores(documents).b_cubed.f1

    def scores(self, documents: Documents) -> ClusteringScores:
        """Return all metrics of the predicted entities, pooled over the documents."""
        self._check_fitted()
        together = self._discourses(_as_documents(documents))
        found = in_threads(self._resolve, together, thread_count(self.n_jobs))
        return score_documents([discourse.truth() for discourse in together], found)

    def _resolve(self, discourse: Discourse) -> NDArray[np.int64]:
        check_count("search_steps", self.search_steps)
        table = pair_table(discourse)
        antecedents = None
        if self.ranker_ is not None:
            if self.ranker_.plain.shape[1] != table.n_features:
                raise self._unlike_training()
            antecedents = self.ranker_.rank(discourse, table)
        model = discourse_model(discourse, self.aggregates, table=table, antecedents=antecedents)
        self._give_weights(model)
        n = len(discourse.places)
        found = search(model, n, steps=self.search_steps * n, seed=self._seed())
        return found if antecedents is None else settle(antecedents, found)

    def _parts(self) -> dict[str, NDArray[Any]]:
        return {} if self.ranker_ is None else self.ranker_.parts()

    def _take_parts(self, parts: Mapping[str, NDArray[Any]]) -> bool:
        self.ranker_ = None
        if parts:
            self.ranker_ = AntecedentRanker.from_parts(parts)
        return bool(parts) == (self.ranker_ is not None)

    def _discourses(self, documents: Documents) -> list[Discourse]:
        for name in ("types", "without_types"):
            given = getattr(self, name)
            require(not isinstance(given, str), name, given, "a list of types")
        return discourses(
            _as_documents(documents), scope=self.scope, types=self.types, without_types=self.without_types
        )


def _as_documents(documents: Documents) -> list[Document]:
    if isinstance(documents, Document | Mapping | str):
        raise InvalidArgumentError(
            f"documents must be a list, but a single {type(documents).__name__} was given: put it into one,"
            " or read a file with read_documents."
        )
    return [
        one if isinstance(one, Document) else document_from(one, where=f"document {number}", name=str(number))
        for number, one in enumerate(documents)
    ]
