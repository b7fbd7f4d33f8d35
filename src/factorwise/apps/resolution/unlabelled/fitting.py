"""Fit a model without labels, in steps: contexts, sources, anchors, evidence, prior, strata."""

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
    CandidatePairs,
    context_columns,
    find_anchors,
    null_pairs,
    share_context,
)
from factorwise.apps.resolution.unlabelled.evidence import (
    SLOPE,
    ColumnEvidence,
    Evidence,
    ScoreCurve,
    add_up,
    calibrate,
    fit_column,
)
from factorwise.apps.resolution.unlabelled.identity import CONFLICT, TOP
from factorwise.apps.resolution.unlabelled.model import PreparedPairs, UnlabelledModel
from factorwise.apps.resolution.unlabelled.prior import (
    DEFAULT_PAIRS,
    STRATA,
    LevelPrior,
    count_persons_alone,
    count_texts_alone,
    divide_equal_and_near,
    level_frequencies,
    seen_among_candidates,
    strata_shifts,
)
from factorwise.apps.resolution.unlabelled.related import NO_RELATED, find_related
from factorwise.apps.resolution.unlabelled.sources import is_one_per_source
from factorwise.apps.resolution.unlabelled.views import Views
from factorwise.types import Floats, Ints

FEWEST_ANCHORS = 30.0  # total weight of anchors below which the safe rule is used
FEWEST_SEPARATED = 10.0  # the same if unconfirmed anchors were discarded
RANDOM = 100_000  # random pairs from which the frequencies of identity levels are estimated
MIXTURE_ROUNDS = 8  # EM rounds
FEWEST_RELATED = 20  # least number of related pairs for which they are modelled
SEPARATED = 0.9  # least share of the confirmed anchors with sums that chance does not explain


class Sums(NamedTuple):
    """The sums S of anchors and of null pairs, and the weights of the anchors."""

    anchors: NDArray[np.float64]
    weight: NDArray[np.float64]
    null: NDArray[np.float64]

    def calibrate(self, null: Floats | None = None) -> ScoreCurve:
        """Fit the calibration curve, against these null pairs or other non-matching pairs."""
        return calibrate(self.anchors, self.weight, self.null if null is None else null)


class UnlabelledFit(NamedTuple):
    """A fitted model, and its training candidates with their identity levels and evidence C (``worth``).

    If each source lists an entity at most once, only candidates across sources are included.
    """

    model: UnlabelledModel
    views: Views
    pairs: CandidatePairs
    levels: NDArray[np.uint8]
    worth: NDArray[np.float64]

    def log_odds(self, model: UnlabelledModel) -> NDArray[np.float64]:
        """Return the log odds of the candidates by a variant of the model, such as its safe rule."""
        return PreparedPairs(model, self.views).combine(*self.pairs, self.levels, self.worth)


def fit_unlabelled(
    views: Views,
    about: About,
    candidates: HasPairs,
    *,
    source: str | None = None,
    one_per_source: bool = False,
    seed: int = 0,
) -> UnlabelledFit:
    """Fit the model: how the columns of a table agree in matching and in non-matching pairs.

    source
        The column with the source of each record, if it is a column of the table.
    one_per_source
        True if the user stated that each source lists an entity at most once; otherwise it is inferred.
    """
    rng = np.random.default_rng([seed, 21])
    contexts = context_columns(views, rng)
    pool = CandidatePairs(np.asarray(candidates.first, np.int64), np.asarray(candidates.second, np.int64))
    levels = views.identity.levels(*pool)
    null = null_pairs(views, contexts, rng)
    anchors = find_anchors(views, contexts, pool, levels, one_per_source, rng)
    columns, sums = fit_evidence(views, anchors, null, mentions=bool(contexts))
    evidence = Evidence(tuple(columns), sums.calibrate())
    if views.sources is not None and not one_per_source:
        one_per_source = is_one_per_source(views, evidence, pool, levels, contexts)
        if one_per_source:
            anchors = find_anchors(views, contexts, pool, levels, one_per_source, rng)
            columns, sums = fit_evidence(views, anchors, null, mentions=bool(contexts))
            evidence = Evidence(tuple(columns), sums.calibrate())
    if one_per_source and views.sources is not None:
        across = np.flatnonzero(views.sources[pool.first] != views.sources[pool.second])
        pool, levels = CandidatePairs(pool.first[across], pool.second[across]), levels[across]
    seen, is_plain = float(sums.weight.sum()), bool((sums.weight > 0.0).all())
    anchors = weigh_anchors(anchors, sums)
    added = add_up(columns, views.witnesses, views.frequencies, *pool)
    worth = evidence.worth(added, levels)
    prior = fit_prior(views, worth, anchors, contexts, pool, levels, rng)
    related = NO_RELATED  # mentions with different names are never linked, whatever they share
    if not contexts:
        related = find_related(views, pool, levels, columns, evidence.calibration, prior, anchors, rng)
    if len(related.rows) >= FEWEST_RELATED:
        evidence = replace(
            evidence,
            related=sums.calibrate(added[related.rows]),
            related_share=prior.share_of_others(related.counts, views.n_records),
        )
        worth = evidence.worth(added, levels)
        prior = fit_prior(views, worth, anchors, contexts, pool, levels, rng)
    model = UnlabelledModel(
        about,
        prior,
        evidence,
        tuple(views.witnesses[k].name for k in contexts),
        is_safe=bool(columns) and seen < (FEWEST_ANCHORS if is_plain else FEWEST_SEPARATED),
        one_per_source=one_per_source,
        source=source,
        report={
            "about": about.phrase,
            "why": about.reason,
            "anchors": round(seen, 1),
            "null_pairs": len(sums.null),
            "chance": round(anchors.chance, 3),
            "unconfirmed": 0.0 if views.identity.is_person else round(null_share(sums), 3),
            "share": round(anchors.share, 3),
            "columns": [one.name for one in columns],
            "related": len(related.rows),
        },
    )
    return UnlabelledFit(model, views, pool, levels, worth)


