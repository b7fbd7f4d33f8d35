"""Measuring without labels, step by step: contexts, sources, anchors, evidence, prior, strata."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from factorwise.apps.resolution.comparisons import HasPairs
from factorwise.apps.resolution.unlabelled.about import About
from factorwise.apps.resolution.unlabelled.anchors import (
    CHANCE,
    Anchors,
    Candidates,
    context_columns,
    find_anchors,
    null_pairs,
    share_context,
)
from factorwise.apps.resolution.unlabelled.evidence import (
    SLOPE,
    ColumnEvidence,
    Evidence,
    add_up,
    calibrate,
    fit_column,
)
from factorwise.apps.resolution.unlabelled.identity import CONFLICT, TOP
from factorwise.apps.resolution.unlabelled.model import PreparedPairs, UnlabelledModel
from factorwise.apps.resolution.unlabelled.prior import (
    STRATA,
    Prior,
    level_frequencies,
    seen_among_candidates,
    strata_shifts,
)
from factorwise.apps.resolution.unlabelled.sources import is_one_per_source
from factorwise.apps.resolution.unlabelled.views import Views
from factorwise.types import Floats, Ints

FEWEST_ANCHORS = 30.0  # weight, below which other columns are not believed
RANDOM = 100_000  # random pairs, which say how frequent levels of identities are
MIXTURE_ROUNDS = 8


class Sums(NamedTuple):
    """Anchors and null pairs with their sums S, and the weights of the anchors."""

    anchors: NDArray[np.float64]
    weight: NDArray[np.float64]
    null: NDArray[np.float64]


class Fitted(NamedTuple):
    """A model, and the candidates that it was fitted on: levels of identities and evidence C.

    Where each source has an entity once, the candidates are those across sources.
    """

    model: UnlabelledModel
    prepared: PreparedPairs
    pairs: Candidates
    levels: NDArray[np.uint8]
    worth: NDArray[np.float64]

    def log_odds(self, model: UnlabelledModel) -> NDArray[np.float64]:
        """Return the log odds of the candidates by the model, or by one with another rule."""
        self.prepared.model = model
        return self.prepared.combine(*self.pairs, self.levels, self.worth)


def fit_unlabelled(
    views: Views,
    about: About,
    candidates: HasPairs,
    *,
    source: str | None = None,
    one_per_source: bool = False,
    seed: int = 0,
) -> Fitted:
    """Measure how the columns of a table behave within an entity and between two.

    source
        The column that has the sources, if it is one of the table.
    one_per_source
        Whether the user said that each source has an entity once; else it is looked for.
    """
    rng = np.random.default_rng([seed, 21])
    contexts = context_columns(views, rng)
    pool = Candidates(np.asarray(candidates.first, np.int64), np.asarray(candidates.second, np.int64))
    levels = views.identity.levels(*pool)
    null = null_pairs(views, contexts, rng)
    anchors = find_anchors(views, contexts, pool, levels, one_per_source, rng)
    columns, sums = fit_evidence(views, anchors, null, mentions=bool(contexts))
    evidence = Evidence(tuple(columns), calibrate(*sums))
    if views.sources is not None and not one_per_source:
        one_per_source = is_one_per_source(views, evidence, pool, levels, contexts)
        if one_per_source:
            anchors = find_anchors(views, contexts, pool, levels, one_per_source, rng)
            columns, sums = fit_evidence(views, anchors, null, mentions=bool(contexts))
            evidence = Evidence(tuple(columns), calibrate(*sums))
    if one_per_source and views.sources is not None:
        across = np.flatnonzero(views.sources[pool.first] != views.sources[pool.second])
        pool, levels = Candidates(pool.first[across], pool.second[across]), levels[across]
    worth = evidence.calibration(add_up(columns, views.witnesses, views.frequencies, *pool))
    seen = float(sums.weight.sum())
    model = UnlabelledModel(
        about,
        fit_prior(views, worth, anchors, contexts, pool, levels, rng),
        evidence,
        tuple(views.witnesses[k].name for k in contexts),
        is_safe=bool(columns) and seen < FEWEST_ANCHORS,
        one_per_source=one_per_source,
        source=source,
        report={
            "about": about.phrase,
            "why": about.reason,
            "anchors": round(seen, 1),
            "null_pairs": len(sums.null),
            "chance": round(anchors.chance, 3),
            "share": round(anchors.share, 3),
            "columns": [one.name for one in columns],
        },
    )
    return Fitted(model, PreparedPairs(model, views), pool, levels, worth)


def fit_evidence(
    views: Views, anchors: Anchors, null: tuple[Ints, Ints], *, mentions: bool
) -> tuple[list[ColumnEvidence], Sums]:
    """Return the weights of columns, and the sums of anchors and null pairs.

    A second pass leaves out null pairs that look like one entity (not of mentions, where they cannot be).
    Where anchors may be chance, they are a mixture of one entity and null, told apart by EM.
    """
    witnesses, frequencies = views.witnesses, views.frequencies
    of_anchors = [one.levels(anchors.first, anchors.second) for one in witnesses]
    of_null = [one.levels(*null) for one in witnesses]
    weight, kept = anchors.weight.copy(), np.ones(len(null[0]), bool)
    is_chancy = anchors.chance > CHANCE
    rounds = MIXTURE_ROUNDS if is_chancy else 2
    share = 1.0 - anchors.chance
    limit = np.log(views.n_records / max(anchors.partners, 1e-3)) + 1.0
    columns: list[ColumnEvidence] = []
    for number in range(rounds):
        columns = []
        for k, witness in enumerate(witnesses):
            fair = anchors.column != k  # not those that were found because they are equal in this column
            columns.append(fit_column(witness, of_anchors[k][fair], weight[fair], of_null[k][kept]))
        s_anchors = add_up(columns, witnesses, frequencies, anchors.first, anchors.second)
        s_null = add_up(columns, witnesses, frequencies, *null)
        if is_chancy and len(s_anchors):
            odds = np.log(share) - np.log1p(-share) + SLOPE * np.clip(s_anchors, -20.0, 20.0)
            weight = anchors.weight * 0.5 * (1.0 + np.tanh(0.5 * odds))
            share = float(np.clip(weight.sum() / anchors.weight.sum(), 0.02, 0.98))
        if not mentions and number + 1 < rounds:
            kept = s_null <= limit
    return columns, Sums(s_anchors, weight, s_null[kept])


def fit_prior(
    views: Views,
    worth: Floats,
    anchors: Anchors,
    contexts: Sequence[int],
    pool: Candidates,
    levels: NDArray[np.uint8],
    rng: np.random.Generator,
) -> Prior:
    """Return what identities say, corrected by the evidence C of the candidates."""
    identity, n = views.identity, views.n_records
    usable = np.ones(len(levels), bool)
    if contexts:
        usable = ~(share_context(views, contexts, *pool) | (levels <= CONFLICT))
    size = np.bincount(identity.code[identity.known], minlength=len(identity.namesakes) + 1)
    weight = 1.0 / np.maximum(size[identity.code[pool.first]], size[identity.code[pool.second]]).clip(1)
    partners = max(anchors.partners, 1e-4)
    sure = usable & (worth + np.log(partners / max(n - 1, 1)) > 0.0) & (levels > 0)
    random_levels = identity.levels(*views.random_pairs(RANDOM, rng))
    same, other = level_frequencies(identity.is_person, levels[sure], weight[sure], random_levels)
    counts = np.bincount(levels[usable], minlength=TOP + 1)
    other = seen_among_candidates(other, same, counts, partners, n)
    share = max(anchors.share * (1.0 - anchors.chance), 1e-4)
    flat = np.zeros((TOP + 1, STRATA))
    alone = not identity.is_person and not views.witnesses
    prior = Prior(identity.is_person, share, partners, same, other, np.arange(STRATA - 1.0), flat, alone)
    if not views.witnesses:
        return prior
    rows = np.flatnonzero(usable)
    expected = identity.expected(pool.first[rows], pool.second[rows])
    edges, shifts = strata_shifts(prior, levels[rows], expected, worth[rows], weight[rows], n)
    return replace(prior, edges=edges, shifts=shifts)
