"""`PairClusterer`: cluster pairs that any tool has scored."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Self

import numpy as np

from factorwise.apps.resolution.constraints import Constraints
from factorwise.apps.resolution.linked_items import LinkedItems, Links, link_items
from factorwise.apps.resolution.resolving import default_budget, draw_posterior
from factorwise.apps.resolution.results.answers import Resolution
from factorwise.apps.resolution.results.naming import entity_names
from factorwise.apps.resolution.scored_pairs.constants import PairConstants, estimate_constants
from factorwise.apps.resolution.scored_pairs.tables import ScoredPairs, read_scored_pairs
from factorwise.errors import require
from factorwise.inference.mcmc.shards.component_search import LinkWeights
from factorwise.inference.mcmc.shards.search import LinkSearch, SearchProgress
from factorwise.kernels.compile.threads import Team, thread_count

ROUNDS = 6  # rounds of the search; with fixed scores, more rounds gain next to nothing


class PairClusterer:
    """Clusters records into entities from scored pairs, with the same search as `EntityResolver`.

    The score of a clustering is a sum over all pairs within entities: of the damped scores of
    scored pairs (see `PairConstants.scores`), and of the unlinked pair weight for other pairs. One false
    pair seldom chains two entities, because the missing pairs between them count against a merge.

    >>> pairs = [("a", "b", 0.99), ("b", "c", 0.97), ("a", "c", 0.8), ("c", "d", 0.1)]
    >>> table = [dict(zip(("id", "other", "probability"), pair)) for pair in pairs]
    >>> PairClusterer().fit(table).cluster(table).entity.to_pylist()
    ['a', 'a', 'a', 'd']

    offset, unlinked, temperature
        The constants (see `PairConstants`); None to let `fit` estimate them.
    rounds, sweeps, seconds
        Settings of the search, see `LinkSearch`; None for the defaults.
    random_state
        Seed of every random stream.
    n_jobs
        Number of threads; the result does not depend on it.

    After `fit`, ``constants_`` holds the constants and how they were estimated.
    """

    def __init__(
        self,
        *,
        offset: float | None = None,
        unlinked: float | None = None,
        temperature: float | None = None,
        rounds: int | None = None,
        sweeps: int | None = None,
        seconds: float | None = None,
        random_state: int = 0,
        n_jobs: int | None = None,
    ) -> None:
        for name, value in (("offset", offset), ("unlinked", unlinked), ("temperature", temperature)):
            require(value is None or np.isfinite(value), name, value, "a finite number, or None")
        require(temperature is None or temperature > 0.0, "temperature", temperature, "greater than zero")
        self.offset, self.unlinked, self.temperature = offset, unlinked, temperature
        self.rounds, self.sweeps, self.seconds = rounds, sweeps, seconds
        self.random_state, self.n_jobs = random_state, n_jobs

    def fit(
        self,
        pairs: Any,
        labels: Any = None,
        *,
        constraints: Constraints | None = None,
        on_message: Callable[[str], object] = lambda text: None,
    ) -> Self:
        """Estimate the constants, with labels if there are any.

        pairs
            `ScoredPairs`, or a table that `read_scored_pairs` reads.
        labels
            Labels of some records: a table with columns ``id``, ``entity``, or ``id``, ``other``, ``same``.
        constraints
            Hard constraints, in rows of the records.
        on_message
            Called with a line of text on each stage of the work.
        """
        scored = _scored(pairs)
        estimate = estimate_constants(scored, seed=self.random_state)
        constants = self._with_given(estimate)
        if labels is not None:
            from factorwise.apps.resolution.scored_pairs.learning import learn_constants, read_labels

            known = read_labels(labels, scored.ids)
            limits = constraints or Constraints()
            limits.check_rows(len(scored.ids))
            with Team(thread_count(self.n_jobs)) as team:
                constants = learn_constants(
                    lambda tried: self._search(scored, tried, limits, team=team),
                    constants,
                    known,
                    seed=self.random_state,
                    team=team,
                    on_message=on_message,
                )
            constants = self._with_given(constants)
        self.constants_ = constants
        return self

    def cluster(
        self,
        pairs: Any,
        *,
        constraints: Constraints | None = None,
        posterior: bool = False,
        on_round: Callable[[SearchProgress], None] | None = None,
    ) -> Resolution:
        """Find the entities; if `fit` was not called, estimate the constants first.

        pairs, constraints
            The same as in `fit`.
        posterior
            Draw from the posterior as well: see `Resolution.pairs` and `Resolution.second_best`.
        on_round
            Called after each round of the search.
        """
        scored, limits = _scored(pairs), constraints or Constraints()
        limits.check_rows(len(scored.ids))
        limits.check(scored.ids)
        if not hasattr(self, "constants_"):
            self.fit(scored)
        constants = self.constants_
        with Team(thread_count(self.n_jobs)) as team:
            linked, found = self._search(scored, constants, limits, team=team, on_round=on_round)
            confidence = linked.confidence(constants.temperature, team)
        labels = linked.rows_of_units(linked.labels)
        answer = Resolution(
            ids=scored.ids,
            entity=entity_names(scored.ids, labels),
            labels=labels,
            confidence=confidence,
            linked=linked,
            found=found,
        )
        return self.draw(answer) if posterior else answer

    def draw(self, answer: Resolution) -> Resolution:
        """Return a resolution with posterior draws, as `cluster` does with ``posterior=True``."""
        drawn = draw_posterior(answer.linked.walk, self.constants_.merges, seed=self.random_state)
        return replace(answer, posterior=drawn)

    def _search(
        self,
        scored: ScoredPairs,
        constants: PairConstants,
        limits: Constraints,
        *,
        team: Team,
        on_round: Callable[[SearchProgress], None] | None = None,
    ) -> tuple[LinkedItems, Any]:
        linked = link_pairs(scored, constants, limits)
        search = LinkSearch(
            rounds=ROUNDS if self.rounds is None else self.rounds,
            sweeps=default_budget(scored.n_records)[1] if self.sweeps is None else self.sweeps,
            seconds=self.seconds,
        )
        found = search.run(linked.walk, seed=self.random_state, team=team, watch=on_round)
        return linked, found

    def _with_given(self, constants: PairConstants) -> PairConstants:
        """Replace constants by those that were given to the constructor."""
        named = {"offset": self.offset, "unlinked": self.unlinked, "temperature": self.temperature}
        given = {name: float(value) for name, value in named.items() if value is not None}
        if "offset" in given and "unlinked" in given:
            given["reason"] = "given"  # type: ignore[assignment]
        return constants._replace(**given)  # type: ignore[arg-type]


def link_pairs(scored: ScoredPairs, constants: PairConstants, limits: Constraints) -> LinkedItems:
    """Return the items of the records, and their links with scores."""
    scores = constants.scores(scored.log_odds)
    links = Links(scored.first, scored.second, scores)
    return LinkedItems(*link_items(scored.n_records, links, limits, LinkWeights(constants.unlinked)))


def _scored(pairs: Any) -> ScoredPairs:
    return pairs if isinstance(pairs, ScoredPairs) else read_scored_pairs(pairs)