def fit_evidence(
    views: Views, anchors: Anchors, null: tuple[Ints, Ints], *, mentions: bool
) -> tuple[list[ColumnEvidence], Sums]:
    """Fit the match weights of the columns, and return them with the sums S of anchors and null pairs.

    If many anchors may agree by chance, or are texts whose sums look like those of null pairs, they are
    fitted as a mixture of matching and non-matching pairs. The sums are not used in this way for persons,
    whose namesakes are known and whose addresses change, nor if the columns do not separate the two parts.
    """
    levels = (
        [one.levels(anchors.first, anchors.second) for one in views.witnesses],
        [one.levels(*null) for one in views.witnesses],
    )
    is_chancy = anchors.chance > CHANCE
    columns, sums = _fit_rounds(
        views, anchors, null, levels, chance=anchors.chance if is_chancy else None, trim=not mentions
    )
    if is_chancy or views.identity.is_person or not columns:
        return columns, sums
    chance = null_share(sums)
    if chance > CHANCE:
        mixed = _fit_rounds(views, anchors, null, levels, chance=chance, trim=True)
        sure = anchors._replace(weight=anchors.weight * (mixed[1].weight > 0.5 * anchors.weight))
        confirmed = _fit_rounds(views, sure, null, levels, chance=None, trim=True)
        if _separates(confirmed[1], anchors.weight):
            return confirmed
    return columns, sums


def _fit_rounds(
    views: Views,
    anchors: Anchors,
    null: tuple[Ints, Ints],
    levels: tuple[list[NDArray[np.uint8]], list[NDArray[np.uint8]]],
    *,
    chance: float | None,
    trim: bool,
) -> tuple[list[ColumnEvidence], Sums]:
    """Fit the match weights of the columns in rounds.

    levels
        Comparison levels of anchors and of null pairs, for each column.
    chance
        Initial share of non-matching pairs among the anchors, which EM then weights. None if all anchors are
        taken as matching.
    trim
        Exclude null pairs that look like matching pairs, after the first round.
    """
    witnesses, frequencies = views.witnesses, views.frequencies
    of_anchors, of_null = levels
    weight, kept = anchors.weight.copy(), np.ones(len(null[0]), bool)
    share = float(np.clip(1.0 - (chance or 0.0), 0.02, 0.98))
    limit = sure_sum(views, anchors)
    rounds = 2 if chance is None else MIXTURE_ROUNDS
    columns: list[ColumnEvidence] = []
    for number in range(rounds):
        columns = []
        for k, witness in enumerate(witnesses):
            fair = anchors.column != k  # exclude anchors that were chosen because they agree in this column
            columns.append(fit_column(witness, of_anchors[k][fair], weight[fair], of_null[k][kept]))
        s_anchors = add_up(columns, witnesses, frequencies, anchors.first, anchors.second)
        s_null = add_up(columns, witnesses, frequencies, *null)
        if chance is not None and len(s_anchors):
            odds = np.log(share) - np.log1p(-share) + SLOPE * np.clip(s_anchors, -20.0, 20.0)
            weight = anchors.weight * 0.5 * (1.0 + np.tanh(0.5 * odds))
            share = float(np.clip(weight.sum() / anchors.weight.sum(), 0.02, 0.98))
        if trim and number + 1 < rounds:
            kept = s_null <= limit
    return columns, Sums(s_anchors, weight, s_null[kept])


def weigh_anchors(anchors: Anchors, sums: Sums) -> Anchors:
    """Return the anchors with their fitted weights and the share of them that agree by chance."""
    different = anchors.first != anchors.second
    before = float(anchors.weight[different].sum())
    chance = 1.0 - float(sums.weight[different].sum()) / before if before > 0.0 else 0.0
    return anchors._replace(weight=sums.weight, chance=max(anchors.chance, chance))


def sure_sum(views: Views, anchors: Anchors) -> float:
    """Return the sum S above which a pair more likely matches than not, whatever its identities."""
    return float(np.log(views.n_records / max(anchors.partners, 1e-3))) + 1.0


def null_share(sums: Sums) -> float:
    """Return an upper bound on the share of non-matching pairs among the anchors, by their sums S.

    Non-matching anchors have sums like those of null pairs. So for any limit, their share is at most the
    share of anchors below the limit, divided by the share of null pairs below it; the smallest ratio is
    returned.
    """
    told, null = sums.anchors != 0.0, sums.null[sums.null != 0.0]  # pairs with something to compare
    if not told.any() or not len(null):
        return 0.0
    ends = np.quantile(null, np.linspace(0.3, 0.9, 7))
    low_null = np.searchsorted(np.sort(null), ends, side="right") / len(null)
    return float((_share_below(sums.anchors[told], sums.weight[told], ends) / low_null).min())


def _separates(sums: Sums, weight: Floats) -> bool:
    """Return whether the confirmed anchors (those with weight) have sums that chance does not explain.

    weight
        Weights of all anchors, from which the number with a high sum by chance is computed.
    """
    confirmed = float(sums.weight.sum())
    if confirmed < FEWEST_SEPARATED or not len(sums.null):
        return False
    lowest = np.quantile(sums.anchors[sums.weight > 0.0], 1.0 - SEPARATED)
    by_chance = float(weight.sum()) * float((sums.null >= lowest).mean())
    return by_chance <= (1.0 - SEPARATED) * confirmed


def _share_below(values: Floats, weight: Floats, ends: Floats) -> NDArray[np.float64]:
    order = np.argsort(values)
    total = np.append(0.0, np.cumsum(weight[order]))
    return np.asarray(total[np.searchsorted(values[order], ends, side="right")] / total[-1])


def fit_prior(
    views: Views,
    worth: Floats,
    anchors: Anchors,
    contexts: Sequence[int],
    pool: CandidatePairs,
    levels: NDArray[np.uint8],
    rng: np.random.Generator,
) -> LevelPrior:
    """Fit the prior log odds by identity, and correct them with the evidence C of the candidates."""
    identity, n = views.identity, views.n_records
    usable = np.ones(len(levels), bool)
    if contexts:
        usable = ~(share_context(views, contexts, *pool) | (levels <= CONFLICT))
    size = np.bincount(identity.code[identity.known], minlength=len(identity.namesakes) + 1)
    weight = 1.0 / np.maximum(size[identity.code[pool.first]], size[identity.code[pool.second]]).clip(1)
    partners = max(anchors.partners * (1.0 - anchors.chance), 1e-4)
    sure = usable & (worth + np.log(partners / max(n - 1, 1)) > 0.0) & (levels > 0)
    random_levels = identity.levels(*views.random_pairs(RANDOM, rng))
    same, other = level_frequencies(identity.is_person, levels[sure], weight[sure], random_levels)
    if anchors.has_near:
        of_anchors = identity.levels(anchors.first, anchors.second)
        same, partners = divide_equal_and_near(same, of_anchors, anchors.weight, partners)
    counts = np.bincount(levels[usable], minlength=TOP + 1)
    other = seen_among_candidates(other, same, counts, partners, n)
    share = max(anchors.share * (1.0 - anchors.chance), 1e-4)
    flat = np.zeros((TOP + 1, STRATA))
    alone = not identity.is_person and not views.witnesses
    prior = LevelPrior(identity.is_person, share, partners, same, other, np.arange(STRATA - 1.0), flat, alone)
    rows = np.flatnonzero(usable)
    expected = identity.expected(pool.first[rows], pool.second[rows])
    makes_few_sure = float(weight[sure].sum()) < DEFAULT_PAIRS
    if identity.is_person and makes_few_sure:
        prior = count_persons_alone(prior, levels[rows], expected, weight[rows], n)
    elif alone:  # beside other columns, similar titles of different products would pass for misspelled ones
        prior = count_texts_alone(prior, levels[rows], weight[rows], n)
    if not views.witnesses:
        return prior
    has_namesakes = anchors.chance > CHANCE
    edges, shifts = strata_shifts(
        prior, levels[rows], expected, worth[rows], weight[rows], n, has_namesakes=has_namesakes
    )
    return replace(prior, edges=edges, shifts=shifts)
